"""Plain detectors: values worked out by hand, what they may know, and what they find in drawn histories."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detect.plain import DetectionCase, levelled, zscore_scores
from tasks.nodes.history import History
from tasks.nodes.params import PreprocessParams
from tasks.nodes.preprocess.fitting import learn_tables


def chronological(history, share=0.6):
    """A case that learns from the first share of the history."""
    n = len(history.executions)
    is_train = np.arange(n) < share * n
    stressed = history.executions["is_stressed"].to_numpy(dtype=bool)
    tables = learn_tables(history, is_train, PreprocessParams())
    return DetectionCase(history, tables, is_train, is_train & ~stressed, np.zeros(n, dtype=bool))


def test_a_z_score_is_the_root_mean_square_of_deviations_from_the_level(tables):
    """Normal values e^-2 to e^2: median 1, absolute deviations of logarithms 2 1 0 1 2, so 1.4826. e^6 and e^-6 lie
    6 / 1.4826 away, e^0 0; normal ones lie 0, 1 and 2 / 1.4826 away, half of them 1 or less: the middle, spread 1."""
    x = np.array([-2.0, -1, 0, 1, 2] * 2 + [6, -6, 0])
    found, n = tables(np.exp(x)[:, None], [0] * 13), np.arange(13)
    times = pd.DataFrame({"started_at": pd.date_range("2026-01-01", periods=13)})
    case = DetectionCase(History(times, pd.DataFrame(), pd.DataFrame()), found, n < 10, n < 10, n >= 10)
    assert zscore_scores(case)[10:] == pytest.approx([(6 - 1) / 1.4826, (6 - 1) / 1.4826, -1 / 1.4826])


def test_levelled_scores_are_in_deviations_of_what_is_normal():
    found = levelled(np.array([8.0, 9, 10, 11, 12, 25]), np.arange(6) < 5)
    assert found[[2, 5]] == pytest.approx([0, 15 / 1.4826])


def changed_later(history, first):
    """The history with all values from an execution on a tenth of what they were, and its last tenth missing."""
    is_late = history.metrics["execution"].to_numpy() >= first
    metrics = history.metrics.assign(value=np.where(is_late, 0.1, 1.0) * history.metrics["value"])
    cut = len(history.executions) - len(history.executions) // 10
    return replace(history, metrics=metrics).where(np.arange(len(history.executions)) < cut)


def test_later_executions_say_nothing_of_earlier_ones(campaign):
    """A detector that looks ahead would tell a change before it happens."""
    history, _ = campaign(nodes=2, runs=40, types=3)
    n, border = len(history.executions), 200
    n_train = int(0.6 * n)
    case, other = chronological(history), changed_later(history, border)
    is_train = np.arange(len(other.executions)) < n_train
    stressed = other.executions["is_stressed"].to_numpy(dtype=bool)
    tables = learn_tables(other, is_train, PreprocessParams())
    changed = DetectionCase(other, tables, is_train, is_train & ~stressed, np.zeros(len(is_train), dtype=bool))
    before, after = zscore_scores(case), zscore_scores(changed)
    np.testing.assert_allclose(before[:border], after[:border], rtol=1e-9, atol=1e-9)
    assert not np.allclose(before[border : len(after)], after[border:])


def test_labels_of_tested_executions_are_not_looked_at(campaign):
    history, _ = campaign(nodes=2, runs=30, types=2)
    case = chronological(history)
    blind = history.executions.assign(
        is_stressed=history.executions["is_stressed"].where(case.is_train, other=False), dose="", dose_level=0
    )
    unlabelled = replace(case, history=replace(history, executions=blind))
    np.testing.assert_array_equal(zscore_scores(case), zscore_scores(unlabelled))


def test_a_type_that_nobody_trained_on_is_no_error(campaign):
    history, _ = campaign(nodes=2, runs=20, types=2)
    case = chronological(history)
    alone = replace(case, is_train=np.zeros_like(case.is_train), is_normal=np.zeros_like(case.is_normal))
    scores = zscore_scores(alone)
    assert len(scores) == len(history.executions) and not np.isinf(scores).any()
