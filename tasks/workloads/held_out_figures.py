"""What a model made of the runs that were held out of its training."""

import logging
from collections.abc import Sequence
from typing import Any

import pandas as pd

from tasks.errors import BadInput
from tasks.workloads.evaluate.scores import confusion_of, score_of
from tasks.workloads.holding_out import HeldOut
from tasks.workloads.identify.counters import comparable
from tasks.workloads.identify.identification import Identification, identify_all
from tasks.workloads.identify.model import Model
from tasks.workloads.telemetry import Telemetry

METRIC = "held_out.accuracy"
UNKNOWN = ""  # in confusions: none of the known workloads
Figures = dict[str, Any]
logger = logging.getLogger(__name__)


def figures_of(parts: HeldOut, told: Sequence[Identification]) -> Figures:
    """What identifying the held-out runs was worth; a run that is called unknown is not identified.

    Workloads that only the held-out part has are not among them: they were to be called unknown."""
    classes = {str(run.workload) for run in parts.train}
    pairs = [(str(run.workload), one) for run, one in zip(parts.test, told, strict=True)]
    ours = [(workload, one) for workload, one in pairs if workload in classes]
    if not ours:
        raise BadInput(parts.name, "no run of a workload that was learned", "runs of the same workloads", "record more")
    score = score_of([workload for workload, _ in ours], [called(one) for _, one in ours])
    nearest = [_nearest(one) for _, one in ours]
    new = [one for workload, one in pairs if workload not in classes]
    return {
        METRIC: score.accuracy,
        "held_out.macro_f1": score.macro_f1,
        "held_out.false_unknown": sum(not one.is_known for _, one in ours) / len(ours),
        "held_out.nearest_accuracy": sum(a == b for a, (b, _) in zip(nearest, ours, strict=True)) / len(ours),
        "held_out.confidence": sum(one.confidence for _, one in ours) / len(ours),
        "held_out.n": len(ours),
        "held_out.n_windows": sum(
            is_window for run, is_window in zip(parts.test, parts.is_window, strict=True) if run.workload in classes
        ),
        "held_out.n_new": len(new),
        "held_out.n_new_unknown": sum(not one.is_known for one in new),
        "trained.n": len(parts.train),
        "trained.n_windows": parts.n_windows,
        "trained.classes": len(classes),
    }


def confusion(runs: Sequence[Telemetry], told: Sequence[Identification]) -> pd.DataFrame:
    """How often each workload was taken for which: workload, identified_as, n_runs."""
    counted = confusion_of([str(run.workload) for run in runs], [called(one) for one in told])
    return counted.rename(columns={"actual": "workload", "predicted": "identified_as", "n": "n_runs"})


def called(one: Identification) -> str:
    """What a run was taken for; UNKNOWN if for none of the known workloads."""
    return one.workload if one.is_known and one.workload is not None else UNKNOWN


def _nearest(one: Identification) -> str:
    return one.nearest[0][0] if one.nearest else UNKNOWN


def accuracy_on(model: Model, runs: Sequence[Telemetry]) -> float | None:
    """Share of the runs that a model identifies; None without a run. One that lacks its counters is not identified."""
    able = [run for run in runs if _is_comparable(run, model)]
    told = identify_all(able, model, with_reasons=False)
    n_right = sum(called(one) == run.workload for run, one in zip(able, told, strict=True))
    return n_right / len(runs) if runs else None


def _is_comparable(run: Telemetry, model: Model) -> bool:
    try:
        comparable(run, model.maker.counters, model.params.fingerprint.least_common)
    except BadInput as error:
        logger.info("%s", error)
        return False
    return True
