"""The plan of a campaign: recurring jobs with a name, an owner, a schedule, a size and resources of their own, and
every run of them with its submit time, name, size and parameters, decided by the seed alone.

Then matched pairs: runs of the last period done again unchanged, and again with one thing changed. Source: Zhu et al.
2023, 7.1 to 7.3 (no spare tokens; everything on the newest machines; equal load everywhere), which the paper only
predicts."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from operator import itemgetter
from typing import Literal, TypeVar
from uuid import UUID

import numpy as np

from tasks.jobs.params import PAIRS, STEADY, Campaign, LoadLevel
from tasks.jobs.record.templates import DATA_SETS, PARTS, Template, draw, templates
from tasks.record.campaign import digest_of

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
UUID_BYTES = 16
RUNS_A_DAY: dict[Schedule, int] = {"daily": 1, "twice_daily": 2, "six_hourly": 4}
JITTER_DAYS = 0.004  # about six minutes
BURSTS_A_DAY, BURST_RUNS, BURST_GAP_DAYS = 0.35, (4, 11), 0.006
AD_HOC_A_DAY = 2.2
STEADY_SIGMA, SPREAD_SIGMA = 0.08, 0.55
WEEKEND_FACTOR, WEEK = 3.0, 7
GROWTH = 4.0
BACKFILL_SHARE, BACKFILL_FACTORS = 0.04, (10, 50)
WIDEST = 50
MOST_TOKENS = 12
MOST_TIMES = 4  # requests of a job that vary: one to four times its own
RUN_STREAM = 2_000_000  # apart from every job's stream
OFFER_OF_ALL = 0.6  # runs that are offered every SKU; the others lack one
WhatIf = Literal["baseline", "no_spare", "newest_sku", "steady_load"]
STEADY_LEVEL: LoadLevel = "cpu-35"  # about the mean of the changing levels
PAIR_STREAM = 3_000_000
APART_S = (5.0, 60.0)
LOAD_STREAM = 1_000_000  # apart from every job's stream


@dataclass(frozen=True)
class PlannedJob:
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


def _make_job(index: int, params: Campaign, rng: np.random.Generator) -> PlannedJob:
    round_, kind = divmod(index, len(templates()))
    template = templates()[kind]
    schedule, sizing = _weighted(SCHEDULES, rng), _weighted(SIZINGS, rng)
    schedule = "twice_daily" if template.writes and schedule in ("bursty", "ad_hoc") else schedule
    is_etl, is_adhoc = bool(template.writes) or "COPY" in template.sql, schedule in ("bursty", "ad_hoc")
    memories = template.memory_mb
    is_service = schedule in ("daily", "twice_daily", "six_hourly") and rng.random() < SERVICE_SHARE
    # a job that may grow by a factor of 50 starts from few parts
    shrink = {"backfill": 2, "growing": 2, "wide": template.typical_parts}.get(sizing, 1)
    scale = _weighted(SCALES, rng) if not template.writes and sizing in NEAR_EVERYDAY else 1
    return PlannedJob(
        name=f"{template.name}_{TEAMS[(kind * TEAM_STRIDE + TEAM_OF_ROUND[round_]) % len(TEAMS)]}",
        template=template,
        user_name=USERS[int(rng.integers(0, 2))] if is_service else USERS[int(rng.integers(2, len(USERS)))],
        queue="etl" if is_etl else "adhoc" if is_adhoc else "reports",
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


def make_jobs(params: Campaign) -> tuple[PlannedJob, ...]:
    """params.jobs recurring jobs with distinct names; the same seed makes the same jobs."""
    return tuple(_make_job(index, params, np.random.default_rng([params.seed, index])) for index in range(params.jobs))


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
        f"{name}-{rng.bytes(HASH_BYTES).hex()}",
        f"{name}[{day:%Y/%m/%d}] s3://lake/h={hour:02d}/{path}",
        f"{name}_{day:%Y%m%d}{hour:02d}{minute:02d}",
        f"{name}:{UUID(bytes=rng.bytes(UUID_BYTES))}",
    )[style]


def _bursts(days: float, rng: np.random.Generator) -> Iterator[float]:
    at = float(rng.exponential(1 / BURSTS_A_DAY))
    while at < days:
        for _ in range(int(rng.integers(*BURST_RUNS))):
            yield at
            at += float(rng.exponential(BURST_GAP_DAYS))
        at += float(rng.exponential(1 / BURSTS_A_DAY))


def submit_days(job: PlannedJob, first_day: int, days: int, rng: np.random.Generator) -> list[float]:
    """Times of submission from first_day on, in days since the campaign's start, in order."""
    if job.schedule == "bursty":
        times = list(_bursts(days, rng))
    elif job.schedule == "ad_hoc":
        times = [float(rng.exponential(1 / AD_HOC_A_DAY))]
        while times[-1] < days:
            times.append(times[-1] + float(rng.exponential(1 / AD_HOC_A_DAY)))
    else:
        gap = 1 / RUNS_A_DAY[job.schedule]
        starts = [(job.hour / HOURS) % gap + step * gap for step in range(int(days / gap))]
        times = [at + float(rng.exponential(JITTER_DAYS)) for at in starts]
    return sorted(first_day + at for at in times if at < days)


