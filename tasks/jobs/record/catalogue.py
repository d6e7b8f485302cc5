"""The recurring jobs: templates made into jobs with a name, an owner, a schedule, a size and resources of their own."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, TypeVar

import numpy as np

from tasks.jobs.record.datasets import PARTS
from tasks.jobs.record.params import Campaign
from tasks.jobs.record.templates import Template, templates

T = TypeVar("T")
Schedule = Literal["daily", "twice_daily", "six_hourly", "bursty", "ad_hoc"]
Sizing = Literal["steady", "spread", "weekly", "growing", "backfill", "wide"]
# twice a day for most, so that a week holds enough runs of nearly every job
SCHEDULES: dict[Schedule, float] = {
    "daily": 0.10, "twice_daily": 0.60, "six_hourly": 0.09, "bursty": 0.10, "ad_hoc": 0.11,
}  # fmt: skip
SIZINGS: dict[Sizing, float] = {
    "steady": 0.30, "spread": 0.20, "weekly": 0.12, "growing": 0.10, "backfill": 0.20, "wide": 0.08,
}  # fmt: skip
COLD_SHARES = {0.0: 0.65, 0.04: 0.25, 0.5: 0.10}  # how often a run finds its input out of the cache
TOKENS = {1: 0.20, 2: 0.35, 3: 0.25, 4: 0.20}  # what a job needs
OVERREQUESTS = {1: 0.70, 2: 0.20, 3: 0.10}  # how many times that its owner requests
VARYING_TOKENS_SHARE = 0.15
SPARE_SHARE = 0.75  # jobs that take spare tokens
PARTS_PER_VERTEX = {1: 0.15, 2: 0.45, 4: 0.40}
NEWEST_ONLY_SHARE = 0.08
LOOSE_MEMORY_SHARE = 0.6  # of the jobs that could spill, those that get enough memory
STRICT_TIME_SHARE = 0.25  # jobs whose owner sets a third of the usual time limit
TEAMS = ("emea", "apac", "finance", "growth", "risk", "support", "research", "planning", "audit", "partners")
USERS = ("svc_etl", "svc_reports", "mira", "jonas", "adaeze", "chen", "lucia", "tomasz", "noor", "henrik")
NAME_STYLES = 7
SCALES = {1: 0.5, 2: 0.3, 4: 0.2}  # everyday size over the template's, for jobs that stay near it
NEAR_EVERYDAY = ("steady", "spread", "weekly")
SERVICE_SHARE = 0.6  # scheduled jobs that run under a service account
TEAM_STRIDE = 3
TEAM_OF_ROUND = (0, 4, 8, 2, 6, 1, 5, 9, 3, 7)  # a template's jobs are of different teams
HOURS = 24
FIRST_DAY = date(2026, 9, 1)  # the first day of every campaign's schedule
HASH_BYTES = 6
UUID_CUTS = (8, 12, 16, 20)
RUNS_A_DAY: dict[Schedule, int] = {"daily": 1, "twice_daily": 2, "six_hourly": 4}
JITTER_DAYS = 0.004  # about six minutes
BURSTS_A_DAY, BURST_RUNS, BURST_GAP_DAYS = 0.35, (4, 11), 0.006
AD_HOC_A_DAY = 2.2
STEADY_SIGMA, SPREAD_SIGMA = 0.08, 0.55
WEEKEND_FACTOR, WEEK = 3.0, 7
GROWTH = 4.0
BACKFILL_SHARE, BACKFILL_FACTORS = 0.04, (10, 50)
WIDEST = 50


@dataclass(frozen=True)
class Job:
    """One recurring job. typical_parts: what an everyday run reads; tokens: its request; cold_share: 0 to 1."""

    name: str
    template: Template
    user_name: str
    queue: str
    schedule: Schedule
    hour: float
    sizing: Sizing
    typical_parts: int
    tokens: int
    has_varying_tokens: bool
    takes_spare: bool
    parts_per_vertex: int
    is_newest_only: bool
    memory_mb: int
    time_limit_s: float
    cold_share: float
    name_style: int


def _weighted(options: Mapping[T, float], rng: np.random.Generator) -> T:
    keys = list(options)
    return keys[int(rng.choice(len(keys), p=np.array(list(options.values()))))]


def _queue(template: Template, schedule: Schedule) -> str:
    if template.writes or "COPY" in template.sql:
        return "etl"
    return "adhoc" if schedule in ("bursty", "ad_hoc") else "reports"


def _schedule(template: Template, rng: np.random.Generator) -> Schedule:
    drawn = _weighted(SCHEDULES, rng)
    return "twice_daily" if template.writes and drawn in ("bursty", "ad_hoc") else drawn


def _make_job(index: int, params: Campaign, rng: np.random.Generator) -> Job:
    round_, kind = divmod(index, len(templates()))
    template = templates()[kind]
    schedule, sizing = _schedule(template, rng), _weighted(SIZINGS, rng)
    memories = template.memory_mb
    is_service = schedule in ("daily", "twice_daily", "six_hourly") and rng.random() < SERVICE_SHARE
    # a job that may grow by a factor of 50 starts from few parts
    shrink = {"backfill": 2, "growing": 2, "wide": template.typical_parts}.get(sizing, 1)
    scale = _weighted(SCALES, rng) if not template.writes and sizing in NEAR_EVERYDAY else 1
    return Job(
        name=f"{template.name}_{TEAMS[(kind * TEAM_STRIDE + TEAM_OF_ROUND[round_]) % len(TEAMS)]}",
        template=template,
        user_name=USERS[int(rng.integers(0, 2))] if is_service else USERS[int(rng.integers(2, len(USERS)))],
        queue=_queue(template, schedule),
        schedule=schedule,
        hour=float(rng.uniform(0, 6) if template.writes else rng.normal(9, 4) % HOURS),
        sizing=sizing,
        typical_parts=max(1, round(template.typical_parts * scale / shrink)),
        tokens=_weighted(TOKENS, rng) * _weighted(OVERREQUESTS, rng),
        has_varying_tokens=bool(rng.random() < VARYING_TOKENS_SHARE),
        takes_spare=bool(rng.random() < SPARE_SHARE),
        parts_per_vertex=_weighted(PARTS_PER_VERTEX, rng),
        is_newest_only=bool(rng.random() < NEWEST_ONLY_SHARE),
        memory_mb=memories[0] if rng.random() < LOOSE_MEMORY_SHARE else memories[-1],
        time_limit_s=params.time_limit_s / (3 if rng.random() < STRICT_TIME_SHARE else 1),
        cold_share=_weighted(COLD_SHARES, rng),
        name_style=index % NAME_STYLES,
    )


def make_jobs(params: Campaign) -> tuple[Job, ...]:
    """params.jobs recurring jobs with distinct names; the same seed makes the same jobs."""
    return tuple(_make_job(index, params, np.random.default_rng([params.seed, index])) for index in range(params.jobs))


def _hex(count: int, rng: np.random.Generator) -> str:
    return rng.bytes(count).hex()


def _uuid(rng: np.random.Generator) -> str:
    digits = _hex(16, rng)
    return "-".join(digits[low:high] for low, high in zip((0, *UUID_CUTS), (*UUID_CUTS, 32), strict=True))


def submitted_name(name: str, style: int, counter: int, at_days: float, path: str, rng: np.random.Generator) -> str:
    """The job's name as one run submits it, in one of seven styles.

    at_days: schedule time in days since the campaign's first day; path: the run's first input under /data.
    """
    day = FIRST_DAY + timedelta(days=int(at_days))
    hour, minute = int(at_days * 24) % 24, int(at_days * 1440) % 60
    return (
        f"{name}_{day}_r{counter:04d} /data/{path}",
        f"{name}.{day:%Y%m%d}T{hour:02d}{minute:02d} #{counter}",
        f"{name} run={counter} dt={day}",
        f"{name}-{_hex(HASH_BYTES, rng)}",
        f"{name}[{day:%Y/%m/%d}] s3://lake/h={hour:02d}/{path}",
        f"{name}_{day:%Y%m%d}{hour:02d}{minute:02d}",
        f"{name}:{_uuid(rng)}",
    )[style]


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


def size_factor(job: Job, at_days: float, progress: float, rng: np.random.Generator) -> float:
    """Input of one run as a multiple of the everyday input; progress: 0 at the campaign's start, 1 at its end."""
    match job.sizing:
        case "spread":
            return float(rng.lognormal(0, SPREAD_SIGMA))
        case "weekly":
            factor = WEEKEND_FACTOR if int(at_days) % WEEK >= WEEK - 2 else 1.0
            return factor * float(rng.lognormal(0, STEADY_SIGMA))
        case "growing":
            return float(GROWTH**progress)
        case "backfill" if rng.random() < BACKFILL_SHARE:
            return float(rng.uniform(*BACKFILL_FACTORS))
        case "wide":
            return math.exp(rng.uniform(0, math.log(WIDEST)))
    return float(rng.lognormal(0, STEADY_SIGMA))


def usual_parts(job: Job) -> float:
    """Parts that a run of the job reads in the middle of all its runs."""
    middle = {"wide": math.sqrt(WIDEST), "growing": math.sqrt(GROWTH)}.get(job.sizing, 1.0)
    return job.typical_parts * middle


def draw_parts(job: Job, at_days: float, progress: float, rng: np.random.Generator) -> tuple[int, int]:
    """First part and number of parts (1 to 64) that a run reads. A table's range must not wrap around."""
    count = round(job.typical_parts * size_factor(job, at_days, progress, rng))
    count = min(PARTS, max(1, count))
    last_start = PARTS - count if job.template.source == "table" else PARTS - 1
    return int(rng.integers(0, last_start + 1)), count
