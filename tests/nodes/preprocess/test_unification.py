"""What units mean, one unit a metric, totals as rates."""

import numpy as np
import pytest

from tasks.nodes.preprocess.fitting import recorded
from tasks.nodes.preprocess.unification import (
    as_rates,
    choose_columns,
    conversion_of,
    divisors,
    in_base_units,
    per_second,
)  # fmt: skip
from tasks.nodes.tools.parsing import DURATION, SPELLED, MetricFacts

TOTALS = {
    "own-tool": {
        "size": MetricFacts("B", True, "run_time", "disk", "moved"),
        "run_time": MetricFacts("s", None, None, "disk", "time"),
        "busy": MetricFacts("s", False, DURATION, "disk", "time used"),
    }
}
SPELLINGS = [
    ("", 1, "1"), ("scalar", 1, "1"), ("bool", 1, "1"), ("events", 1, "1"), ("bogo ops", 1, "1"),
    ("million", 1e6, "1"), ("%", 1, "%"), ("% cpus", 1, "%"),
    ("s", 1, "s"), ("sec", 1, "s"), ("secs", 1, "s"), ("ms", 1e-3, "s"), ("msec", 1e-3, "s"), ("us", 1e-6, "s"),
    ("usec", 1e-6, "s"), ("µs", 1e-6, "s"), ("μs", 1e-6, "s"), ("ns", 1e-9, "s"), ("nsec", 1e-9, "s"), ("min", 60, "s"),
    ("hour", 3600, "s"), ("Microseconds", 1e-6, "s"), ("us Per Event", 1e-6, "s"), ("ns/op", 1e-9, "s"),
    ("Ns Per Event", 1e-9, "s"),
    ("B", 1, "B"), ("bytes", 1, "B"), ("KB", 1e3, "B"), ("kB", 1e3, "B"), ("KiB", 1024, "B"), ("MB", 1e6, "B"),
    ("MiB", 2**20, "B"), ("GB", 1e9, "B"), ("GiB", 2**30, "B"), ("TiB", 2**40, "B"), ("GBytes", 1e9, "B"),
    ("Mbit", 1.25e5, "B"),
    ("B/s", 1, "B/s"), ("KiB/s", 1024, "B/s"), ("MB/s", 1e6, "B/s"), ("MB/sec", 1e6, "B/s"), ("MiB/s", 2**20, "B/s"),
    ("MiB/sec", 2**20, "B/s"), ("GB/sec", 1e9, "B/s"), ("Mbit/s", 1.25e5, "B/s"), ("Mbits/sec", 1.25e5, "B/s"),
    ("Gbits/sec", 1.25e8, "B/s"), ("Mbps", 1.25e5, "B/s"), ("MBps", 1e6, "B/s"), ("Mb/s", 1.25e5, "B/s"),
    ("/sec", 1, "1/s"), ("K/sec", 1e3, "1/s"), ("k iops", 1e3, "1/s"), ("iops", 1, "1/s"), ("IOPS", 1, "1/s"),
    ("ops/s", 1, "1/s"), ("Kops/sec", 1e3, "1/s"), ("TPS", 1, "1/s"), ("Requests Per Second", 1, "1/s"),
    ("bogo ops/s", 1, "1/s"), ("Bogo Ops_s", 1, "1/s"), ("ops_sec", 1, "1/s"), ("ops_per_sec", 1, "1/s"),
    ("MiB_s", 2**20, "B/s"), ("GB_sec", 1e9, "B/s"),
    ("1/s", 1, "1/s"), ("GHz", 1e9, "1/s"), ("req/s", 1, "1/s"), ("tps", 1, "1/s"),
    ("sec/GB", 1e-9, "s/B"), ("ms/GB", 1e-12, "s/B"), ("s/GB", 1e-9, "s/B"), ("us/MiB", 1e-6 / 2**20, "s/B"),
]  # fmt: skip


@pytest.mark.parametrize(("unit", "factor", "base"), SPELLINGS)
def test_every_spelling_of_the_tools_has_its_size(unit: str, factor: float, base: str) -> None:
    found = conversion_of(unit)
    assert (found.base, found.is_known) == (base, True)
    assert found.factor == pytest.approx(factor, rel=1e-14)


def test_every_unit_that_a_parser_may_give_is_known() -> None:
    units = {unit for spellings in SPELLED.values() for unit in spellings} | set(SPELLED)
    assert [unit for unit in sorted(units) if not conversion_of(unit).is_known] == []
    for canonical, spellings in SPELLED.items():
        assert {conversion_of(unit).base for unit in spellings} == {conversion_of(canonical).base}


@pytest.mark.parametrize("unit", ["parsec", "mb/s", "GB/s/core", "9**9**9", "MB/", "S", "°C", "a b c", "/"])
def test_an_unknown_unit_is_a_scale_of_its_own_and_no_error(unit: str) -> None:
    found = conversion_of(unit)
    assert (found.factor, found.base, found.is_known) == (1.0, f"'{unit}'", False)


