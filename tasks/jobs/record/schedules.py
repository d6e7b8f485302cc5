"""When a job is submitted: by its schedule, with the jitter, bursts and days off that real ones have."""

from collections.abc import Iterator

import numpy as np

from tasks.jobs.record.catalogue import Job, Schedule

RUNS_A_DAY: dict[Schedule, int] = {"daily": 1, "twice_daily": 2, "six_hourly": 4}
JITTER_DAYS = 0.004  # about six minutes
BURSTS_A_DAY, BURST_RUNS, BURST_GAP_DAYS = 0.35, (4, 11), 0.006
AD_HOC_A_DAY = 2.2
HOURS = 24


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


def _regular(job: Job, days: float, rng: np.random.Generator) -> Iterator[float]:
    gap = 1 / RUNS_A_DAY[job.schedule]
    first = (job.hour / HOURS) % gap
    for step in range(int(days / gap)):
        yield first + step * gap + float(rng.exponential(JITTER_DAYS))


def submit_days(job: Job, first_day: int, days: int, rng: np.random.Generator) -> list[float]:
    """Times of submission from first_day on, in days since the campaign's start, in order."""
    kinds = {"bursty": _bursts, "ad_hoc": _poisson}
    times = kinds[job.schedule](days, rng) if job.schedule in kinds else _regular(job, days, rng)
    return sorted(first_day + at for at in times if at < days)
