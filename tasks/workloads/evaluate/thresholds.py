"""From which distance on a run is something else: the three rules of the threshold, at both levels (V-D, RQ3).

Whole runs: a run is of a workload if its distance to the nearest known run of it is one that runs of the workload have.
Phases: if at some offset every phase is like the one that it meets in that run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd

from tasks.workloads.evaluate.distances import MEASURES, Measure, by_measure
from tasks.workloads.evaluate.figures import Figures, put
from tasks.workloads.evaluate.known import Trial
from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.similarity.params import SimilarityParams, Threshold
from tasks.workloads.similarity.thresholds import Level, Spread, is_within, phase_spreads, similar_offset
from tasks.workloads.telemetry import FloatArray

RULES: tuple[Threshold, ...] = get_args(Threshold)
LEVELS: tuple[Level, ...] = get_args(Level)
COUNTS = ("n_own", "n_rejected", "n_other", "n_accepted")
MOST_FOR_PHASES = 30  # known runs of a workload from whose pairs the spread of phases is learned


@dataclass(frozen=True)
class _Nearest:
    """The known run of one workload that is nearest to a tested run, and what is usual there."""

    run: Fingerprint
    distance: float
    whole: Spread | None
    phases: Spread | None


def threshold_table(trials: Sequence[Trial]) -> pd.DataFrame:
    """One row a split, measure, level and rule: n_own, n_rejected (tested runs that their own workload rejects),
    n_other, n_accepted (a tested run and another workload that takes it for its own)."""
    rows = [
        {"split": trial.split.name, "measure": measure, **row}
        for trial in trials
        for measure in MEASURES
        for row in _judged(trial, measure)
    ]
    return pd.DataFrame(rows)


def _judged(trial: Trial, measure: Measure) -> list[dict[str, object]]:
    learned, seen = trial.learned, trial.seen
    asked = by_measure(learned.params.similarity, measure)
    phases = _spreads_of_phases(learned.known, asked)
    counts = {(level, rule): [0, 0, 0, 0] for level in LEVELS for rule in RULES}
    for run, distances in zip(seen.fingerprints, seen.to_known[measure], strict=True):
        for workload in learned.judge.classes:
            nearest = _nearest(workload, learned.known, distances, learned.spreads[measure], phases)
            at = 0 if workload == run.workload else 2
            for (level, rule), count in counts.items():
                is_taken = _takes(run, nearest, level, asked.model_copy(update={"threshold": rule}))
                count[at] += 1
                count[at + 1] += is_taken if at else not is_taken
    return [{"level": level, "rule": rule, **dict(zip(COUNTS, n, strict=True))} for (level, rule), n in counts.items()]


def _spreads_of_phases(known: Sequence[Fingerprint], params: SimilarityParams) -> dict[str, Spread]:
    """Spreads of single phases, from an even sample of the known runs of each workload."""
    runs: list[FloatArray] = []
    labels: list[str] = []
    for workload in dict.fromkeys(str(one.workload) for one in known):
        own = [one.workload_phases for one in known if one.workload == workload]
        kept = np.unique(np.linspace(0, len(own) - 1, min(len(own), MOST_FOR_PHASES)).astype(int))
        runs += [own[at] for at in kept]
        labels += [workload] * len(kept)
    return phase_spreads(runs, labels, params)


def _nearest(
    workload: str,
    known: Sequence[Fingerprint],
    distances: FloatArray,
    whole: dict[str, Spread],
    phases: dict[str, Spread],
) -> _Nearest:
    own = [at for at, one in enumerate(known) if one.workload == workload]
    at = own[int(np.argmin(distances[own]))]
    return _Nearest(known[at], float(distances[at]), whole.get(workload), phases.get(workload))


def _takes(run: Fingerprint, nearest: _Nearest, level: Level, params: SimilarityParams) -> bool:
    """Whether the run counts as one of the nearest run's workload; one that was seen once takes none."""
    if level == "workload":
        spread = nearest.whole
        return spread is not None and bool(is_within(nearest.distance, spread, params.threshold, params.deviations))
    if nearest.phases is None:
        return False
    phases = nearest.run.workload_phases
    return similar_offset(run.workload_phases, phases, nearest.phases, params) is not None


def threshold_figures(table: pd.DataFrame, params: SimilarityParams, reason: str = "") -> Figures:
    """`threshold.false_reject` and `.false_accept` with `.<rule>.<level>.<measure>`, over all splits together; without
    these: of the rule and the distance that the parameters choose, for whole runs."""
    figures: Figures = {}
    chosen = (params.threshold, "workload", "ed" if params.distance == "euclidean" else "dtw")
    for rule in RULES:
        for level in LEVELS:
            for measure in MEASURES:
                counts = _counts(table, rule, level, measure)
                for name, n, n_wrong in (
                    ("false_reject", "n_own", "n_rejected"),
                    ("false_accept", "n_other", "n_accepted"),
                ):
                    share = counts[n_wrong] / counts[n] if counts[n] else None
                    told = reason or "no run to ask"
                    put(figures, f"threshold.{name}.{rule}.{level}.{measure}", share, told)
                    if (rule, level, measure) == chosen:
                        put(figures, f"threshold.{name}", share, told)
    return figures


def _counts(table: pd.DataFrame, rule: Threshold, level: Level, measure: Measure) -> dict[str, int]:
    if table.empty:
        return dict.fromkeys(COUNTS, 0)
    own = table[(table["rule"] == rule) & (table["level"] == level) & (table["measure"] == measure)]
    return {name: int(own[name].sum()) for name in COUNTS}
