"""What is drawn is as it is said to be: other tests take it for the truth."""

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.execution import EXECUTION_COLUMNS
from tasks.nodes.tools import PARSERS
from tests.nodes.synthetic import DOSE_SD, NOISE, known_quality, synthetic_history


def log_of(history, benchmark, metric):
    """Natural logarithm of a metric by execution."""
    of = history.executions["benchmark"][history.metrics["execution"]].to_numpy()
    rows = history.metrics[(of == benchmark) & (history.metrics["metric"] == metric)]
    return pd.Series(np.log(rows["value"].to_numpy()), index=rows["execution"].to_numpy())


def test_there_are_so_many_executions_in_time_order_all_marked_as_simulated() -> None:
    history = synthetic_history(nodes=2, types=7, runs=10, stressed=0.3)
    executions = history.executions
    assert len(executions) == 140
    assert set(EXECUTION_COLUMNS) <= set(executions.columns)
    assert executions["is_simulated"].all() and executions["started_at"].is_monotonic_increasing
    assert executions["execution_id"].is_unique
    assert executions.groupby(["node", "benchmark", "template"])["is_stressed"].sum().eq(3).all()
    assert executions["n_metrics"].sum() == len(history.metrics)


def test_doses_come_in_thirds() -> None:
    history = synthetic_history(nodes=1, types=1, runs=60, stressed=0.2)
    assert history.executions["dose_level"].value_counts().to_dict() == {0: 48, 1: 4, 2: 4, 3: 4}


@pytest.mark.parametrize(("metric", "sign"), [("events_per_second", 1), ("latency_avg", -1)])
def test_quality_stress_and_drift_move_a_metric_by_what_is_said(metric, sign) -> None:
    quality = {"node-2": {"cpu": 0.5}}
    history = synthetic_history(nodes=2, types=1, runs=2000, stressed=0.3, quality=quality, drift=0.4)
    value = sign * log_of(history, "cpu-sysbench", metric)
    executions = history.executions
    is_first, level = executions["node"] == "node-1", executions["dose_level"]
    calm = value[is_first & (level == 0)].mean()
    for dose in (1, 2, 3):
        assert calm - value[is_first & (level == dose)].mean() == pytest.approx(DOSE_SD[dose] * NOISE, abs=0.02)
    early, late = executions.index < 2000, executions.index >= 3900
    slow = ~is_first & (level == 0)
    assert calm - value[slow & early].mean() == pytest.approx(np.log(2), abs=0.01)
    assert calm - value[slow & late].mean() == pytest.approx(np.log(2) + 0.4, abs=0.03)


def test_each_aspect_is_led_by_another_node() -> None:
    truth = pd.DataFrame(known_quality(3)).T
    assert truth.idxmax().to_dict() == {"cpu": "node-1", "memory": "node-2", "disk": "node-3", "network": "node-1"}
    assert sorted(truth["cpu"]) == pytest.approx([0.64, 0.8, 1.0])


def test_the_same_seed_draws_the_same_and_another_another() -> None:
    one, same, other = (synthetic_history(runs=3, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one.metrics, same.metrics)
    assert not one.metrics["value"].equals(other.metrics["value"])


def test_metrics_have_names_and_units_that_the_tools_have() -> None:
    history = synthetic_history(nodes=1, runs=1)
    of = history.executions["benchmark"][history.metrics["execution"]]
    for benchmark, metric in zip(of, history.metrics["metric"], strict=True):
        assert metric in PARSERS[benchmark].metrics


def test_a_node_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="quality of node-9, which is not among the 3 nodes"):
        synthetic_history(quality={"node-9": {"cpu": 2}})


def test_nothing_can_be_drawn() -> None:
    for history in (synthetic_history(nodes=0), synthetic_history(runs=0), synthetic_history(types=0)):
        assert len(history.executions) == len(history.metrics) == len(history.telemetry) == 0
