"""`inject.<kind>.<measure>.<detector>`: degradation that was put into an unlabelled history, told by every detector."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.nodes.aspects import APPLICATION, type_names
from tasks.nodes.detect.contenders import Detector
from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.detection import Prepare, case_of, labels_reason
from tasks.nodes.evaluate.figures import Figures, put
from tasks.nodes.evaluate.injection import FEW_NODES, long_lived, spoil, types_drawn
from tasks.nodes.evaluate.injection_measures import (
    CALM_MEASURES,
    MEASURES,
    Verdicts,
    calm_measures,
    node_months,
    spoiled_measures,
)
from tasks.nodes.evaluate.learned import NO_STRESS
from tasks.nodes.evaluate.learned_figures import put_seeds
from tasks.nodes.evaluate.learned_params import NAMES
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.splits import Split, splits_of
from tasks.nodes.evaluate.thresholds import choose_threshold
from tasks.nodes.history import History
from tasks.nodes.type_tables import Floats
from tasks.progress import report_progress

CALM = "unaltered"
TYPES = 9  # stream of the seed: which benchmark types are judged
LABELLED = "some executions are known to be stressed: see detect"
NOT_TOLD = "no spoiled node was told, or nothing was spoiled"
Judge = Callable[[Case], Floats]  # a case to the scores of its executions


@dataclass(frozen=True)
class Injected:
    """rows: one a repeat, kind and detector: repeat, kind, detector, n_nodes (spoiled), n_spoiled, and the measures;
    kind `unaltered` is the history as it is. reasons: by detector, empty where it judged. n_nodes: long-lived ones;
    n_types, n_executions: what was judged of them."""

    rows: pd.DataFrame
    reasons: dict[str, str]
    n_nodes: int
    node_months: float
    n_types: int = 0
    n_executions: int = 0


def inject(history: History, prepare: Prepare, detectors: Mapping[str, Detector], params: EvaluateParams) -> Injected:
    """Spoil results of long-lived nodes, and let the plain detectors find them.

    Every detector learns once, from a first share of each node's executions that is never spoiled, and has its
    threshold from the share after that, where it flags params.false_alarm_share. Applications are left out; of more
    than injection.most_executions whole benchmark types are drawn."""
    asked = params.learned.injection
    names = [*detectors, *(NAMES[one] for one in params.learned.variants)]
    if not labels_reason(history.executions):
        return Injected(pd.DataFrame(), dict.fromkeys(names, LABELLED), 0, 0.0)
    micro = history.where((history.executions["aspect"] != APPLICATION).to_numpy(dtype=bool))
    nodes = long_lived(micro, asked)
    if len(nodes) < 2:
        reason = FEW_NODES.format(len(nodes), asked.least_runs)
        return Injected(pd.DataFrame(), dict.fromkeys(names, reason), len(nodes), 0.0)
    own = micro.where(micro.executions["node"].astype(str).isin(nodes).to_numpy(dtype=bool))
    own = own.where(types_drawn(own.executions, asked.most_executions, np.random.default_rng([params.seed, TYPES])))
    shares = {"train_share": asked.train_share, "validation_share": asked.validation_share}
    types = type_names(own.executions).tolist()
    ((split,),) = splits_of(own.executions, types, "chronological", params.model_copy(update=shares)).rounds
    case = case_of(own, split, prepare, params.seed)
    judges, reasons = _judges(detectors, params)
    calm = {name: _verdicts(judge(case), case, split, params) for name, judge in judges.items()}
    rows: list[dict[str, Any]] = [
        {"repeat": 0, "kind": CALM, "detector": name, **calm_measures(one, asked.alarm)} for name, one in calm.items()
    ]
    rows += _repeated(case, split, prepare, judges, params)
    months = node_months(next(iter(calm.values()))) if calm else 0.0
    n_types = len(set(types))
    return Injected(pd.DataFrame(rows), reasons, len(nodes), months, n_types, len(own.executions))


def _judges(detectors: Mapping[str, Detector], params: EvaluateParams) -> tuple[dict[str, Judge], dict[str, str]]:
    """What gives scores, by name, and why others do not: a network that knows of no stress gives no verdicts."""
    judges: dict[str, Judge] = dict(detectors)
    return judges, dict.fromkeys(judges, "") | {NAMES[one]: NO_STRESS for one in params.learned.variants}


def _repeated(
    case: Case, split: Split, prepare: Prepare, judges: Mapping[str, Judge], params: EvaluateParams
) -> Iterator[dict[str, Any]]:
    """The rows of every repeat and kind. A kind that is not possible here has none."""
    asked = params.learned.injection
    for number, kind in enumerate(asked.kinds):
        for repeat in range(asked.repeats):
            report_progress(f"degradation injected, {kind}", repeat, asked.repeats)
            rng = np.random.default_rng([params.seed, number, repeat])
            try:
                spoiled = spoil(case.history, case.tables, split.is_test, kind, asked, rng)
            except ValueError:
                break
            other = case_of(spoiled.history, split, prepare, params.seed)
            about = {"repeat": repeat, "kind": kind, "n_nodes": len(spoiled.nodes)}
            for name, judge in judges.items():
                verdicts = _verdicts(judge(other), other, split, params)
                told = spoiled_measures(verdicts, spoiled.is_spoiled[split.is_test], asked.alarm)
                yield {**about, "detector": name, "n_spoiled": int(spoiled.is_spoiled.sum()), **told}


def _verdicts(scores: Floats, case: Case, split: Split, params: EvaluateParams) -> Verdicts:
    """What a detector says of the tested executions."""
    chosen = scores[split.is_validation & ~np.isnan(scores)]
    threshold = choose_threshold(chosen, np.zeros(len(chosen), dtype=bool), params.false_alarm_share)
    tested = scores[split.is_test]
    return Verdicts(case.history.executions[split.is_test], tested, tested > threshold)


def injected_figures(found: Injected, params: EvaluateParams) -> Figures:
    """Means over repeats, with deviation and interval; null with a reason where nothing could be measured."""
    figures: Figures = {"inject.nodes": found.n_nodes}
    why = next((reason for reason in found.reasons.values() if reason), NOT_TOLD)
    counts = {"types": found.n_types, "executions": found.n_executions, "node_months": found.node_months}
    for name, count in counts.items():
        put(figures, f"inject.{name}", count or None, why)
    for name, reason in found.reasons.items():
        for kind in (CALM, *params.learned.injection.kinds):
            rows = (
                found.rows[(found.rows["kind"] == kind) & (found.rows["detector"] == name)] if len(found.rows) else None
            )
            for measure in CALM_MEASURES if kind == CALM else MEASURES:
                values = rows[measure].tolist() if rows is not None and len(rows) else []
                put_seeds(figures, f"inject.{kind}.{measure}.{name}", values, reason or _why(kind, values))
    return figures


def _why(kind: str, values: list[float]) -> str:
    if kind == "replaced" and not values:
        return "all long-lived nodes are of one machine type"
    return NOT_TOLD
