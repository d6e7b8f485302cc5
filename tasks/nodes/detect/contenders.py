"""The detectors that an evaluation compares, as functions of a case: ours, with labels and without, and plain ones."""

from collections.abc import Callable

import numpy as np

from tasks.nodes.aspects import hours_of, is_contaminated, is_stressed, is_unstressed
from tasks.nodes.detect.detector import BEST, LOGISTIC, FittedDetector, Recipe, fit_detector
from tasks.nodes.detect.params import DetectorParams
from tasks.nodes.detect.plain import Case, change_point_scores, forest_scores, last_k_scores, zscore_scores
from tasks.nodes.type_tables import Bools, Floats

Detector = Callable[[Case], Floats]  # (n_executions,), larger: more anomalous; NaN: nothing to say
OUT_OF_FOLD = ("detector", "logistic")  # what they say of what they learned is by what the other stretches taught
WITHOUT_LABELS = "headline"  # what these are where no stress is known
BASELINE = "logistic"  # what a detector has to beat
EVEN_ODDS = 0.0  # score from which one of ours flags without a label to choose by


def detector_scores(case: Case) -> Floats:
    """Our detector: (n_executions,), out of fold where it learned."""
    return _by_labels(case, BEST)


def logistic_scores(case: Case) -> Floats:
    """One regularised logistic regression a type on deviations from the node's level: (n_executions,), likewise."""
    return _by_labels(case, LOGISTIC)


def headline_scores(case: Case) -> Floats:
    """Ours without labels: the headline metrics' deviations from what the node did lately, (n_executions,).

    It is told nothing of stress, also where others are: what completed undisturbed counts as calm."""
    executions = case.history.executions
    is_undisturbed = ((executions["status"] == "completed") & ~is_contaminated(executions)).to_numpy(dtype=bool)
    is_learned = (case.is_train | case.is_validation) & is_undisturbed
    nobody = np.zeros(len(is_learned), dtype=bool)
    return _fitted(case, BEST, is_learned, nobody, is_learned).score(case.tables, hours_of(executions)).score


def _by_labels(case: Case, recipe: Recipe) -> Floats:
    executions = case.history.executions
    is_learned = case.is_train | case.is_validation
    known = executions["is_stressed"].notna().to_numpy()
    stressed, calm = (one(executions).to_numpy(dtype=bool) for one in (is_stressed, is_unstressed))
    is_learned &= stressed | calm | ~known
    fitted = _fitted(case, recipe, is_learned, stressed, calm)
    scores = fitted.score(case.tables, hours_of(executions)).score
    return np.where(np.isnan(fitted.in_training), scores, fitted.in_training)


def _fitted(case: Case, recipe: Recipe, is_learned: Bools, stressed: Bools, calm: Bools) -> FittedDetector:
    hours = hours_of(case.history.executions)
    return fit_detector(case.tables, hours, is_learned, stressed, calm, DetectorParams(), recipe=recipe, seed=case.seed)


DETECTORS: dict[str, Detector] = {
    "detector": detector_scores,
    "logistic": logistic_scores,
    "headline": headline_scores,
    "zscore": zscore_scores,
    "forest": forest_scores,
    "lastk": last_k_scores,
    "changepoint": change_point_scores,
}