def size_factor(job: PlannedJob, at_days: float, progress: float, rng: np.random.Generator) -> float:
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


def usual_parts(job: PlannedJob) -> float:
    """Parts that a run of the job reads in the middle of all its runs."""
    middle = {"wide": math.sqrt(WIDEST), "growing": math.sqrt(GROWTH)}.get(job.sizing, 1.0)
    return job.typical_parts * middle


def draw_parts(job: PlannedJob, at_days: float, progress: float, rng: np.random.Generator) -> tuple[int, int]:
    """First part and number of parts (1 to 64) that a run reads. A table's range must not wrap around."""
    count = round(job.typical_parts * size_factor(job, at_days, progress, rng))
    count = min(PARTS, max(1, count))
    last_start = PARTS - count if job.template.source == "table" else PARTS - 1
    return int(rng.integers(0, last_start + 1)), count


@dataclass(frozen=True)
class PlannedRun:
    """One run to come. submit_s: seconds after the campaign's start; parts: first part and number of parts.

    skus: those offered to it. matched_run_id: the run that a what-if changes in one thing, or the replayed one."""

    run_id: str
    period: str
    job: PlannedJob
    submit_s: float
    name: str
    sql: str
    merge: str
    parts: tuple[int, int]
    tokens: int
    takes_spare: bool
    skus: tuple[str, ...]
    is_cold: bool
    what_if: str | None = None
    matched_run_id: str | None = None


def _filled(sql: str, values: dict[str, int | str]) -> str:
    return " ".join(sql.format(**values, input="{input}", out="{out}", partials="{partials}").split())


def usual_tokens(job: PlannedJob) -> float:
    """Tokens that a run of the job requests, in the mean of all its runs."""
    times = range(1, 1 + MOST_TIMES) if job.has_varying_tokens else (1,)
    return sum(min(MOST_TOKENS, job.tokens * factor) for factor in times) / len(times)


def _offered(job: PlannedJob, names: list[str], rng: np.random.Generator) -> tuple[str, ...]:
    if job.is_newest_only or len(names) == 1:
        return (names[-1],)
    if rng.random() < OFFER_OF_ALL:
        return tuple(names)
    lacking = int(rng.integers(len(names)))
    return tuple(name for place, name in enumerate(names) if place != lacking)


def _runs_of(index: int, job: PlannedJob, params: Campaign) -> Iterator[PlannedRun]:
    rng = np.random.default_rng([params.seed, RUN_STREAM, index])
    names, total = [sku.name for sku in params.skus], sum(period.days for period in params.periods)
    data_set, counter, begins = DATA_SETS[job.template.data_set], 0, 0
    for period in params.periods:
        for at in submit_days(job, begins, period.days, rng):
            counter += 1
            parts = draw_parts(job, at, at / total, rng)
            values = {key: draw(options, rng) for key, options in job.template.parameters.items()}
            name = submitted_name(job.name, job.name_style, counter, at, data_set.path(parts[0]), rng)
            tokens = job.tokens * (int(rng.integers(1, 1 + MOST_TIMES)) if job.has_varying_tokens else 1)
            yield PlannedRun(
                run_id=f"{params.seed}-{index:03d}-{counter:05d}",
                period=period.name,
                job=job,
                submit_s=at * params.day_s,
                name=name,
                sql=_filled(job.template.sql, values),
                merge=_filled(job.template.merge, values),
                parts=parts,
                tokens=min(MOST_TOKENS, tokens),
                takes_spare=job.takes_spare,
                skus=_offered(job, names, rng),
                is_cold=bool(rng.random() < job.cold_share),
            )
        begins += period.days


def planned_runs(params: Campaign) -> list[PlannedRun]:
    """Every run of the periods in order of submission; the same parameters make the same plan."""
    runs = [run for index, job in enumerate(make_jobs(params)) for run in _runs_of(index, job, params)]
    return sorted(runs, key=lambda run: (run.submit_s, run.run_id))


