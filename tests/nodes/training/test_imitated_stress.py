"""Imitated stress: what it touches, by how much, and that the same is drawn again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.perona import imitated_stress
from tasks.nodes.perona.imitated_stress import needs_imitation, spreads_lost, with_imitated_stress
from tasks.nodes.perona.params import LossParams, ModelParams
from tasks.nodes.preprocess.fitting import fit
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.synthetic import synthetic_history
from tasks.nodes.tabulating import tables_of

PARAMS = DetectorParams()


def unlabelled_history(runs=60):
    history = synthetic_history(nodes=2, types=2, runs=runs, stressed=0.0, seed=1)
    labels = pd.array([pd.NA] * len(history.executions), dtype="boolean")
    return replace(history, executions=history.executions.assign(is_stressed=labels))


def case_of(history, *, n_seen=None, seed=0):
    """A case whose first 60 % train and the next 20 % validate; preprocessed by what the first n_seen teach."""
    n = n_seen or len(history.executions)
    at = np.arange(len(history.executions))
    is_train = at < 0.6 * n
    preprocessor = fit(history.where(is_train), PreprocessParams())
    is_validation = (at >= 0.6 * n) & (at < 0.8 * n)
    return Case(history, tables_of(history, preprocessor), is_train, is_train, is_validation, seed), preprocessor


@pytest.fixture(scope="module")
def told():
    """A case, and the same with imitated stress."""
    case, preprocessor = case_of(unlabelled_history())
    return case, with_imitated_stress(case, preprocessor, PARAMS)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_what_may_react_gets_worse_by_a_drawn_share_of_one_severity_and_one_at_least_does(seed):
    rng = np.random.default_rng(seed)
    may_react = rng.random((30, 5)) < 0.5
    lost = spreads_lost(may_react, rng)
    assert (lost[~may_react] == 0).all()
    assert ((lost > 0).any(axis=1) == may_react.any(axis=1)).all()
    some = np.where(lost > 0, lost, np.nan)[may_react.any(axis=1)]
    assert (np.nanmax(some, axis=1) <= imitated_stress.MOST).all()
    assert (np.nanmin(some, axis=1) >= imitated_stress.LEAST_FOLLOWED * imitated_stress.LEAST).all()
    assert (np.nanmax(some, axis=1) <= np.nanmin(some, axis=1) / imitated_stress.LEAST_FOLLOWED).all()
    assert spreads_lost(may_react[:, :0], rng).shape == (30, 0)


@pytest.mark.parametrize(("step", "spread"), [(1.0, 0.014826), (0.5, 0.01)])
def test_metrics_are_worse_by_spreads_of_their_node_over_its_median(monkeypatch, step, spread):
    """One metric of 99, 100 and 101 by turns: median 100, deviation 1.4826. Two spreads: less by e^(-0.029652).

    Of 99.5, 100 and 100.5 the deviation is less than a hundredth of the median."""
    history = unlabelled_history()
    is_first = history.metrics["metric"] == "events_per_second"
    by_turns = 100.0 + step * (history.metrics["execution"] // 2 % 3 - 1)
    values = np.where(is_first, by_turns, history.metrics["value"])
    case, preprocessor = case_of(replace(history, metrics=history.metrics.assign(value=values)))
    for name, value in {"LEAST": 2.0, "MOST": 2.0, "LEAST_FOLLOWED": 1.0, "LEAST_REACTING": 1.0}.items():
        monkeypatch.setattr(imitated_stress, name, value)
    monkeypatch.setattr(imitated_stress, "LOOKS_NORMAL", np.inf)
    worse = with_imitated_stress(case, preprocessor, replace_spread(0.01))
    before, after = (one.tables.tables[0] for one in (case, worse))
    place = before.metrics.index("events_per_second")
    moved = worse.history.executions["is_stressed"].fillna(False).to_numpy(dtype=bool)[before.executions]
    ratio = after.natural[moved, place] / before.natural[moved, place]
    assert moved.sum() > 10
    np.testing.assert_allclose(ratio, np.exp(-2 * spread), rtol=1e-6)


def replace_spread(least):
    """The node's own spread counts, however small it is beside that of others."""
    return PARAMS.model_copy(update={"least_spread": least})


