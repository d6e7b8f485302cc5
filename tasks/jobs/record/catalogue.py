"""The recurring jobs: templates made into jobs with a name, an owner, a schedule, a size and resources of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.template import Template
from tasks.jobs.record.templates_finance import FINANCE
from tasks.jobs.record.templates_logistics import LOGISTICS
from tasks.jobs.record.templates_logs import LOGS
from tasks.jobs.record.templates_maintenance import MAINTENANCE
from tasks.jobs.record.templates_marketing import MARKETING
from tasks.jobs.record.templates_plant import PLANT
from tasks.jobs.record.templates_quality import QUALITY
from tasks.jobs.record.templates_sales import SALES
from tasks.jobs.record.templates_security import SECURITY
from tasks.jobs.record.templates_web import WEB

T = TypeVar("T")
TEMPLATES: tuple[Template, ...] = (
    *SALES, *WEB, *PLANT, *LOGS, *FINANCE, *LOGISTICS, *MARKETING, *MAINTENANCE, *SECURITY, *QUALITY,
)  # fmt: skip
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


def _make_job(index: int, params: RecordParams, rng: np.random.Generator) -> Job:
    round_, kind = divmod(index, len(TEMPLATES))
    template = TEMPLATES[kind]
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


def make_jobs(params: RecordParams) -> tuple[Job, ...]:
    """params.jobs recurring jobs with distinct names; the same seed makes the same jobs."""
    return tuple(_make_job(index, params, np.random.default_rng([params.seed, index])) for index in range(params.jobs))
