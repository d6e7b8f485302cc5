import pytest

from tasks.nodes.preprocess.unification import (
    conversion_of,
    per_second,
    registry,
)
from tasks.nodes.tools.parsing import SPELLED

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


def test_a_thousand_alone_is_a_plain_number() -> None:
    assert (conversion_of("K").factor, conversion_of("K").base) == (1000, "1")


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


def test_a_percentage_and_a_plain_number_are_not_the_same_thing() -> None:
    assert conversion_of("%").base != conversion_of("").base


@pytest.mark.parametrize(
    ("total", "rate"), [("B", "B/s"), ("1", "1/s"), ("s", "1"), ("%", "%/s"), ("'points'", "'points'/s")]
)
def test_a_total_divided_by_seconds_has_the_unit_of_a_rate(total: str, rate: str) -> None:
    assert per_second(total) == rate


def test_there_is_one_registry() -> None:
    assert registry() is registry()
