"""Plain detectors: values worked out by hand, what they may know, and what they find in drawn histories."""

from collections import deque
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

from tasks.errors import BadInput
from tasks.nodes.detect import plain
from tasks.nodes.detect.plain import (
    DETECTORS,
    Case,
    expected_fall,
    last_k_deviations,
    learn_normal,
    levelled,
    power_mean,
    recent_change,
    z_scores,
)
from tasks.nodes.preprocess.fitting import learn_tables
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.workloads.changepoints.finding import find_changepoints
from tasks.workloads.changepoints.params import ChangePointParams, PriorParams

PLAIN = ("zscore", "forest", "lastk", "changepoint")


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


def test_last_k_compares_with_executions_that_looked_normal():
    """The 9 is odd and enters no median: the next 0 is not."""
    found = last_k_deviations(np.array([[0.0], [1.0], [0.0], [9.0], [0.0]]), 3)
    assert np.isnan(found[0])
    assert found[1:].tolist() == [1, 0.5, 9, 0]


def test_last_k_takes_a_lasting_change_for_a_new_level_after_k_executions():
    found = last_k_deviations(np.array([[0.0]] * 5 + [[9.0]] * 6), 3)
    assert found[5:].tolist() == [9, 9, 9, 0, 0, 0]


def median(column):
    there = column[~np.isnan(column)]
    return float(np.median(there)) if len(there) else np.nan


def last_k_by_definition(series, k):
    """One execution after another, with the executions that looked normal in a queue."""
    normal, odd = deque(maxlen=k), deque(maxlen=k)
    found = np.full(len(series), np.nan)
    for at, row in enumerate(series):
        if normal:
            medians = np.array([median(column) for column in series[list(normal)].T])
            found[at] = power_mean((row - medians)[None, :])[0]
        if np.isnan(found[at]) or found[at] <= plain.LOOKS_NORMAL:
            normal.append(at)
            odd.clear()
            continue
        odd.append(at)
        if len(odd) == k:
            normal, odd = odd, deque(maxlen=k)
    return found


def drawn_series(n, m, missing, seed):
    """Levels that change now and then, single odd rows, some values missing, many of them alike."""
    rng = np.random.default_rng(seed)
    level = np.cumsum(rng.normal(0, 6, (n, m)) * (rng.random((n, 1)) < 0.05), axis=0)
    series = np.round(level + rng.normal(size=(n, m)) + 9 * (rng.random((n, 1)) < 0.05), 1)
    return np.where(rng.random((n, m)) < missing, np.nan, series)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 500])
@pytest.mark.parametrize(("m", "missing"), [(1, 0.0), (1, 0.4), (4, 0.3)])
def test_the_compiled_walk_through_time_is_the_definition(k, m, missing):
    for seed in range(3):
        series = drawn_series(120, m, missing, seed)
        np.testing.assert_allclose(last_k_deviations(series, k), last_k_by_definition(series, k), rtol=1e-12)


def test_nothing_to_walk_through_is_no_error():
    assert not len(last_k_deviations(np.empty((0, 3))))
    assert np.isnan(last_k_deviations(np.full((4, 2), np.nan))).all()
    assert np.isnan(last_k_deviations(np.empty((4, 0)))).all()


def test_infinite_values_are_cut_and_spoil_no_later_median():
    """They are odd, and a row after them is compared with the rows before them."""
    series = np.array([[0.0]] * 10 + [[np.inf], [-np.inf], [0.0], [1.0]])
    assert last_k_deviations(series)[10:].tolist() == [100, 100, 0, 1]


def test_a_fall_is_suspicious_and_a_rise_is_not():
    rng = np.random.default_rng(0)
    calm = rng.normal(size=60)
    falls = expected_fall(np.concatenate([calm, rng.normal(-8, 1, 5)]))
    rises = expected_fall(np.concatenate([calm, rng.normal(8, 1, 5)]))
    assert falls[60:62].min() > 4 and falls[5:60].max() < 2
    assert rises[60:].max() < 1


def test_the_start_of_a_series_is_no_change_and_nothing_measured_is_no_error():
    assert recent_change(np.zeros(3)).max() < 0.2
    assert expected_fall(np.full(4, np.nan)).tolist() == [0] * 4
    assert not len(expected_fall(np.zeros(0)))


def recent_by_run_lengths(series, expected, recent):
    """The posterior of find_changepoints, entry by entry."""
    prior = PriorParams(noise=1.0, trend_share=0.0)
    params = ChangePointParams(expected_run_length=expected, prior=prior, scale="none", outlier_deviations=0.0)
    posterior, found = find_changepoints(series, params).run_lengths, np.zeros(len(series))
    for at, row in enumerate(posterior.rows):
        part = slice(posterior.offsets[at], posterior.offsets[at + 1])
        for start, probability in zip(posterior.starts[part], posterior.probabilities[part], strict=True):
            if start > posterior.rows[0] and row - start < recent:
                found[row] += probability
    return found


