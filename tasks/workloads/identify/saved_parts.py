"""The parts of a model as JSON and arrays, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tasks.workloads.identify.calibration import Calibration
from tasks.workloads.identify.evidence import EVIDENCE
from tasks.workloads.identify.fingerprinting import FingerprintMaker
from tasks.workloads.identify.judge import Judge
from tasks.workloads.identify.levels import LEVELS, LevelScale
from tasks.workloads.identify.model import KnownRun, Model
from tasks.workloads.identify.neighbours import COMPARED, Metric
from tasks.workloads.identify.open_set import OpenSet
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.identify.trees import trees_from
from tasks.workloads.identify.whitening import Whitening
from tasks.workloads.normalisation import Scale
from tasks.workloads.phases import STATISTICS
from tasks.workloads.similarity.thresholds import Spread
from tasks.workloads.telemetry import Counter, FloatArray

TREE_COLUMNS = "trees.columns.{}"  # of each booster
Facts = Mapping[str, Any]
Arrays = Mapping[str, FloatArray]


def facts_of(model: Model) -> dict[str, Any]:
    """What is no array."""
    calibration = model.open_set.calibration
    return {
        "params": model.params.model_dump(mode="json"),
        "counters": [asdict(one) for one in model.maker.counters],
        "n_phases": model.n_phases,
        "classes": list(model.workloads),
        "known": [[one.run_id, one.workload, one.input, len(one.phase_means)] for one in model.known],
        "learned": list(model.learned_ids),
        "spreads": {name: [one.mean, one.deviation, one.n] for name, one in model.judge.spreads.items()},
        "open_set": {
            "limit": model.open_set.limit,
            "intercept": calibration.intercept,
            "is_learned": calibration.is_learned,
        },
    }


def arrays_of(model: Model) -> dict[str, FloatArray]:
    """What is."""
    judge, calibration = model.judge, model.open_set.calibration
    found = {
        "levels.units": model.levels.units,
        "levels.typical": model.levels.typical,
        "known.workload_phases": np.concatenate([one.workload_phases for one in model.known]),
        "known.phase_means": np.concatenate([one.phase_means for one in model.known]),
        "judge.points": judge.points,
        "judge.usual": judge.usual,
        "metric.deviations": judge.metric.deviations,
        "calibration.centre": calibration.centre,
        "calibration.deviation": calibration.deviation,
        "calibration.weights": calibration.weights,
    }
    found |= {TREE_COLUMNS.format(at): own.astype(np.float64) for at, own in enumerate(judge.trees.columns)}
    if model.maker.scale is not None:
        found |= {"scale.centre": model.maker.scale.centre, "scale.spread": model.maker.scale.spread}
    if judge.metric.whitening is not None:
        found |= {"whitening.directions": judge.metric.whitening.directions}
        found |= {"whitening.gains": judge.metric.whitening.gains}
    return found


def model_from(facts: Facts, arrays: Arrays, texts: Sequence[str]) -> Model:
    """The model again. Raises KeyError, ValueError or TypeError where a part is missing or of the wrong kind."""
    params = IdentifyParams.model_validate(facts["params"])
    counters = tuple(Counter(**one) for one in facts["counters"])
    names = tuple(one.name for one in counters)
    scale = None
    if "scale.centre" in arrays:
        logged = tuple(one.is_rate for one in counters)
        scale = Scale(names, logged, arrays["scale.centre"], arrays["scale.spread"])
    known = _known(facts, arrays)
    _check(arrays, len(counters), len(known), len(facts["classes"]))
    return Model(
        params=params,
        maker=FingerprintMaker(counters, params.fingerprint, scale),
        levels=LevelScale(names, arrays["levels.units"], arrays["levels.typical"]),
        n_phases=int(facts["n_phases"]),
        known=known,
        learned_ids=tuple(str(one) for one in facts["learned"]),
        judge=_judge(facts, arrays, texts, known, params),
        open_set=_open_set(facts, arrays),
    )


def _check(arrays: Arrays, n_counters: int, n_known: int, n_classes: int) -> None:
    """Raise ValueError where an array does not fit the names beside it."""
    expected = {
        "levels.units": (n_counters,),
        "levels.typical": (n_counters * len(LEVELS),),
        "metric.deviations": (n_counters * len(COMPARED),),
        "judge.points": (n_known, n_counters * len(COMPARED)),
        "judge.usual": (n_classes,),
        "calibration.weights": (len(EVIDENCE),),
    }
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} of shape {arrays[name].shape}, not {shape}")
    for name, width in (("known.workload_phases", n_counters * len(STATISTICS)), ("known.phase_means", n_counters)):
        if arrays[name].shape[1] != width:
            raise ValueError(f"{name} of {arrays[name].shape[1]} columns, not {width}")


def _known(facts: Facts, arrays: Arrays) -> tuple[KnownRun, ...]:
    ends = np.cumsum([int(n_phases) for *_, n_phases in facts["known"]])[:-1]
    phases = np.split(arrays["known.workload_phases"], ends)
    means = np.split(arrays["known.phase_means"], ends)
    return tuple(
        KnownRun(run_id, workload, of, one, mean)
        for (run_id, workload, of, _), one, mean in zip(facts["known"], phases, means, strict=True)
    )


def _judge(
    facts: Facts, arrays: Arrays, texts: Sequence[str], known: Sequence[KnownRun], params: IdentifyParams
) -> Judge:
    columns = tuple(arrays[TREE_COLUMNS.format(at)].astype(np.int64) for at in range(len(texts)))
    whitening = None
    if "whitening.gains" in arrays:
        whitening = Whitening(arrays["whitening.directions"], arrays["whitening.gains"])
    return Judge(
        trees=trees_from(tuple(facts["classes"]), columns, texts),
        metric=Metric(arrays["metric.deviations"], params.open_set.clip, whitening),
        points=arrays["judge.points"],
        labels=tuple(one.workload for one in known),
        usual=arrays["judge.usual"],
        spreads={name: Spread(mean, deviation, n) for name, (mean, deviation, n) in facts["spreads"].items()},
        neighbours=params.open_set.neighbours,
        deviations=params.similarity.deviations,
        distance_weight=params.trees.distance_weight,
    )


def _open_set(facts: Facts, arrays: Arrays) -> OpenSet:
    told = facts["open_set"]
    calibration = Calibration(
        arrays["calibration.centre"],
        arrays["calibration.deviation"],
        arrays["calibration.weights"],
        float(told["intercept"]),
        bool(told["is_learned"]),
    )
    return OpenSet(calibration, float(told["limit"]))
