"""The words beside figures: they are there with the data, and say why there is no figure without."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.shapes import InertiaCurve
from tasks.report.explain_beeswarm import Swarm
from tasks.report.explain_figures import importance_figure, one_run_figure, swarm_figure, two_shapes_figure
from tasks.report.explain_importance import Importances
from tasks.report.explain_one_run import Reason, RunReasons
from tasks.report.explain_two_shapes import TwoShapes
from tasks.report.figure_of import figure_of
from tasks.report.prediction_by_history import AccuracyByHistory
from tasks.report.prediction_calibration import CalibrationCheck
from tasks.report.prediction_confusion import Confusion
from tasks.report.prediction_distances import DistanceComparison
from tasks.report.prediction_fan import COLUMNS, Fan
from tasks.report.prediction_figures import (
    accuracy_figure,
    calibration_figure,
    confusion_figure,
    distances_figure,
    fan_figure,
    quantiles_figure,
)
from tasks.report.prediction_quantiles import QuantileComparison
from tasks.report.shapes_cov_faults import CovFaults
from tasks.report.shapes_figures import cov_figure, inertia_figure, likelihood_figure, shapes_figure
from tasks.report.shapes_inertia import InertiaChoice
from tasks.report.style import WIDE_IN
from tasks.report.whatif_figures import migration_figure, pairs_figure
from tasks.report.whatif_migration import MigrationMap
from tasks.report.whatif_pairs import PairChanges

NONE = np.zeros((0, 2))
EMPTY = {
    "cov": (cov_figure, CovFaults(1, 20, None, None, None)),
    "confusion": (lambda data: confusion_figure(data, "ratio"), Confusion(np.zeros((2, 2), dtype=int))),
    "accuracy": (lambda data: accuracy_figure(data, "delta"), AccuracyByHistory([])),
    "quantiles": (quantiles_figure, QuantileComparison({})),
    "distances": (distances_figure, DistanceComparison({})),
    "calibration": (calibration_figure, CalibrationCheck(np.zeros(0))),
    "fan": (fan_figure, Fan("job", pd.DataFrame(columns=COLUMNS), pd.DataFrame(columns=COLUMNS[:2]))),
    "importance": (importance_figure, Importances(pd.DataFrame({"words": [], "importance": []}), "gain", 0)),
    "swarm": (swarm_figure, Swarm(NONE, NONE, ["a", "b"], "shape 0")),
    "two": (two_shapes_figure, TwoShapes(NONE, NONE, ["a", "b"], "shape 0", "shape 1")),
    "one": (one_run_figure, RunReasons("run", "odds", 0.5, 0.5, [], 9)),
    "migration": (migration_figure, MigrationMap(np.zeros((2, 2), dtype=int), "x")),
    "pairs": (pairs_figure, PairChanges(np.zeros(0), np.zeros(0), "x")),
}


@pytest.mark.parametrize("name", EMPTY)
def test_without_data_the_words_say_why_and_nothing_is_drawn(name):
    make, empty = EMPTY[name]
    for data in (None, empty):
        figure = make(data)
        assert (figure.draw, figure.evidence) == (None, "n = 0")
        assert figure.words.endswith(".")
        assert len(figure.words) > 30


def test_shapes_without_data_say_why():
    for figure in (shapes_figure(None, "ratio"), inertia_figure(None, "ratio"), likelihood_figure(None)):
        assert figure.draw is None


def test_the_words_hold_the_numbers_of_the_figure():
    curve = InertiaCurve([1, 2, 3, 4], [9.0, 2, 1.5, 1], 2)
    figure = inertia_figure(InertiaChoice(curve, 3, 40), "delta")
    assert "is at 2. 3 were chosen." in figure.words
    assert figure.draw(WIDE_IN)
    flat = InertiaCurve([1, 2], [1.0, 1.0], None)
    assert "no elbow" in inertia_figure(InertiaChoice(flat, 2, 4), "delta").words
    held = calibration_figure(CalibrationCheck(np.array([0.0, 0.25, 0.5, 0.75])))
    assert "The 90 % interval held 75.0 %." in held.words
    run = one_run_figure(RunReasons("run", "odds of a slow run", 0.1, 0.3, [Reason("input", 3.0)], 9))
    assert "multiplies the odds of a slow run" in run.words
    assert run.draw(WIDE_IN)


def test_data_that_turns_out_empty_when_drawn_is_an_error_and_no_blank_figure():
    figure = figure_of("x", "x", "x", "n = 1", lambda data, width_in: None, 1, nothing="none")
    with pytest.raises(ValueError, match="nothing to draw"):
        figure.draw(WIDE_IN)
