"""Identification from a part of a run: its first seconds (online), or a window from its middle."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.workloads.evaluate.cohort import Cohort, cohort_of
from tasks.workloads.evaluate.known import Trial, most_probable, told_of, try_split
from tasks.workloads.evaluate.learned import see
from tasks.workloads.evaluate.windows import LEAST_SAMPLES, span_s
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.telemetry import Telemetry

EDGE = 1e-6  # of an interval, against rounding
MIDDLE = (0.25, 0.75)  # of a run


@dataclass(frozen=True)
class Partial:
    """table: one row a split and method. reason: why there is none."""

    table: pd.DataFrame
    reason: str = ""


def online(cohort: Cohort, trials: Sequence[Trial], seconds: float, params: IdentifyParams) -> Partial:
    """How well runs are named after so many seconds: split, method, accuracy, confidence, n.

    Named by trees and distances together. Methods: trees, learned from the first seconds of the training runs; whole,
    learned from whole runs."""
    runs = [item.run for item in cohort.items]
    longest_s = max(span_s(run) for run in runs)
    if longest_s < seconds - max(run.interval_s or 0.0 for run in runs) - EDGE:
        return Partial(pd.DataFrame(), f"no run lasts {seconds:g} s; the longest {longest_s:g} s")
    if np.median([run.interval_s or 0.0 for run in runs]) * LEAST_SAMPLES > seconds + EDGE:
        return Partial(pd.DataFrame(), f"fewer than {LEAST_SAMPLES} samples in {seconds:g} s")
    short = _with_runs(cohort, [_first(run, seconds) for run in runs], params)
    rows = []
    for trial in trials:
        again = try_split(short, trial.split, params)
        if again is None:
            continue
        seen = {"trees": again.seen.probabilities, "whole": see(short, trial.test, trial.learned).probabilities}
        for method, probabilities in seen.items():
            told = most_probable(trial.learned, probabilities)
            rows.append(
                {
                    "split": trial.split.name,
                    "method": method,
                    "accuracy": float(np.mean(np.asarray(told) == np.asarray(trial.truth))),
                    "confidence": float(probabilities.max(axis=1).mean()),
                    "n": len(told),
                }
            )
    return Partial(pd.DataFrame(rows))


def from_the_middle(cohort: Cohort, trials: Sequence[Trial], params: IdentifyParams) -> Partial:
    """How well the middle half of a run is named by what was learned from whole ones: split, method, accuracy, n.

    The distances compare the fewer phases at their best offset (V-D)."""
    parts = [_middle(item.run) for item in cohort.items]
    if np.median([part.n_samples for part in parts]) < LEAST_SAMPLES:
        return Partial(pd.DataFrame(), f"fewer than {LEAST_SAMPLES} samples in the middle of a run")
    inner = _with_runs(cohort, parts, params)
    rows = []
    for trial in trials:
        runs = inner.runs(trial.test)
        told = told_of(replace(trial, seen=see(inner, trial.test, trial.learned), runs=runs))
        rows += [
            {
                "split": trial.split.name,
                "method": method,
                "accuracy": told.score(method).accuracy,
                "macro_f1": told.score(method).macro_f1,
                "n": len(runs),
            }
            for method in told.told
        ]
    return Partial(pd.DataFrame(rows))


def _first(run: Telemetry, seconds: float) -> Telemetry:
    """The samples whose intervals end within the first seconds, at least two; of a shorter run all."""
    n_samples = int(np.floor(seconds / run.interval_s + EDGE)) if run.interval_s else run.n_samples
    return _part(run, 0, max(LEAST_SAMPLES, n_samples))


def _middle(run: Telemetry) -> Telemetry:
    first, last = (round(share * run.n_samples) for share in MIDDLE)
    return _part(run, first, last)


def _part(run: Telemetry, first: int, last: int) -> Telemetry:
    at_s = run.at_s[first:last]
    since_s = at_s - (at_s[0] - run.at_s[0]) if len(at_s) else at_s
    return replace(run, at_s=since_s, values=run.values[first:last])  # noqa: PD011


def _with_runs(cohort: Cohort, runs: Sequence[Telemetry], params: IdentifyParams) -> Cohort:
    items = [replace(item, run=run) for item, run in zip(cohort.items, runs, strict=True)]
    return cohort_of(items, params.fingerprint, cohort.counters)
