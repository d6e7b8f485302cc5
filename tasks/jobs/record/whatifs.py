"""Matched pairs: runs of the last period done again unchanged, and again with one thing changed.

Source: Zhu et al. 2023, 7.1 to 7.3 (no spare tokens; everything on the newest machines; equal load everywhere), which
the paper only predicts.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tasks.jobs.record.params import LoadLevel, RecordParams
from tasks.jobs.record.phases import LoadPlan, load_phases
from tasks.jobs.record.plan import PlannedRun, planned_runs

WhatIf = Literal["baseline", "no_spare", "newest_sku", "steady_load"]
PAIRS, STEADY = "W", "S"  # periods: the first under changing load, the second under steady load
STEADY_LEVEL: LoadLevel = "cpu-35"  # about the mean of the changing levels
DIGEST_DIGITS = 16
PAIR_STREAM = 3_000_000
APART_S = (5.0, 60.0)


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


def _changed(run: PlannedRun, what_if: WhatIf, params: RecordParams) -> PlannedRun:
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
    chosen: Sequence[PlannedRun], kinds: Sequence[WhatIf], starts_s: float, gap_s: float, params: RecordParams
) -> Iterator[PlannedRun]:
    """The kinds of one run are submitted in random order, some seconds apart: under the same load, not at once."""
    rng = np.random.default_rng([params.seed, PAIR_STREAM, len(kinds)])
    for place, number in enumerate(rng.permutation(len(chosen))):
        at = starts_s + place * gap_s
        for kind in rng.permutation(len(kinds)):
            yield replace(_changed(chosen[number], kinds[kind], params), submit_s=at)
            at += float(rng.uniform(*APART_S))


def _chosen(runs: Sequence[PlannedRun], params: RecordParams) -> list[PlannedRun]:
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


def make_plan(params: RecordParams) -> Plan:
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
