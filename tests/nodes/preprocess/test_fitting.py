"""Whole fits, above all on histories that break things."""

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.preprocess.fitting import fit, transform
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.synthetic import synthetic_history

OURS, THEIRS = PreprocessParams(), PreprocessParams(variant="paper")


@pytest.mark.parametrize("params", [OURS, THEIRS])
def test_without_executions_nothing_is_kept_and_others_can_still_be_transformed(params) -> None:
    history = synthetic_history(runs=2)
    preprocessor = fit(history.where(np.zeros(len(history.executions), dtype=bool)), params)
    assert (preprocessor.types, preprocessor.metrics, preprocessor.n_executions) == ((), (), 0)
    found = transform(preprocessor, history)
    assert (found.natural.shape, found.scaled.shape, found.one_hot.shape) == ((36, 0), (36, 0), (36, 0))
    assert sum(found.left_out.types.values()) == 36


def test_one_execution_has_no_spread_and_no_kept_metric() -> None:
    history = synthetic_history(nodes=1, types=1, runs=1)
    preprocessor = fit(history, OURS)
    assert len(preprocessor.metrics) == 4 and preprocessor.kept == ()
    assert {metric.why for metric in preprocessor.metrics} == {
        "distinct values: 1, at least 2 needed",
        "a setting or a version, not a result",
    }


def test_two_executions_are_enough() -> None:
    preprocessor = fit(synthetic_history(nodes=1, types=1, runs=2), OURS)
    assert [metric.metric for metric in preprocessor.kept] == ["events_per_second", "latency_95p", "latency_avg"]


@pytest.mark.parametrize("params", [OURS, THEIRS])
def test_transforming_no_executions_gives_no_rows(params) -> None:
    history = synthetic_history(runs=5)
    preprocessor = fit(history, params)
    found = transform(preprocessor, history.where(np.zeros(len(history.executions), dtype=bool)))
    assert found.scaled.shape == (0, len(preprocessor.kept)) and len(preprocessor.kept) > 0


def test_training_that_was_stressed_throughout_leaves_the_rule_without_stress_silent() -> None:
    preprocessor = fit(synthetic_history(nodes=1, runs=9, stressed=1.0), OURS)
    assert all(metric.orientation.rule_without_stressed is None for metric in preprocessor.metrics)
    assert all(metric.orientation.rule_with_stressed is not None for metric in preprocessor.kept)


def test_labels_that_are_missing_count_as_unstressed(history_of) -> None:
    measured = [{"m": one} for one in (1.0, 2.0, 3.0, 9.0)]
    preprocessor = fit(history_of(measured, is_stressed=[None, pd.NA, False, True]), OURS)
    orientation = preprocessor.metrics[0].orientation
    assert (orientation.rule_with_stressed, orientation.rule_without_stressed) == (-1, 1)


def test_a_slow_and_a_fast_template_of_one_benchmark_are_learned_apart() -> None:
    history = synthetic_history(types=8, runs=20, stressed=0)
    preprocessor = fit(history, OURS)
    assert len(preprocessor.types) == 8
    names = [metric.name for metric in preprocessor.metrics if metric.metric == "events_per_second"]
    assert names == ["cpu-sysbench@00000001/events_per_second", "cpu-sysbench@00000007/events_per_second"]


def test_the_truth_of_drawn_executions_is_recovered() -> None:
    """Every drawn metric but the settings is kept, and oriented as it was drawn."""
    preprocessor = fit(synthetic_history(runs=60), OURS, facts={})
    dropped = [metric for metric in preprocessor.metrics if not metric.is_kept]
    assert {metric.metric for metric in dropped} == {"num_threads", "number_of_threads"}
    for metric in preprocessor.kept:
        is_rate = any(part in metric.metric for part in ("second", "rate", "bw_avg", "iops", "bandwidth"))
        assert metric.orientation.sign == (1 if is_rate else -1), metric.name
        assert metric.orientation.origin == "unit"


def test_with_the_facts_of_the_tools_orientations_are_declared() -> None:
    preprocessor = fit(synthetic_history(runs=10), OURS)
    assert {metric.orientation.origin for metric in preprocessor.kept} == {"declared"}
