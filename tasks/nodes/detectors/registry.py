"""Detectors by name; what is measured of one is measured of all."""

from collections.abc import Callable

from tasks.nodes.detect.contenders import detector_scores, headline_scores, logistic_scores
from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.change_point import change_point_scores
from tasks.nodes.detectors.forest import forest_scores
from tasks.nodes.detectors.last_k import last_k_scores
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.zscore import zscore_scores
from tasks.nodes.type_tables import Floats

Detector = Callable[[Case, DetectorParams], Floats]  # (n_executions,), larger: more anomalous; NaN: nothing to say

PLAIN: dict[str, Detector] = {
    "detector": lambda case, _: detector_scores(case),
    "logistic": lambda case, _: logistic_scores(case),
    "headline": lambda case, _: headline_scores(case),
    "zscore": zscore_scores,
    "forest": forest_scores,
    "lastk": last_k_scores,
    "changepoint": change_point_scores,
}
