"""The plan of a campaign: every run with its submit time, name, size and parameters, decided by the seed alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.jobs.record.catalogue import Job, make_jobs
from tasks.jobs.record.datasets import DATA_SETS
from tasks.jobs.record.names import submitted_name
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.schedules import submit_days
from tasks.jobs.record.sizing import draw_parts

MOST_TOKENS = 12
MOST_TIMES = 4  # requests of a job that vary: one to four times its own
RUN_STREAM = 2_000_000  # apart from every job's stream
OFFER_OF_ALL = 0.6  # runs that are offered every SKU; the others lack one


@dataclass(frozen=True)
class PlannedRun:
    """One run to come. submit_s: seconds after the campaign's start; parts: first part and number of parts.

    skus: those offered to it. matched_run_id: the run that a what-if changes in one thing, or the replayed one."""

    run_id: str
    period: str
    job: Job
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


def _tokens(job: Job, rng: np.random.Generator) -> int:
    asked = job.tokens * (int(rng.integers(1, 1 + MOST_TIMES)) if job.has_varying_tokens else 1)
    return min(MOST_TOKENS, asked)


def usual_tokens(job: Job) -> float:
    """Tokens that a run of the job requests, in the mean of all its runs."""
    times = range(1, 1 + MOST_TIMES) if job.has_varying_tokens else (1,)
    return sum(min(MOST_TOKENS, job.tokens * factor) for factor in times) / len(times)


def _offered(job: Job, names: list[str], rng: np.random.Generator) -> tuple[str, ...]:
    if job.is_newest_only or len(names) == 1:
        return (names[-1],)
    if rng.random() < OFFER_OF_ALL:
        return tuple(names)
    lacking = int(rng.integers(len(names)))
    return tuple(name for place, name in enumerate(names) if place != lacking)


def _runs_of(index: int, job: Job, params: RecordParams) -> Iterator[PlannedRun]:
    rng = np.random.default_rng([params.seed, RUN_STREAM, index])
    names, total = [sku.name for sku in params.skus], sum(period.days for period in params.periods)
    data_set, counter, begins = DATA_SETS[job.template.data_set], 0, 0
    for period in params.periods:
        for at in submit_days(job, begins, period.days, rng):
            counter += 1
            parts = draw_parts(job, at, at / total, rng)
            values = {key: kind.draw(rng) for key, kind in job.template.parameters.items()}
            yield PlannedRun(
                run_id=f"{params.seed}-{index:03d}-{counter:05d}",
                period=period.name,
                job=job,
                submit_s=at * params.day_s,
                name=submitted_name(job.name, job.name_style, counter, at, data_set.path(parts[0]), rng),
                sql=_filled(job.template.sql, values),
                merge=_filled(job.template.merge, values),
                parts=parts,
                tokens=_tokens(job, rng),
                takes_spare=job.takes_spare,
                skus=_offered(job, names, rng),
                is_cold=bool(rng.random() < job.cold_share),
            )
        begins += period.days


def planned_runs(params: RecordParams) -> list[PlannedRun]:
    """Every run of the periods in order of submission; the same parameters make the same plan."""
    runs = [run for index, job in enumerate(make_jobs(params)) for run in _runs_of(index, job, params)]
    return sorted(runs, key=lambda run: (run.submit_s, run.run_id))
