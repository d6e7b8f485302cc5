"""Totals become rates, where the tool's facts call them cumulative."""

import numpy as np

from tasks.nodes.preprocess.fitting import fit, transform
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.tools.facts import DURATION, Of

DISK = Of("disk")
FACTS = {
    "own-tool": {
        "size": DISK.more("B", "moved", over="run_time"),
        "run_time": DISK.neither("s", "time"),
        "busy": DISK.less("s", "time used", over=DURATION),
    }
}


def prepared(history):
    preprocessor = fit(history, PreprocessParams(), facts=FACTS)
    return preprocessor, transform(preprocessor, history)


def test_four_gigabytes_in_two_seconds_are_two_gigabytes_a_second(history_of) -> None:
    history = history_of(
        [{"size": (4, "GB"), "run_time": (2000, "ms")}, {"size": (9, "GB"), "run_time": (3, "s")}, {"size": (5, "GB")}]
    )
    preprocessor, found = prepared(history)
    at = found.metrics.index("size")
    assert found.units[at] == "B/s"
    np.testing.assert_allclose(found.natural[:, at], [2e9, 3e9, np.nan])
    metric = preprocessor.metrics[-1]
    assert (metric.metric, metric.n_apart, metric.note) == ("size", 1, "1 values without run_time: apart")


def test_a_total_over_the_duration_of_the_execution(history_of) -> None:
    _, found = prepared(history_of([{"busy": (1, "s")}, {"busy": (1, "s")}, {"busy": (3, "s")}], duration_s=[2, 4, 4]))
    assert found.units == ("1",)
    np.testing.assert_allclose(found.natural[:, 0], [0.5, 0.25, 0.75])


def test_a_run_time_of_nothing_gives_no_value_and_no_infinity(history_of) -> None:
    history = history_of([{"size": (4, "B"), "run_time": (at, "s")} for at in (0, 1, 2)])
    _, found = prepared(history)
    np.testing.assert_allclose(found.natural[:, found.metrics.index("size")], [np.nan, 4, 2])


def test_a_total_without_any_time_is_dropped_with_the_reason(history_of) -> None:
    preprocessor, found = prepared(history_of([{"size": (4, "B")}, {"size": (5, "B")}]))
    assert found.columns == ()
    assert (preprocessor.metrics[0].why, preprocessor.metrics[0].n_apart) == ("no usable value", 2)


def test_without_facts_nothing_is_divided(history_of) -> None:
    history = history_of([{"size": (4, "B"), "run_time": (2, "s")}, {"size": (5, "B"), "run_time": (3, "s")}])
    preprocessor = fit(history, PreprocessParams(), facts={})
    assert [metric.divided_by for metric in preprocessor.metrics] == ["", ""]
    assert transform(preprocessor, history).natural[:, 1].tolist() == [4, 5]