@pytest.mark.parametrize(
    ("unit", "benchmark", "factor"),
    [
        ("GBytes/sec", "network-iperf3", 2**30),
        ("Gbits/sec", "network-iperf3", 1.25e8),
        ("Mb/sec", "disk-sysbench", 2**20),
        ("mb/s", "disk-ioping", 2**20),
        ("KB/s", "disk-fio", 1024),
        ("kB/s", "disk-fio", 1000),
        ("MB/sec", "network-qperf", 1e6),
    ],
)
def test_a_tool_that_writes_a_decimal_prefix_and_means_a_binary_one(unit: str, benchmark: str, factor: float) -> None:
    assert (conversion_of(unit, benchmark).factor, conversion_of(unit, benchmark).base) == (factor, "B/s")


@pytest.mark.parametrize(
    ("total", "rate"), [("B", "B/s"), ("1", "1/s"), ("s", "1"), ("%", "%/s"), ("'points'", "'points'/s")]
)
def test_a_total_divided_by_seconds_has_the_unit_of_a_rate(total: str, rate: str) -> None:
    assert per_second(total) == rate


def test_megabytes_here_and_gigabytes_there_become_one_scale(history_of) -> None:
    found = recorded(history_of([{"bw": (900.0, "MB/sec")}, {"bw": (1.1, "GB/sec")}, {"bw": (1.0, "GiB/s")}]))
    columns = choose_columns(found, {})
    assert columns[["metric", "base", "n_apart"]].to_numpy().tolist() == [["bw", "B/s", 0]]
    assert sorted(columns["units"][0]) == ["GB/sec", "GiB/s", "MB/sec"]
    np.testing.assert_allclose(in_base_units(found, columns).value, [9e8, 1.1e9, 2**30], rtol=1e-14)


def test_the_same_name_in_two_types_is_two_metrics(history_of) -> None:
    history = history_of(
        [{"latency": (1, "s")}, {"latency": (1, "ms")}, {"latency": (1, "us")}],
        benchmark=["x", "x", "y"],
        template_hash=["1234567890", "abcdefgh00", "1234567890"],
    )
    found = recorded(history)
    columns = choose_columns(found, {})
    assert columns["type"].tolist() == ["x@12345678", "x@abcdefgh", "y@12345678"]
    unified = in_base_units(found, columns)
    assert unified.value.tolist() == pytest.approx([1, 1e-3, 1e-6])
    assert [unified.execution[unified.of(at)].tolist() for at in range(3)] == [[0], [1], [2]]


def test_values_in_a_unit_that_cannot_become_that_of_most_stay_apart_and_are_counted(history_of) -> None:
    found = recorded(history_of([{"m": (5, "ms")}, {"m": (7, "ms")}, {"m": (3, "MB")}, {"m": (4, "parsec")}]))
    columns = choose_columns(found, {})
    assert columns["base"].tolist() == ["s"] and columns["n_apart"].tolist() == [2]
    assert columns["note"][0] == (
        "1 values in 'MB', which cannot become s: apart; 1 values in 'parsec', which is not known: apart"
    )
    assert in_base_units(found, columns).value.tolist() == pytest.approx([0.005, 0.007])


def test_the_declared_unit_decides_even_where_few_values_have_it_and_an_unknown_one_alone_is_a_scale(
    history_of,
) -> None:
    found = recorded(history_of([{"m": (5, "MB")}, {"m": (7, "MB")}, {"m": (3, "ms")}]))
    facts = {"own-tool": {"m": MetricFacts("s", False, None, "cpu", "a time")}}
    assert choose_columns(found, facts)["base"].tolist() == ["s"]
    assert choose_columns(found, {})["base"].tolist() == ["B"]
    alone = recorded(history_of([{"m": (5, "points")}, {"m": (7, "points")}]))
    columns = choose_columns(alone, {})
    assert columns["note"].tolist() == ["unit 'points' is not known: a scale of its own"]
    assert in_base_units(alone, columns).value.tolist() == [5, 7]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused_with_its_place(history_of, value) -> None:
    with pytest.raises(ValueError, match=r"metric 'm' of execution 1 has the value .*expected finite numbers"):
        recorded(history_of([{"m": 1.0}, {"m": value}]))


@pytest.fixture
def rates_of(history_of):
    """A function that gives the values of a metric by execution, totals divided by what the facts say."""

    def make(measured, metric):
        history = history_of(measured, duration_s=2.0)
        found = recorded(history)
        columns = choose_columns(found, TOTALS)
        seconds = history.executions["duration_s"].to_numpy(dtype=float)
        unified = as_rates(in_base_units(found, columns), columns, divisors(columns, TOTALS), seconds)
        own = unified.of(columns["metric"].tolist().index(metric))
        return dict(zip(unified.execution[own].tolist(), unified.value[own].tolist(), strict=True))

    return make


def test_four_gigabytes_in_two_seconds_are_two_gigabytes_a_second_and_in_none_no_value(rates_of) -> None:
    told = ((4, "GB", 2000, "ms"), (9, "GB", 3, "s"), (4, "B", 0, "s"))
    measured = [{"size": (size, unit), "run_time": (time, of_time)} for size, unit, time, of_time in told]
    assert rates_of([*measured, {"size": (5, "GB")}], "size") == pytest.approx({0: 2e9, 1: 3e9})
