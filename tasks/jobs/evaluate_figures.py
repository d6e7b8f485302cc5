"""The figures of an evaluation by key: `<part>.<measure>[.<slice>]`, None with a reason where one cannot be had."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.jobs.labels.evaluation import LabelEvaluation
from tasks.jobs.predict.job_keys import GIVEN, KeyChoice
from tasks.jobs.predict.preparation import Prepared
from tasks.jobs.predict.rows import OWN
from tasks.jobs.predict.runtime_evaluation import (
    RuntimeEvaluation,
    Scored,
)
from tasks.jobs.shape_params import Kind

Figures = dict[str, Any]
REFERENCES = ("ceiling", "split_half", "history_baseline")


def _set(figures: Figures, key: str, value: float | int | None, reason: str | None = None) -> None:
    """A figure, or None and its reason."""
    is_known = value is not None and bool(np.isfinite(value))
    figures[key] = value if is_known else None
    if not is_known:
        figures[f"{key}.reason"] = reason or "not a number"


def key_figures(choice: KeyChoice | None, given: Sequence[str]) -> Figures:
    """What a job is in this evaluation, why, and what the history rule reaches by other keys; given: as it was set."""
    if choice is None:
        return {"group.by": ",".join(given), "group.reason": "as it was set"}
    crps_s = {f"group.crps.{key}": value for key, value in choice.crps_s.items()}
    return {"group.by": ",".join(choice.by) or GIVEN, "group.reason": choice.reason} | crps_s


def log_figures(prepared: Prepared) -> Figures:
    """n, groups, recurring_share, and how the log was split."""
    runs = prepared.runs
    sizes = runs["group_key"].value_counts()
    figures: Figures = {
        "n": len(runs),
        "groups": len(sizes),
        "recurring_share": float(sizes[sizes >= 2].sum() / len(runs)),
    }
    used = [str(name).removeprefix(OWN) for name in prepared.features if str(name).startswith(OWN)]
    if used or prepared.left_out:
        figures |= {"own.used": used} | {f"own.left_out.{name}": why for name, why in prepared.left_out.items()}
    for part, found in runs.groupby("part", observed=False):
        figures[f"split.n.{part}"] = len(found)
        figures[f"split.groups.{part}"] = int(found["group_key"].nunique())
    sources = runs["median_source"][prepared.is_part("D3")].value_counts(normalize=True)
    figures |= {f"median_source.share.{source}": float(value) for source, value in sources.items()}
    return figures


def label_figures(prepared: Prepared, kind: Kind, found: LabelEvaluation | None, reason: str) -> Figures:
    """Shapes, and the accuracy of their labels beside its references, for one normalisation."""
    shapes, figures = prepared.shapes[kind], Figures()
    _set(figures, f"shapes.k.{kind}", len(shapes.centres))
    _set(figures, f"shapes.inertia.{kind}", shapes.inertia)
    figures |= {f"shapes.low.{kind}": shapes.bins.low, f"shapes.high.{kind}": shapes.bins.high}
    if kind == "ratio":
        figures |= {"shapes.k": len(shapes.centres), "shapes.inertia": shapes.inertia}
    why = reason or "no test run of a job with enough runs in the test period"
    report = found.report if found else None
    _set(figures, f"label.accuracy.{kind}", report.accuracy if report else None, why)
    _set(figures, f"label.accuracy_group.{kind}", report.accuracy_group if report else None, why)
    _set(figures, f"label.log_loss.{kind}", report.log_loss if report else None, why)
    _set(figures, f"label.n.{kind}", report.n if report else 0)
    so_far, start = (found.so_far, found.start) if found else (None, None)
    _set(figures, f"label.accuracy_so_far.{kind}", so_far.accuracy if so_far else None, why)
    _set(figures, f"label.log_loss_so_far.{kind}", so_far.log_loss if so_far else None, why)
    _set(figures, f"label.n_start.{kind}", start.n if start else 0)
    _set(figures, f"label.accuracy_start.{kind}", start.accuracy if start else None, why)
    _set(figures, f"label.ceiling_start.{kind}", start.ceiling if start else None, why)
    for name in REFERENCES:
        one = found.references[name] if found else None
        _set(figures, f"label.{name}.{kind}", one.by_run if one else None, one.reason if one else why)
        _set(figures, f"label.{name}_group.{kind}", one.by_group if one else None, one.reason if one else why)
    for row in found.occurrences.to_dict("records") if found else []:
        for name in ("model", "so_far", *REFERENCES):
            _set(figures, f"label.{name}_by_history.{kind}.{row['slice']}", row[name], "no such job has enough runs")
    return figures


def runtime_figures(found: RuntimeEvaluation) -> Figures:
    """Scores of the predicted runtime distributions of each predictor."""
    figures: Figures = {"predict.n": len(found.rows)}
    figures |= {f"model.weight.{part}": weight for part, weight in found.model.weights.items()}
    figures |= {"model.is_relative": found.model.is_relative}
    _set(figures, "model.grace", found.model.grace, "time limits are not kept, or there are none")
    for name, one in found.scored.items():
        for measure, (value, reason) in _measures(one).items():
            _set(figures, f"predict.{measure}.{name}", value, reason)
        for tenth, share in enumerate(one.tenths, start=1):
            _set(figures, f"predict.coverage90_tenth.{name}.{tenth}", share)
        _set(figures, f"unseen.crps.{name}", one.unseen_crps.value, "every tested job had run before")
    figures["unseen.n"] = found.scored["model"].unseen_crps.n
    for name, difference in found.differences.items():
        _set(figures, f"difference.crps.{name}", difference.value, difference.reason)
        _set(figures, f"difference.crps_low.{name}", difference.low, difference.reason)
        _set(figures, f"difference.crps_high.{name}", difference.high, difference.reason)
    return figures


def _measures(one: Scored) -> dict[str, tuple[float | None, str | None]]:
    return {
        "crps": (one.crps.value, one.crps.reason),
        "log_score": (one.log_score.value, one.log_score.reason),
        "coverage90": (one.coverage.share, one.coverage.reason),
        "width90_s": (one.coverage.width_s, one.coverage.reason),
        "ks_group": (one.ks_group.value, one.ks_group.reason),
        "ks_group_n": (one.ks_group.n_groups, one.ks_group.reason),
        "ks_pooled": (one.pooled.ks, one.pooled.reason),
        "percentile_mae_s": (one.pooled.mae_s, one.pooled.reason),
        "pit_error": (one.calibration.error, one.calibration.reason),
    }
