"""The plan of a campaign: every run with its submit time, name, size and parameters, decided by the seed alone."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.jobs.record.catalogue import Job, Schedule, make_jobs
from tasks.jobs.record.datasets import DATA_SETS
from tasks.jobs.record.names import submitted_name
from tasks.jobs.record.params import LoadLevel, RecordParams
from tasks.jobs.record.sizing import draw_parts

RUNS_A_DAY: dict[Schedule, int] = {"daily": 1, "twice_daily": 2, "six_hourly": 4}
JITTER_DAYS = 0.004  # about six minutes
BURSTS_A_DAY, BURST_RUNS, BURST_GAP_DAYS = 0.35, (4, 11), 0.006
AD_HOC_A_DAY = 1.5
LOAD_STREAM = 1_000_000  # apart from every job's stream
RUN_STREAM = 2_000_000


@dataclass(frozen=True)
class PlannedRun:
    """One run to come. submit_s: seconds after the campaign's start; parts: first part and number of parts."""

    run_id: str
    job: Job
    submit_s: float
    name: str
    sql: str
    parts: tuple[int, int]
    threads: int
    is_cold: bool


@dataclass(frozen=True)
class LoadPhase:
    """A stretch of the campaign with one level of background load; start_s after the campaign's start."""

    start_s: float
    level: LoadLevel


@dataclass(frozen=True)
class Plan:
    """All runs in order of submission, and the phases of background load."""

    runs: tuple[PlannedRun, ...]
    phases: tuple[LoadPhase, ...]


def _bursts(days: float, rng: np.random.Generator) -> Iterator[float]:
    at = float(rng.exponential(1 / BURSTS_A_DAY))
    while at < days:
        for _ in range(int(rng.integers(*BURST_RUNS))):
            yield at
            at += float(rng.exponential(BURST_GAP_DAYS))
        at += float(rng.exponential(1 / BURSTS_A_DAY))


def _poisson(days: float, rng: np.random.Generator) -> Iterator[float]:
    at = float(rng.exponential(1 / AD_HOC_A_DAY))
    while at < days:
        yield at
        at += float(rng.exponential(1 / AD_HOC_A_DAY))


def _schedule_times(job: Job, days: float, rng: np.random.Generator) -> Iterator[float]:
    """Times of submission in days, unsorted, some past the end."""
    if job.schedule == "bursty":
        yield from _bursts(days, rng)
    elif job.schedule == "ad_hoc":
        yield from _poisson(days, rng)
    else:
        gap = 1 / RUNS_A_DAY[job.schedule]
        first = (job.hour / 24) % gap
        for step in range(int(days / gap) + 1):
            yield first + step * gap + float(rng.exponential(JITTER_DAYS))


def _runs_of(
    job: Job, params: RecordParams, rng: np.random.Generator
) -> Iterator[tuple[float, str, str, tuple[int, int], int, bool]]:
    days = params.minutes * 60 / params.day_s
    times = sorted(at for at in _schedule_times(job, days, rng) if at < days)
    data_set = DATA_SETS[job.template.data_set]
    for counter, at in enumerate(times, start=1):
        parts = draw_parts(job, at, at / days, rng)
        values = {key: kind.draw(rng) for key, kind in job.template.parameters.items()}
        name = submitted_name(job.name, job.name_style, counter, at, data_set.path(parts[0]), rng)
        sql = job.template.sql.format(**values, input="{input}", out="{out}")
        threads = int(rng.choice((1, 2, 4))) if job.has_varying_threads else job.threads
        yield at * params.day_s, name, " ".join(sql.split()), parts, threads, bool(rng.random() < job.cold_share)


def _phases(params: RecordParams, rng: np.random.Generator) -> Iterator[LoadPhase]:
    at = 0.0
    while at < params.minutes * 60:
        yield LoadPhase(at, params.load_ladder[int(rng.integers(len(params.load_ladder)))])
        at += float(rng.exponential(params.load_phase_s))


def make_plan(params: RecordParams) -> Plan:
    """Every run of a campaign, ids counted in order of submission; the same parameters make the same plan."""
    drawn = [
        (job, run)
        for index, job in enumerate(make_jobs(params))
        for run in _runs_of(job, params, np.random.default_rng([params.seed, RUN_STREAM, index]))
    ]
    drawn.sort(key=lambda pair: (pair[1][0], pair[0].name))
    runs = tuple(
        PlannedRun(f"{params.seed}-{number:06d}", job, *run)
        for number, (job, run) in zip(itertools.count(1), drawn, strict=False)
    )
    return Plan(runs, tuple(_phases(params, np.random.default_rng([params.seed, LOAD_STREAM]))))
