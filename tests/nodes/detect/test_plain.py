"""Plain detectors: values worked out by hand, what they may know, and what they find in drawn histories."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

from tasks.nodes.detect.plain import Case, learn_normal, levelled, power_mean, z_scores, zscore_scores
from tasks.nodes.params import PreprocessParams
from tasks.nodes.preprocess.fitting import learn_tables


def z_of(found, n_train, nodes=2):
    normal = learn_normal(found.natural, found.nodes, np.arange(len(found.executions)) < n_train, nodes)
    return z_scores(found, normal)[:, 0]


def chronological(history, share=0.6):
    """A case that learns from the first share of the history."""
    n = len(history.executions)
    is_train = np.arange(n) < share * n
    stressed = history.executions["is_stressed"].to_numpy(dtype=bool)
    tables = learn_tables(history, is_train, PreprocessParams())
    return Case(history, tables, is_train, is_train & ~stressed, np.zeros(n, dtype=bool))


def test_a_z_score_is_in_robust_deviations_of_the_node_itself(table):
    """Training values 8 to 12: median 10, absolute deviations 2 1 0 1 2, so 1.4826; 4 lies 6 / 1.4826 below."""
    rows = [(0, value) for value in (8, 9, 10, 11, 12) * 2 + (4, 10)]
    found = z_of(table(rows), 10)
    assert found[10] == pytest.approx(6 / 1.4826) and found[11] == 0
    mirrored = z_of(table(rows, orientation=[-1]), 10)
    assert mirrored[10] == pytest.approx(-6 / 1.4826)  # less is better: no harm


def test_a_slow_node_is_judged_by_itself_and_a_new_one_by_its_own_past_then(table):
    """Node 0 runs at 100, node 1 at 50: neither is odd. Node 1 did not train: after ten runs its past is known."""
    steps = (0.98, 1.0, 1.02, 1.0, 0.99, 1.01) * 2
    rows = [(0, 100 * step) for step in steps] + [(1, 50 * step) for step in steps] + [(1, 50.0)]
    both = z_of(table(rows), 24)
    assert np.abs(both).max() < 3
    first = z_of(table(rows), 12)
    assert np.abs(first[12:22]).min() > 10 and np.abs(first[22:]).max() < 3


def test_a_metric_that_hardly_ever_varies_has_a_spread_all_the_same():
    normal = learn_normal(np.array([[0.0]] * 9 + [[10.0]]), np.zeros(10, dtype=np.int64), np.ones(10, dtype=bool), 1)
    assert normal.within[0] == pytest.approx(1.2533)  # mean absolute deviation 1


def test_a_power_mean_leaves_out_what_was_not_measured():
    found = power_mean(np.array([[3.0, 4.0], [np.nan, 4.0], [np.nan, np.nan]]))
    assert found[:2] == pytest.approx([np.sqrt(12.5), 4]) and np.isnan(found[2])
    assert power_mean(np.array([[1e9, 0.0]]))[0] == pytest.approx(np.sqrt(5000))  # cut at 100


def test_levelled_scores_are_in_deviations_of_what_is_normal():
    scores = np.array([8.0, 9, 10, 11, 12, 25, np.nan])
    found = levelled(scores, np.arange(7) < 5)
    assert found[[2, 5, 6]] == pytest.approx([0, 15 / 1.4826, 0])


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
    changed = Case(other, tables, is_train, is_train & ~stressed, np.zeros(len(is_train), dtype=bool))
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


def test_stress_at_a_large_dose_is_found(campaign):
    """Ten deviations of performance: far more of them are found than the one in fifteen that chance would."""
    history, _ = campaign(nodes=3, runs=60, seed=3, quality={})
    case = chronological(history)
    scores = zscore_scores(case)
    executions = history.executions
    is_asked = ~case.is_train & executions["dose_level"].isin([0, 3]).to_numpy()
    stressed = executions["is_stressed"].to_numpy(dtype=bool)[is_asked]
    found = average_precision_score(stressed, scores[is_asked])
    assert found > 0.9, found


def test_the_z_score_does_not_depend_on_the_unit(campaign):
    history, _ = campaign(nodes=2, runs=30, types=2)
    case = chronological(history)
    larger = replace(
        case, tables=replace(case.tables, tables=tuple(replace(t, natural=t.natural * 1e6) for t in case.tables.tables))
    )
    np.testing.assert_allclose(zscore_scores(case), zscore_scores(larger), rtol=1e-6)


def test_a_type_that_nobody_trained_on_is_no_error(campaign):
    history, _ = campaign(nodes=2, runs=20, types=2)
    case = chronological(history)
    alone = replace(case, is_train=np.zeros_like(case.is_train), is_normal=np.zeros_like(case.is_normal))
    scores = zscore_scores(alone)
    assert len(scores) == len(history.executions) and not np.isinf(scores).any()


def test_without_labels_all_training_executions_are_learned_from(campaign):
    history, _ = campaign(nodes=2, runs=20, types=2)
    labels = pd.array([pd.NA] * len(history.executions), dtype="boolean")
    unlabelled = replace(history, executions=history.executions.assign(is_stressed=labels))
    is_train = np.arange(len(labels)) < 50
    case = Case(unlabelled, learn_tables(unlabelled, is_train, PreprocessParams()), is_train, is_train, ~is_train)
    assert np.isfinite(zscore_scores(case)).all()
