import numpy as np
import pandas as pd
import pytest

from tasks.nodes.perona import inputs as node_metrics
from tasks.nodes.perona.inputs import node_metrics_of, percentiles_of, sampled_metrics
from tasks.nodes.synthetic import no_telemetry


def telemetry_of(*rows):
    """Rows of (execution, metric, at_s, samples)."""
    told = [
        (execution, metric, "%", np.array(at_s, dtype=float), np.array(samples, dtype=float))
        for execution, metric, at_s, samples in rows
    ]
    frame = pd.DataFrame(told, columns=["execution", "metric", "unit", "at_s", "samples"])
    return frame.astype({"execution": "int64", "metric": "str"})


def test_windows_have_the_percentiles_worked_out_by_hand():
    # before, [-50, 0]: 1, 2, 3; during, [0, 2]: 3, 5, 9; what lies beyond either end does not count
    rows = telemetry_of((0, "cpu", [-51, -50, -25, 0, 1, 2, 3], [1000, 1, 2, 3, 5, 9, 1000]))
    told = node_metrics_of(rows, np.array([2.0]), ["cpu"])
    assert told.columns == ("cpu/p10", "cpu/p50", "cpu/p90")
    assert told.before[0].tolist() == pytest.approx([1.2, 2.0, 2.8])
    assert told.during[0].tolist() == pytest.approx([3.4, 5.0, 8.2])


def test_equal_samples_all_count():
    rows = telemetry_of((0, "cpu", [-5, -4, -3, -2, -1], [1, 1, 1, 1, 5]))
    median = node_metrics_of(rows, np.array([1.0]), ["cpu"]).before[0, 1]
    assert median == 1.0  # of the distinct ones, 1 and 5, it would be 3


def test_missing_samples_and_empty_windows_say_nothing():
    rows = telemetry_of((0, "cpu", [-2, -1, 1], [np.nan, 4, np.nan]), (2, "cpu", [], []))
    told = node_metrics_of(rows, np.array([2.0, 2.0, 2.0]), ["cpu"])
    assert told.before[0].tolist() == [4.0, 4.0, 4.0]
    assert np.isnan(told.during).all()
    assert np.isnan(told.before[1:]).all()


def test_an_execution_without_a_duration_has_no_end():
    rows = telemetry_of((0, "cpu", [-1, 10, 1000], [0, 1, 3]))
    assert node_metrics_of(rows, np.array([np.nan]), ["cpu"]).during[0, 1] == 2.0


def test_other_metrics_are_left_out_and_those_nobody_sampled_are_missing():
    rows = telemetry_of((1, "cpu", [-1], [7]), (1, "disk", [-1], [9]))
    assert sampled_metrics(rows) == ("cpu", "disk")
    told = node_metrics_of(rows, np.ones(2), ["net", "cpu"])
    assert told.columns[:3] == ("net/p10", "net/p50", "net/p90")
    assert np.isnan(told.before[:, :3]).all()
    assert told.before[1, 3:].tolist() == [7.0, 7.0, 7.0]


def test_without_telemetry_there_are_no_columns():
    assert sampled_metrics(no_telemetry()) == ()
    told = node_metrics_of(no_telemetry(), np.ones(4), [])
    assert told.before.shape == told.during.shape == (4, 0)
    assert np.isnan(node_metrics_of(no_telemetry(), np.ones(4), ["cpu"]).before).all()


def test_percentiles_are_those_of_numpy():
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 9, size=200)
    values = rng.normal(size=lengths.sum()).round(1)
    found = percentiles_of(values, lengths)
    for own, three in zip(np.split(values, np.cumsum(lengths)[:-1]), found, strict=True):
        if len(own):
            assert three == pytest.approx(np.percentile(own, [10, 50, 90]))
        else:
            assert np.isnan(three).all()


def test_nothing_depends_on_how_much_is_read_at_once(small, monkeypatch):
    metrics, durations = sampled_metrics(small.telemetry), np.full(len(small.executions), 2.0)
    at_once = node_metrics_of(small.telemetry, durations, metrics)
    monkeypatch.setattr(node_metrics, "SAMPLES", 20)
    in_parts = node_metrics_of(small.telemetry, durations, metrics)
    assert np.array_equal(at_once.before, in_parts.before, equal_nan=True)
    assert np.array_equal(at_once.during, in_parts.during, equal_nan=True)
    assert np.isfinite(at_once.during).all()