@dataclass(frozen=True)
class LoadPlan:
    """phases: by SKU the starts in seconds, from 0 on, and the level of background load from each to the next.

    They change with real time and begin anew after span_s; then, by the schedule's clock, comes a steady level. Real
    time, because the schedule stands still while too many runs wait: a heavy phase that waited with it would prolong
    itself."""

    phases: Mapping[str, Sequence[tuple[float, LoadLevel]]]
    span_s: float
    steady: LoadLevel | None = None
    steady_from_s: float = float("inf")

    def levels(self, real_s: float, schedule_s: float) -> dict[str, LoadLevel]:
        """The level of each SKU, real_s seconds after the start, when the schedule is at schedule_s seconds."""
        if self.steady is not None and schedule_s >= self.steady_from_s:
            return dict.fromkeys(self.phases, self.steady)
        at = real_s % self.span_s
        return {sku: of_sku[bisect_right(of_sku, at, key=itemgetter(0)) - 1][1] for sku, of_sku in self.phases.items()}


@dataclass(frozen=True)
class Plan:
    """All runs in order of submission, and the background load meanwhile."""

    runs: tuple[PlannedRun, ...]
    load: LoadPlan

    def digest(self) -> str:
        """The same for the same runs: a campaign that began with another plan cannot be continued with this one."""
        run_fields = ((r.run_id, r.name, r.sql, r.merge, r.parts, r.tokens, r.skus, r.is_cold) for r in self.runs)
        return digest_of("".join(map(repr, run_fields)))


def _changed(run: PlannedRun, what_if: WhatIf, params: Campaign) -> PlannedRun:
    period = STEADY if what_if == "steady_load" else PAIRS
    again = replace(
        run, run_id=f"{run.run_id}-{what_if}", period=period, what_if=what_if, matched_run_id=f"{run.run_id}-baseline"
    )
    match what_if:
        case "baseline":
            return replace(again, matched_run_id=run.run_id)
        case "no_spare":
            return replace(again, takes_spare=False)
        case "newest_sku":
            return replace(again, skus=(params.skus[-1].name,))
    return again


def _again(
    repeated: Sequence[PlannedRun], kinds: Sequence[WhatIf], starts_s: float, gap_s: float, params: Campaign
) -> Iterator[PlannedRun]:
    """The kinds of one run are submitted in random order, some seconds apart: under the same load, not at once."""
    rng = np.random.default_rng([params.seed, PAIR_STREAM, len(kinds)])
    for place, number in enumerate(rng.permutation(len(repeated))):
        at = starts_s + place * gap_s
        for kind in rng.permutation(len(kinds)):
            yield replace(_changed(repeated[number], kinds[kind], params), submit_s=at)
            at += float(rng.uniform(*APART_S))


def _repeated(runs: Sequence[PlannedRun], params: Campaign) -> list[PlannedRun]:
    newest = (params.skus[-1].name,)
    last = [
        run
        for run in runs
        # a change that is one, and of nothing else: the newest SKU alone can promise all that the run requests
        if run.period == params.periods[-1].name
        and run.takes_spare
        and run.skus != newest
        and run.tokens <= params.skus[-1].tokens
    ]
    rng = np.random.default_rng([params.seed, PAIR_STREAM])
    return [last[place] for place in sorted(rng.permutation(len(last))[: params.pairs])]


def make_plan(params: Campaign) -> Plan:
    """Every run of a campaign: its periods, then the matched pairs; the same parameters make the same plan."""
    runs = planned_runs(params)
    ends_s = sum(period.days for period in params.periods) * params.day_s
    repeated, gap_s = _repeated(runs, params), ends_s / max(1, len(runs))
    kinds: tuple[WhatIf, ...] = ("baseline", "no_spare", "newest_sku")
    changing = sorted(_again(repeated, kinds, ends_s, len(kinds) * gap_s, params), key=lambda run: run.submit_s)
    steady_s = max((run.submit_s for run in changing), default=ends_s) + APART_S[1]
    steady = list(_again(repeated, ("steady_load",), steady_s, gap_s, params))
    load = LoadPlan(load_phases(params, steady_s), steady_s, STEADY_LEVEL if steady else None, steady_s)
    return Plan((*runs, *changing, *steady), load)


def load_phases(params: Campaign, seconds: float) -> dict[str, list[tuple[float, LoadLevel]]]:
    """Levels of background load of each SKU, from 0 to `seconds`: phases as LoadPlan has them."""
    phases: dict[str, list[tuple[float, LoadLevel]]] = {}
    ladder: Sequence[LoadLevel] = params.load_ladder
    for place, sku in enumerate(params.skus):
        rng, at = np.random.default_rng([params.seed, LOAD_STREAM, place]), 0.0
        phases[sku.name] = []
        while at < seconds:
            phases[sku.name].append((at, ladder[int(rng.integers(len(ladder)))]))
            at += float(rng.exponential(params.load_phase_s))
    return phases
