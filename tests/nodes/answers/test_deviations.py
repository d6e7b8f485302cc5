"""Deviations of an execution, told in few numbers: values worked out by hand, and what they may know."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.deviations import COLUMNS, deviations_of, deviations_told, summary
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.tabulating import learn_tables

PARAMS = DetectorParams()


def told_of(case, node_metrics=True):
    return deviations_told(deviations_of(case, PARAMS, node_metrics=node_metrics))


def case_of(history, share=0.6):
    n = len(history.executions)
    is_train = np.arange(n) < share * n
    stressed = history.executions["is_stressed"].fillna(False).to_numpy(dtype=bool)
    tables = learn_tables(history, is_train, PreprocessParams())
    return Case(history, tables, is_train, is_train & ~stressed, np.zeros(n, dtype=bool))


def test_the_worst_come_first_and_what_is_missing_stays_missing():
    """Of 3, 1, -2, 0: mean 2 / 4, median 1 / 2, root of (9 + 1 + 4) / 4."""
    [told] = summary(np.array([[3.0, np.nan, 1.0, -2.0, 0.0]]))
    assert told[:4].tolist() == [3, 1, 0, -2] and np.isnan(told[4])
    assert dict(zip(COLUMNS[5:], told[5:], strict=True)) == pytest.approx(
        {"least": -2, "mean": 0.5, "median": 0.5, "rms": np.sqrt(3.5)}
    )


def test_an_execution_of_which_nothing_is_known_has_no_deviations():
    told = summary(np.array([[np.nan, np.nan], [1.0, np.nan]]))
    assert np.isnan(told[0]).all() and told[1, 0] == 1
    assert np.isnan(summary(np.empty((3, 0)))).all()


def test_a_node_that_did_more_than_it_used_to_is_told_beside_what_was_measured(campaign):
    history, _ = campaign()
    n, odd = len(history.executions), len(history.executions) - 1
    busy = 10 + np.random.default_rng(1).normal(0, 0.5, n)
    busy[odd] = 60
    rows = [{"execution": at, "metric": "cpu_busy", "at_s": [0.0, 0.5], "samples": [busy[at]] * 2} for at in range(n)]
    told = told_of(case_of(replace(history, telemetry=pd.DataFrame(rows))))
    of_node = told[:, len(COLUMNS)]
    assert of_node[odd] > 20
    assert np.nanmedian(np.abs(of_node)) < 2
    unsampled = replace(history, telemetry=pd.DataFrame(columns=list(rows[0])))
    without = told_of(case_of(unsampled))
    assert np.isnan(without[:, len(COLUMNS) :]).all()
    np.testing.assert_array_equal(without[:, : len(COLUMNS)], told[:, : len(COLUMNS)])


def test_nothing_is_learned_from_what_is_not_training(campaign):
    """Executions that are tested get ten times slower: what is said of the training ones stays."""
    history, _ = campaign()
    case = case_of(history)
    before = told_of(case)
    spoiled = [replace(one, natural=np.where(case.is_train[one.executions][:, None], one.natural, one.natural * 10))
               for one in case.tables.tables]  # fmt: skip
    after = told_of(replace(case, tables=replace(case.tables, tables=tuple(spoiled))))
    np.testing.assert_array_equal(before[case.is_train], after[case.is_train])
    assert not np.array_equal(before[~case.is_train], after[~case.is_train], equal_nan=True)
