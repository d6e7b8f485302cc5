"""What adapting to a later session gains, without labels: python -m tests.studies.later_sessions FOLDER…

Each folder is a machine, a file in it a trace of the workload that it is called after. The first 60 % of each trace
are learned, the windows of the rest asked about: as they are, and less the shift that all of them share, which is the
median over the windows of how far each lies from its three nearest known runs, counter by counter, in logarithms. No
label and no parameter goes into it. Beside the shares named and called unknown stands what is said where each workload
is left out of what is known in turn. One object of JSON a machine."""

import json
import sys
from dataclasses import replace

import numpy as np

from tasks.workloads.evaluate.items import cut, read_labelled, splits_of
from tasks.workloads.identify.fingerprints import N_NEAREST, Neighbours
from tasks.workloads.identify.model import View, fit_model, seen_moments
from tasks.workloads.params import EvaluateParams, IdentifyParams, ReadParams, WindowParams
from tasks.workloads.telemetry import FloatArray

WINDOW_S = 60.0


def shared_shift(logs: FloatArray, known: Neighbours) -> FloatArray:
    """Median over runs of their distance from the nearest known ones: (m,). logs: (n, m)."""
    apart = []
    for seen in logs:
        gaps = seen - known.logs
        nearest = np.abs(np.nan_to_num(gaps) @ known.whitening).mean(axis=1).argsort()[:N_NEAREST]
        apart.append(gaps[nearest].mean(axis=0))
    return np.nan_to_num(np.nanmedian(apart, axis=0))


def said(moments: FloatArray, known: Neighbours, view: View) -> list[tuple[str, bool]]:
    """The nearest workload of each run, and whether it is called unknown."""
    answers = []
    for seen in moments:
        near = known.near(seen)
        strangeness = np.array([known.strangeness(near)])
        is_unknown = view.rest_alone.score.probability(strangeness)[0] > view.rest_alone.limit
        answers.append((next(iter(near)), bool(is_unknown)))
    return answers


def without(known: Neighbours, workload: str) -> Neighbours:
    """What is known but for one workload."""
    kept = np.asarray(known.workloads) != workload
    names = tuple(name for name in known.workloads if name != workload)
    usual = known.usual[[name != workload for name in known.names]]
    return replace(known, logs=known.logs[kept], workloads=names, usual=usual)


def measured(folder: str) -> dict[str, float]:
    """Shares of the later windows of one machine, as they are and adapted."""
    runs = read_labelled([folder], ReadParams(label_from="stem")).runs
    items = cut(runs, WindowParams(width_s=WINDOW_S)).items
    [split] = splits_of(items, "by_time", EvaluateParams()).splits
    view = fit_model([items[at].run for at in split.train], IdentifyParams(), ["machine"]).views["machine"]
    test = [items[at].run for at in split.test if items[at].workload in view.neighbours.names]
    truth, moments = [str(run.workload) for run in test], seen_moments(test, view.counters)
    floor = view.neighbours.floor
    logs = np.log(np.abs(moments) + floor)

    def adapted(known: Neighbours) -> FloatArray:
        return np.maximum(np.exp(logs - shared_shift(logs, known)) - floor, 0.0)

    found: dict[str, float] = {"n": len(test)}
    for way in ("plain", "adapted"):
        answers = said(moments if way == "plain" else adapted(view.neighbours), view.neighbours, view)
        pairs = list(zip(answers, truth, strict=True))
        found[f"nearest.{way}"] = float(np.mean([name == true for (name, _), true in pairs]))
        found[f"named.{way}"] = float(np.mean([name == true and not unknown for (name, unknown), true in pairs]))
        found[f"said_unknown.{way}"] = float(np.mean([unknown for _, unknown in answers]))
        left_out = []
        for workload in sorted(set(truth)):
            known = without(view.neighbours, workload)
            rows = np.array(truth) == workload
            asked = (moments if way == "plain" else adapted(known))[rows]
            left_out += [unknown for _, unknown in said(asked, known, view)]
        found[f"left_out_said_unknown.{way}"] = float(np.mean(left_out))
    return found


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(json.dumps({"folder": path} | measured(path)), flush=True)
