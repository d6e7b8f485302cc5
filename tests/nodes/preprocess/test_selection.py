import pytest

from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.selection import spread_of, why_dropped
from tasks.nodes.tools.facts import Of

OURS, THEIRS = PreprocessParams(), PreprocessParams(variant="paper")
CPU = Of("cpu")


def why(values, *, metric="m", base="s", fact=None, params=OURS):
    import numpy as np

    return why_dropped("disk-fio", metric, base, spread_of(np.array(values, dtype=float)), fact, params)


def test_a_constant_metric_is_dropped() -> None:
    assert why([3.0] * 9) == "distinct values: 1, at least 2 needed"
    assert why([0.0] * 9) == "distinct values: 1, at least 2 needed"


def test_rounding_of_units_makes_no_distinct_values() -> None:
    assert why([1.1e9, 1.1e9 * (1 + 1e-15)]).startswith("distinct values: 1")


def test_a_metric_that_hardly_varies_is_dropped_and_one_that_varies_kept() -> None:
    assert why([2.0, 2.0001, 2.0002]) == "varies by 2.7e-05 of its median, at least 0.001 needed"
    assert why([2.0, 2.02, 2.04]) == ""


def test_more_distinct_values_can_be_asked_for() -> None:
    assert why([1, 2, 2, 1], params=PreprocessParams(min_distinct=3)) == "distinct values: 2, at least 3 needed"


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_the_decision_does_not_depend_on_the_unit(factor) -> None:
    for values in ([2.0, 2.0001, 2.0002], [2.0, 2.02, 2.04]):
        assert why([factor * one for one in values]) == why(values)


def test_a_metric_that_is_nothing_but_under_stress_is_kept() -> None:
    assert why([0.0] * 80 + [5.0] * 20) == ""


def test_five_in_a_hundred_outliers_do_not_make_a_metric_vary() -> None:
    assert why([2.0] * 96 + [1e9] * 4).startswith("varies by 0 of its median")


def test_a_setting_is_dropped_by_what_the_tool_says_and_else_by_its_name() -> None:
    told = "a setting or a version, not a result"
    assert why([1, 2, 3], fact=CPU.neither("", "setting: threads")) == told
    assert why([1, 2, 3], metric="num_threads") == told
    assert why([1, 2, 3], metric="threads", fact=CPU.more("", "threads that ended")) == ""


def test_without_a_value_there_is_nothing_to_keep() -> None:
    assert why([]) == "no usable value"


def test_the_authors_threshold_drops_a_latency_in_seconds_and_keeps_any_throughput() -> None:
    latencies = [0.001, 0.002, 0.003, 0.004, 0.009]
    assert why(latencies, params=THEIRS) == "standard deviation 0.0031, at least 0.01 needed"
    assert why(latencies) == ""
    assert why([2e9, 2.0001e9, 2.0002e9, 2.0003e9], base="B/s", params=THEIRS) == ""


def test_the_authors_want_four_distinct_values_and_one_above_nothing() -> None:
    assert why([1, 2, 3], params=THEIRS) == "distinct values: 3, at least 4 needed"
    assert why([-1, -2, -3, 0], params=THEIRS) == "no value above 0"


@pytest.mark.parametrize("metric", ["latency_max", "total_duration", "tcp_bw_send_cpus_user", "cpu_usr", "disk_util"])
def test_the_authors_list_of_names(metric) -> None:
    assert "on the authors' list" in why([10, 20, 30, 40], metric=metric, params=THEIRS)
    assert why([10, 20, 30, 40], metric=metric) == ""