def test_only_some_of_training_and_validation_is_touched_and_that_gets_worse(told):
    case, worse = told
    stressed = worse.history.executions["is_stressed"].astype("boolean")
    seen = case.is_train | case.is_validation
    assert stressed[~seen].isna().all()
    for part in (case.is_train, case.is_validation):
        assert 0.2 < stressed[part].mean() < 0.6  # of those that look normal two in five
    moved = stressed.fillna(False).to_numpy(dtype=bool)
    for before, after in zip(case.tables.tables, worse.tables.tables, strict=True):
        own = moved[before.executions]
        np.testing.assert_array_equal(after.natural[~own], before.natural[~own])
        gain = before.orientation * (after.natural - before.natural)[own]
        assert (gain <= 0).all() and (gain < 0).any(axis=1).all()
    assert (worse.is_normal == (case.is_normal & ~moved & stressed.notna().to_numpy())).all()


def test_what_looks_stressed_teaches_neither_kind_but_for_a_few():
    history = unlabelled_history()
    odd = np.arange(0, 100, 5)
    halved = np.where(history.metrics["execution"].isin(odd), 0.5, 1.0) * history.metrics["value"]
    case, preprocessor = case_of(replace(history, metrics=history.metrics.assign(value=halved)))
    worse = with_imitated_stress(case, preprocessor, PARAMS)
    is_left = worse.history.executions["is_stressed"].iloc[odd].isna().to_numpy()
    assert case.is_train[odd].all() and 0.7 < is_left.mean() < 1.0
    assert not worse.is_normal[odd[is_left]].any()


def test_the_same_is_drawn_again_when_later_executions_have_joined():
    long = unlabelled_history()
    n = int(0.9 * len(long.executions))
    short = long.where(np.arange(len(long.executions)) < n)
    first, again = (
        with_imitated_stress(*case_of(history, n_seen=n), PARAMS).history.executions["is_stressed"].iloc[:n]
        for history in (short, long)
    )
    pd.testing.assert_series_equal(first, again)
    values = [
        with_imitated_stress(*case_of(history, n_seen=n), PARAMS).history.metrics.query("execution < @n")["value"]
        for history in (short, long)
    ]
    np.testing.assert_array_equal(*values)


def test_a_metric_below_zero_gets_worse_too():
    history = unlabelled_history()
    case, preprocessor = case_of(replace(history, metrics=history.metrics.assign(value=-history.metrics["value"])))
    worse = with_imitated_stress(case, preprocessor, PARAMS)
    assert worse.history.executions["is_stressed"].any()
    for before, after in zip(case.tables.tables, worse.tables.tables, strict=True):
        assert (before.natural < 0).any()
        assert (before.orientation * (after.natural - before.natural) <= 0).all()


def test_values_keep_their_rows_when_a_metric_was_written_twice_or_none_is_kept():
    history = unlabelled_history()
    twice = replace(history, metrics=pd.concat([history.metrics, history.metrics], ignore_index=True))
    worse = with_imitated_stress(*case_of(twice), PARAMS).history.metrics
    once, again = worse.iloc[: len(history.metrics)], worse.iloc[len(history.metrics) :]
    np.testing.assert_array_equal(once["value"], again["value"])
    assert (once["value"] != history.metrics["value"].to_numpy()).any()
    case, preprocessor = case_of(history)
    none = preprocessor.model_copy(update={"metrics": ()})
    untouched = with_imitated_stress(replace(case, tables=tables_of(history, none)), none, PARAMS)
    np.testing.assert_array_equal(untouched.history.metrics["value"], history.metrics["value"])
    assert not untouched.history.executions["is_stressed"].any()


def test_another_seed_draws_others():
    one, other = (
        with_imitated_stress(*case_of(unlabelled_history(), seed=seed), PARAMS).history.executions["is_stressed"]
        for seed in (0, 1)
    )
    assert not one.equals(other)


def test_stress_is_imitated_where_none_is_known_in_our_variant_and_for_a_detector_alone(told):
    case, worse = told
    ours = ModelParams()
    assert needs_imitation(case, ours)
    assert not needs_imitation(worse, ours)  # some are known
    assert not needs_imitation(case, ModelParams(variant="paper"))
    assert not needs_imitation(case, ModelParams(loss=LossParams(detection=False)))
    later = case.history.executions.assign(is_stressed=pd.array(~case.is_train, dtype="boolean"))
    assert needs_imitation(replace(case, history=replace(case.history, executions=later)), ours)  # not in training
