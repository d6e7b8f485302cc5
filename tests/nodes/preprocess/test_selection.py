"""Which metrics are kept and why others are not; which way is better, and what says so."""

import numpy as np
import pytest

from tasks.nodes.params import PreprocessParams
from tasks.nodes.preprocess.selection import orient, rule_of, spread_of, why_dropped
from tasks.nodes.tools.parsing import MetricFacts

OURS, THEIRS = PreprocessParams(), PreprocessParams(variant="paper")


def why(values, *, metric="m", base="s", fact=None, params=OURS):
    return why_dropped("disk-fio", metric, base, spread_of(np.array(values, dtype=float)), fact, params)


def test_a_constant_metric_is_dropped() -> None:
    assert why([3.0] * 9) == "distinct values: 1, at least 2 needed"
    assert why([0.0] * 9) == "distinct values: 1, at least 2 needed"


@pytest.mark.parametrize("factor", [1e-12, 1, 1e12])
def test_a_metric_that_hardly_varies_is_dropped_and_one_that_varies_kept_in_whatever_unit(factor) -> None:
    small, large = ([factor * one for one in values] for values in ([2.0, 2.0001, 2.0002], [2.0, 2.02, 2.04]))
    assert why(small) == "varies by 2.7e-05 of its median, at least 0.001 needed"
    assert why(large) == ""


def test_a_metric_that_is_nothing_but_under_stress_is_kept() -> None:
    assert why([0.0] * 80 + [5.0] * 20) == ""


def test_a_setting_is_dropped_by_what_the_tool_says_and_else_by_its_name() -> None:
    told = "a setting or a version, not a result"
    assert why([1, 2, 3], fact=MetricFacts("", None, None, "cpu", "setting: threads")) == told
    assert why([1, 2, 3], metric="num_threads") == told
    assert why([1, 2, 3], metric="threads", fact=MetricFacts("", True, None, "cpu", "threads that ended")) == ""


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


LEFT, RIGHT = [1.0, 8.0, 9.0, 10.0], [1.0, 2.0, 3.0, 10.0]  # tails to the left: maximise; to the right: minimise


def spread(values):
    return spread_of(np.array(values, dtype=float))


def oriented(metric="m", base="1", fact=None, values=LEFT, unstressed=None, params=OURS):
    return orient(metric, base, fact, spread(values), spread(values if unstressed is None else unstressed), params)


def test_what_the_tool_declares_holds_against_the_rule_and_the_disagreement_is_told() -> None:
    found = oriented(fact=MetricFacts("s", False, None, "cpu", "a time"), values=LEFT)
    assert (found.sign, found.origin, found.rule_with_stressed, found.agrees) == (-1, "declared", 1, False)
    assert oriented(fact=MetricFacts("1/s", True, None, "cpu", "a rate"), values=LEFT).agrees is True


def test_a_metric_declared_neither_better_nor_worse_falls_to_the_rule_and_not_to_its_unit() -> None:
    found = oriented(base="s", fact=MetricFacts("s", None, None, "cpu", "time that it ran"), values=LEFT)
    assert (found.sign, found.origin, found.agrees) == (1, "rule", None)


@pytest.mark.parametrize(
    ("metric", "base", "sign", "origin"),
    [
        ("throughput", "B/s", 1, "unit"),
        ("create_files", "s", -1, "unit"),
        ("send_cost", "s/B", -1, "unit"),
        ("transactions", "1/s", 1, "unit"),
        ("iops_stddev", "1/s", -1, "name"),
        ("errors", "1/s", -1, "name"),
        ("usd_per_hour", "1/s", -1, "name"),
        ("retrans", "1", -1, "name"),
        ("latency_max", "'ticks'", -1, "name"),
        ("events", "1", 1, "name"),
        ("Score", "'points'", 1, "name"),
        ("page_fault", "1/s", 1, "unit"),
        *((name, "1", -1, "name") for name in ("seconds", "p99", "makespan", "latencies", "response", "lag", "ttfb")),
        *((name, "1", -1, "name") for name in ("stall", "slowdown", "steal", "energy", "sec", "sort_secs", "ms/token")),
        *((name, "1", 1, "name") for name in ("iops_p99", "response_rate", "energy_efficiency", "requests_sec")),
        *((name, "1", 1, "none") for name in ("tokens/sec", "images per ms", "hour")),
    ],
)
def test_foreign_metrics_are_told_by_unit_and_name(metric, base, sign, origin) -> None:
    found = oriented(metric, base)
    assert (found.sign, found.origin) == (sign, origin)


def test_where_nothing_is_told_more_is_better_and_the_papers_rule_has_nothing_to_contradict() -> None:
    found = oriented(values=RIGHT, unstressed=LEFT)
    assert (found.sign, found.origin, found.agrees) == (1, "none", None)
    assert (found.rule_with_stressed, found.rule_without_stressed) == (-1, 1)
    assert oriented(values=[5, 5, 5]).rule_with_stressed is None
    assert orient("m", "1", None, spread(LEFT), None, OURS).rule_without_stressed is None


def test_the_papers_variant_asks_the_rule_alone_but_for_the_authors_overrides() -> None:
    assert oriented(base="s", fact=MetricFacts("s", False, None, "cpu", "a time"), values=LEFT, params=THEIRS).sign == 1
    assert oriented("tcp_lat_msg_rate", values=RIGHT, params=THEIRS).origin == "override"
    assert oriented("tcp_lat_msg_rate", values=RIGHT, params=THEIRS).sign == 1
    assert oriented("bw_stdev", values=LEFT, params=THEIRS).sign == -1


def test_one_outlier_turns_the_rule() -> None:
    assert (rule_of(spread(LEFT)), rule_of(spread([*LEFT, 1000.0]))) == (1, -1)


def test_a_sign_that_is_a_guess_against_the_tools_word_is_told() -> None:
    neither = MetricFacts("1/s", None, None, "cpu", "requests made a second: set by the interval")
    assert not oriented(base="1/s", fact=neither).is_directed
    assert oriented(base="1/s", fact=MetricFacts("1/s", True, None, "cpu", "requests a second")).is_directed
    assert oriented(base="'widgets'").is_directed  # of a foreign metric nobody knows better
    assert oriented(base="1/s", fact=neither, params=THEIRS).is_directed  # the paper has nothing but its rule
