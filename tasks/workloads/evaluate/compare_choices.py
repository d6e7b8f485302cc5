"""What each choice of the method does to accuracy, printed:
python -m tasks.workloads.evaluate.compare_choices PATH… [--label-from stem] [--width 60] [--rounds 1,2,3]
[--slice by_round].

Rounds of runs are left out in turn; windows of long traces are split by time. Only the stated rounds, or the first
part of each trace, are read, and split again: what remains was not looked at when the defaults were chosen."""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.workloads.evaluate.cohort import Cohort, cohort_of
from tasks.workloads.evaluate.known import METHODS, Told, told_of, try_split
from tasks.workloads.evaluate.params import EvaluateParams, WindowParams
from tasks.workloads.evaluate.reading import read_labelled
from tasks.workloads.evaluate.splits import SLICES, Slice, splits_of
from tasks.workloads.evaluate.windows import Item, cut
from tasks.workloads.identify.params import FingerprintParams, IdentifyParams, ScopeChoice
from tasks.workloads.reading_params import ReadParams

CHOICES: dict[str, Sequence[dict[str, Any]]] = {
    "normalisation": [
        {"fingerprint": {"normalisation": {"normalisation": name}}} for name in ("training", "zscore", "absolute")
    ],
    "phases": [{"fingerprint": {"phases": {"mode": mode}}} for mode in ("counter", "shared")],
    "change points": [
        {"fingerprint": {"changepoints": {"method": name}}} for name in ("bayes", "pelt", "kernel", "binseg")
    ],
    "distances' scale": [
        {"fingerprint": {"normalisation": {"distances": name}}} for name in ("training", "zscore", "absolute")
    ],
    "DTW's cost": [{"similarity": {"cost": cost}} for cost in ("manhattan", "squared")],
    "features": [{"features": {"parts": parts}} for parts in ("apart", "phases", "levels", "both")],
    "distance weight": [{"trees": {"distance_weight": weight}} for weight in (0.0, 0.25, 1.0, 2.0)],
}


def compare(
    items: Sequence[Item], kind: Slice, params: EvaluateParams, choices: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """One row a choice: accuracy (and macro-F1) of each method over the splits, phases of a run, seconds of CPU."""
    splits = splits_of(items, kind, params).splits
    cohorts: dict[str, Cohort] = {}  # phases by what they depend on
    for name in choices:
        for changed in CHOICES[name]:
            began_s = time.process_time()
            identify = IdentifyParams.model_validate(_merged(params.identify.model_dump(), changed))
            key = identify.fingerprint.model_dump_json()
            cohort = cohorts.setdefault(key, cohort_of(items, identify.fingerprint))
            trials = [try_split(cohort, split, identify) for split in splits]
            told = [told_of(trial) for trial in trials if trial is not None]
            phases = np.mean([len(one.workload_bounds) - 1 for one in cohort.cuts.values()])
            yield {"choice": name, "value": _value(changed), **_scores(told), "phases": round(float(phases), 2)} | {
                "cpu_s": round(time.process_time() - began_s, 1)
            }


def _scores(told: Sequence[Told]) -> dict[str, str]:
    """Accuracy / macro-F1 of each method, means over splits."""
    found: dict[str, str] = {}
    for method in METHODS:
        scores = [one.score(method) for one in told]
        accuracy, macro_f1 = np.mean([[one.accuracy, one.macro_f1] for one in scores], axis=0)
        found[method] = f"{accuracy:.3f}/{macro_f1:.3f}"
    return found


def _merged(given: dict[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(given)
    for key, value in changed.items():
        found[key] = _merged(found[key], value) if isinstance(value, dict) else value
    return found


def _value(changed: Any) -> str:
    while isinstance(changed, dict):
        (changed,) = changed.values()
    return str(changed)


def _first_part(items: Sequence[Item], params: EvaluateParams, rounds: Sequence[str]) -> list[Item]:
    if any(item.is_window for item in items):
        (split,) = splits_of(items, "by_time", params).splits
        return [items[at] for at in split.train]
    return [item for item in items if not rounds or str(item.run.round) in rounds]


def main() -> None:
    """Read the paths and print one row a choice."""
    asked = argparse.ArgumentParser()
    asked.add_argument("paths", nargs="+")
    asked.add_argument("--label-from", default="")
    asked.add_argument("--width", type=float, default=30)
    asked.add_argument("--rounds", default="")
    asked.add_argument("--choices", default=",".join(CHOICES))
    asked.add_argument("--slice", choices=SLICES, default="by_round")
    asked.add_argument("--scope", choices=get_args(ScopeChoice), default="both")
    told = asked.parse_args()
    identify = IdentifyParams(fingerprint=FingerprintParams(scope=told.scope))
    params = EvaluateParams(windows=WindowParams(width_s=told.width), identify=identify)
    runs = read_labelled(told.paths, ReadParams(label_from=told.label_from)).runs
    rounds = [one for one in told.rounds.split(",") if one]
    items = _first_part(cut(runs, params.windows).items, params, rounds)
    print(f"{len(items)} items of {len({item.workload for item in items})} workloads")
    with threadpool_limits(1):
        for row in compare(items, told.slice, params, told.choices.split(",")):
            print(pd.DataFrame([row]).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
