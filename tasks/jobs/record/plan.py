"""The plan of a campaign: every run with its submit time, name, size and parameters, decided by the seed alone.

Then matched pairs: runs of the last period done again unchanged, and again with one thing changed. Source: Zhu et al.
2023, 7.1 to 7.3 (no spare tokens; everything on the newest machines; equal load everywhere), which the paper only
predicts."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from tasks.jobs.record.catalogue import Job, draw_parts, make_jobs, submit_days, submitted_name
from tasks.jobs.record.datasets import DATA_SETS
from tasks.jobs.record.params import PAIRS, STEADY, Campaign, LoadLevel

MOST_TOKENS = 12
MOST_TIMES = 4  # requests of a job that vary: one to four times its own
RUN_STREAM = 2_000_000  # apart from every job's stream
OFFER_OF_ALL = 0.6  # runs that are offered every SKU; the others lack one
WhatIf = Literal["baseline", "no_spare", "newest_sku", "steady_load"]
STEADY_LEVEL: LoadLevel = "cpu-35"  # about the mean of the changing levels
DIGEST_DIGITS = 16
PAIR_STREAM = 3_000_000
APART_S = (5.0, 60.0)
LOAD_STREAM = 1_000_000  # apart from every job's stream


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


def _runs_of(index: int, job: Job, params: Campaign) -> Iterator[PlannedRun]:
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


def planned_runs(params: Campaign) -> list[PlannedRun]:
    """Every run of the periods in order of submission; the same parameters make the same plan."""
    runs = [run for index, job in enumerate(make_jobs(params)) for run in _runs_of(index, job, params)]
    return sorted(runs, key=lambda run: (run.submit_s, run.run_id))


@dataclass(frozen=True)
class LoadPhase:
    """A stretch with one level of background load on one SKU; start_s in seconds."""

    start_s: float
    sku: str
    level: LoadLevel


@dataclass(frozen=True)
class LoadPlan:
    """Phases that change with real time and begin anew after span_s; then, by the schedule's clock, a steady level.

    Real time, because the schedule stands still while too many runs wait: a heavy phase that waited with it would
    prolong itself. Every SKU has a phase from 0 on."""

    phases: tuple[LoadPhase, ...]
    span_s: float
    steady: LoadLevel | None = None
    steady_from_s: float = float("inf")

    @cached_property
    def _by_sku(self) -> dict[str, tuple[list[float], list[LoadLevel]]]:
        found: dict[str, tuple[list[float], list[LoadLevel]]] = {}
        for phase in sorted(self.phases, key=lambda phase: phase.start_s):
            starts, levels = found.setdefault(phase.sku, ([], []))
            starts.append(phase.start_s)
            levels.append(phase.level)
        return found

    def levels(self, real_s: float, schedule_s: float) -> dict[str, LoadLevel]:
        """The level of each SKU, real_s seconds after the start, when the schedule is at schedule_s seconds."""
        if self.steady is not None and schedule_s >= self.steady_from_s:
            return dict.fromkeys(self._by_sku, self.steady)
        at = real_s % self.span_s
        return {sku: levels[bisect_right(starts, at) - 1] for sku, (starts, levels) in self._by_sku.items()}


@dataclass(frozen=True)
class Plan:
    """All runs in order of submission, and the background load meanwhile."""

    runs: tuple[PlannedRun, ...]
    load: LoadPlan

    def digest(self) -> str:
        """The same for the same runs: a campaign that began with another plan cannot be continued with this one."""
        found = hashlib.sha256()
        for run in self.runs:
            what = (run.run_id, run.name, run.sql, run.merge, run.parts, run.tokens, run.skus, run.is_cold)
            found.update(repr(what).encode())
        return found.hexdigest()[:DIGEST_DIGITS]


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
    chosen: Sequence[PlannedRun], kinds: Sequence[WhatIf], starts_s: float, gap_s: float, params: Campaign
) -> Iterator[PlannedRun]:
    """The kinds of one run are submitted in random order, some seconds apart: under the same load, not at once."""
    rng = np.random.default_rng([params.seed, PAIR_STREAM, len(kinds)])
    for place, number in enumerate(rng.permutation(len(chosen))):
        at = starts_s + place * gap_s
        for kind in rng.permutation(len(kinds)):
            yield replace(_changed(chosen[number], kinds[kind], params), submit_s=at)
            at += float(rng.uniform(*APART_S))


def _chosen(runs: Sequence[PlannedRun], params: Campaign) -> list[PlannedRun]:
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
    chosen, gap_s = _chosen(runs, params), ends_s / max(1, len(runs))
    kinds: tuple[WhatIf, ...] = ("baseline", "no_spare", "newest_sku")
    changing = sorted(_again(chosen, kinds, ends_s, len(kinds) * gap_s, params), key=lambda run: run.submit_s)
    steady_s = max((run.submit_s for run in changing), default=ends_s) + APART_S[1]
    steady = list(_again(chosen, ("steady_load",), steady_s, gap_s, params))
    changing_load = load_phases(params, steady_s)
    load = LoadPlan(changing_load, steady_s, STEADY_LEVEL if steady else None, steady_s)
    return Plan((*runs, *changing, *steady), load)


def load_phases(params: Campaign, seconds: float) -> tuple[LoadPhase, ...]:
    """Levels of background load for each SKU, each with phases of its own, from 0 to `seconds`."""
    phases: list[LoadPhase] = []
    ladder: Sequence[LoadLevel] = params.load_ladder
    for place, sku in enumerate(params.skus):
        rng, at = np.random.default_rng([params.seed, LOAD_STREAM, place]), 0.0
        while at < seconds:
            phases.append(LoadPhase(at, sku.name, ladder[int(rng.integers(len(ladder)))]))
            at += float(rng.exponential(params.load_phase_s))
    return tuple(sorted(phases, key=lambda phase: phase.start_s))
