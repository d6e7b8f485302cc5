"""Trees over single deviations: what they find, and whose labels they see."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.detectors.boosted import boosted_scores
from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.deviations import deviations_of
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.evaluate.alarms import average_precision, precision_recall
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.tabulating import learn_tables


@pytest.fixture(scope="module")
def case(campaign):
    """A drawn campaign of which the first 60 % are learned from."""
    history, _ = campaign(runs=30, types=2)
    n = len(history.executions)
    is_train = np.arange(n) < 0.6 * n
    stressed = history.executions["is_stressed"].to_numpy(dtype=bool)
    tables = learn_tables(history, is_train, PreprocessParams())
    return Case(history, tables, is_train, is_train & ~stressed, np.zeros(n, dtype=bool))


def scores_of(case):
    return boosted_scores(case, deviations_of(case, DetectorParams(), node_metrics=True))


def labelled(case, labels):
    return replace(case, history=replace(case.history, executions=case.history.executions.assign(is_stressed=labels)))


def test_what_came_with_stress_in_training_is_found_in_what_follows(case):
    stressed = case.history.executions["is_stressed"].to_numpy(dtype=bool)
    is_tested = ~case.is_train
    found = average_precision(precision_recall(scores_of(case)[is_tested], stressed[is_tested]))
    assert found > 2 * stressed[is_tested].mean()


def test_labels_of_what_is_not_learned_change_nothing(case):
    """The labels of the later 40 % are turned around."""
    own = case.history.executions["is_stressed"].to_numpy(dtype=bool)
    turned = np.where(case.is_train, own, ~own)
    np.testing.assert_array_equal(scores_of(case), scores_of(labelled(case, turned)))


def test_without_both_kinds_in_training_nothing_is_said(case):
    none = np.zeros(len(case.is_train), dtype=bool)
    assert np.isnan(scores_of(labelled(case, none))).all()
    assert np.isnan(scores_of(replace(labelled(case, ~none), is_normal=none))).all()


def test_the_same_case_gives_the_same_scores(case):
    np.testing.assert_array_equal(scores_of(case), scores_of(case))