@pytest.mark.parametrize(("expected", "recent"), [(50.0, 3), (10.0, 1), (200.0, 20)])
def test_a_recent_change_is_the_posterior_of_segments_that_began_lately(expected, recent):
    rng = np.random.default_rng(1)
    series = np.concatenate([rng.normal(size=60), rng.normal(-6, 1, 30), rng.normal(size=400)])
    series[[0, 5, 61, 62, 70]] = np.nan
    found = recent_change(series, expected, recent)
    np.testing.assert_allclose(found, recent_by_run_lengths(series, expected, recent), atol=1e-9)
    assert found[[0, 5, 61]].tolist() == [0, 0, 0] and found.max() > 0.2


def test_a_value_that_is_no_number_is_refused_and_none_at_all_is_no_change():
    with pytest.raises(BadInput):
        recent_change(np.array([0.0, np.inf]))
    assert recent_change(np.full(3, np.nan)).tolist() == [0, 0, 0]
    assert not len(recent_change(np.empty(0)))


def changed_later(history, first):
    """The history with all values from an execution on a tenth of what they were, and its last tenth missing."""
    is_late = history.metrics["execution"].to_numpy() >= first
    metrics = history.metrics.assign(value=np.where(is_late, 0.1, 1.0) * history.metrics["value"])
    cut = len(history.executions) - len(history.executions) // 10
    return replace(history, metrics=metrics).where(np.arange(len(history.executions)) < cut)


@pytest.mark.parametrize("name", PLAIN)
def test_later_executions_say_nothing_of_earlier_ones(name, campaign):
    """A detector that looks ahead would tell a change before it happens."""
    history, _ = campaign(nodes=2, runs=40, types=3)
    n, border = len(history.executions), 200
    n_train = int(0.6 * n)
    case, other = chronological(history), changed_later(history, border)
    is_train = np.arange(len(other.executions)) < n_train
    stressed = other.executions["is_stressed"].to_numpy(dtype=bool)
    tables = learn_tables(other, is_train, PreprocessParams())
    changed = Case(other, tables, is_train, is_train & ~stressed, np.zeros(len(is_train), dtype=bool))
    before, after = DETECTORS[name](case), DETECTORS[name](changed)
    np.testing.assert_allclose(before[:border], after[:border], rtol=1e-9, atol=1e-9)
    assert not np.allclose(before[border : len(after)], after[border:])


@pytest.mark.parametrize("name", PLAIN)
def test_labels_of_tested_executions_are_not_looked_at(name, campaign):
    history, _ = campaign(nodes=2, runs=30, types=2)
    case = chronological(history)
    blind = history.executions.assign(
        is_stressed=history.executions["is_stressed"].where(case.is_train, other=False), dose="", dose_level=0
    )
    unlabelled = replace(case, history=replace(history, executions=blind))
    np.testing.assert_array_equal(DETECTORS[name](case), DETECTORS[name](unlabelled))


@pytest.mark.parametrize("name", PLAIN)
def test_stress_at_a_large_dose_is_found(name, campaign):
    """Ten deviations of performance: far more of them are found than the one in fifteen that chance would."""
    history, _ = campaign(nodes=3, runs=60, seed=3, quality={})  # nodes alike: a forest knows no nodes
    case = chronological(history)
    scores = DETECTORS[name](case)
    executions = history.executions
    is_asked = ~case.is_train & executions["dose_level"].isin([0, 3]).to_numpy()
    stressed = executions["is_stressed"].to_numpy(dtype=bool)[is_asked]
    found = average_precision_score(stressed, scores[is_asked])
    # a tree cannot tell a value far outside from the outermost it has seen: the forest is the weakest
    assert found > {"forest": 0.5, "changepoint": 0.6}.get(name, 0.9), found


def test_the_z_score_does_not_depend_on_the_unit(campaign):
    history, _ = campaign(nodes=2, runs=30, types=2)
    case = chronological(history)
    larger = replace(
        case, tables=replace(case.tables, tables=tuple(replace(t, natural=t.natural * 1e6) for t in case.tables.tables))
    )
    np.testing.assert_allclose(DETECTORS["zscore"](case), DETECTORS["zscore"](larger), rtol=1e-6)


def test_a_type_that_nobody_trained_on_is_no_error(campaign):
    history, _ = campaign(nodes=2, runs=20, types=2)
    case = chronological(history)
    alone = replace(case, is_train=np.zeros_like(case.is_train), is_normal=np.zeros_like(case.is_normal))
    for name in PLAIN:
        scores = DETECTORS[name](alone)
        assert len(scores) == len(history.executions) and not np.isinf(scores).any(), name


def test_without_labels_all_training_executions_are_learned_from(campaign):
    history, _ = campaign(nodes=2, runs=20, types=2)
    labels = pd.array([pd.NA] * len(history.executions), dtype="boolean")
    unlabelled = replace(history, executions=history.executions.assign(is_stressed=labels))
    is_train = np.arange(len(labels)) < 50
    case = Case(unlabelled, learn_tables(unlabelled, is_train, PreprocessParams()), is_train, is_train, ~is_train)
    assert np.isfinite(DETECTORS["zscore"](case)).all()
