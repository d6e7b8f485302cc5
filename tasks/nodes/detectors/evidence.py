"""What the network is told of an execution beside its fingerprint."""

import numpy as np

from tasks.nodes.detectors.boosted import boosted_scores
from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.deviations import COLUMNS, deviations_of, deviations_told
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.registry import PLAIN
from tasks.nodes.type_tables import Floats


def n_evidence() -> int:
    """Numbers that an execution comes with."""
    return len(PLAIN) + 1 + 2 * len(COLUMNS)


def evidence_of(case: Case, params: DetectorParams, *, node_metrics: bool, taught: Case | None = None) -> Floats:
    """What each plain detector says, what trees make of single metrics (boosted.py), and how far the execution deviates
    (deviations.py): (n_executions, n_evidence()), NaN where nothing can be said.

    node_metrics: whether what the node itself did counts too. taught: what the trees learn from, if it is not the case
    itself: the same executions, some of them under imitated stress."""
    plain = [detector(case, params) for detector in PLAIN.values()]
    deviations = deviations_of(case, params, node_metrics=node_metrics)
    lesson = (taught, deviations_of(taught, params, node_metrics=node_metrics)) if taught else None
    return np.column_stack([*plain, boosted_scores(case, deviations, lesson), deviations_told(deviations)])
