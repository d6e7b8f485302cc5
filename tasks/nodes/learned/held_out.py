"""How good a model is on executions that it did not learn, and which of two is the better one."""

from dataclasses import dataclass

import numpy as np

from tasks.nodes.evaluate.measures import measures_of as detection_measures
from tasks.nodes.evaluate.network import measures_of
from tasks.nodes.fingerprint.judging import Judged
from tasks.nodes.fingerprint.settling import series_of
from tasks.nodes.perona.inputs import STRESSED, UNKNOWN, Inputs, Labels
from tasks.nodes.perona.network import PeronaNetwork
from tasks.nodes.type_tables import Bools
from tasks.warehouse.registry import Direction

DETECTED = ("auprc", "weighted_f1", "false_alarms_per_1000", "f1_outlier", "f1_normal", "balanced_accuracy")
BY_LABELS, WITHOUT = "auprc", "error_ratio"
Figures = dict[str, float]


@dataclass(frozen=True)
class Measured:
    """figures: of held-out executions, those that can be had, what matters most first, as lists show the first few.

    metric: which of them parts the better from the worse."""

    figures: Figures
    metric: str

    @property
    def direction(self) -> Direction:
        """Whether more of the metric is better."""
        return "higher" if self.metric == BY_LABELS else "lower"


def measure(
    inputs: Inputs, network: PeronaNetwork, judged: Judged, labels: Labels, is_learned: Bools, is_tested: Bools
) -> Measured:
    """Detection where both classes are labelled among the tested executions, and how well inputs are rebuilt.

    labels: (n,) of all executions. Without labels the better model is the one that rebuilds a type's own metrics
    better: mean squared error as a share of that of the type's mean (error_ratio)."""
    found = measures_of(inputs, network, is_learned, is_tested)
    own, by_mean = found["mse_own"], found["mse_own_mean_predictor"]
    ratio = own / by_mean if by_mean > 0 else np.nan
    found = {WITHOUT: ratio, "mse_own": own, "mse_own_mean_predictor": by_mean} | found
    is_known = is_tested & (labels != UNKNOWN) & np.isfinite(judged.logit)
    stressed = labels[is_known] == STRESSED
    metric = WITHOUT
    if stressed.any() and not stressed.all():
        told = detection_measures(
            judged.logit[is_known], judged.is_flagged[is_known], stressed, series_of(inputs)[is_known]
        )
        found = {name: value for name in DETECTED if (value := told[name]) is not None} | found
        metric = BY_LABELS
    return Measured({name: float(value) for name, value in found.items() if np.isfinite(value)}, metric)


def is_better(new: float | None, old: float | None, direction: Direction) -> bool:
    """Whether the new figure beats the old one; one that is not known beats nothing, and is beaten by any."""
    if new is None or not np.isfinite(new):
        return False
    if old is None or not np.isfinite(old):
        return True
    return new > old if direction == "higher" else new < old
