"""From files of the kernel to rates: by hand, over the real time, and never filled in."""

import os
from math import isnan

import pytest

from tasks.workloads.record.counters import machine_sources
from tasks.workloads.record.measures import Readings, opened, values_of

HZ = os.sysconf("SC_CLK_TCK")


def told(sources, readings):
    """Values by counter name."""
    names = [measure.counter.name for source in sources for measure in source.measures]
    return dict(zip(names, values_of(sources, readings).T.tolist(), strict=True))


@pytest.fixture
def stat(tmp_path, stat_text):
    """The source of /proc/stat, open, and a function that reads what the file then says."""
    (tmp_path / "stat").write_text(stat_text())
    [source], missing = opened(machine_sources(tmp_path, tmp_path)[:1])
    assert missing == []

    def read(**ticks):
        (tmp_path / "stat").write_text(stat_text(**ticks))
        return [source.read()]

    yield source, read
    source.close()


def test_a_rate_is_the_growth_over_the_seconds_that_really_passed(stat):
    source, read = stat
    readings = Readings(
        [[0.0], [1.0], [3.0]],
        [read(user=100, ctxt=7000), read(user=100 + HZ, ctxt=7300), read(user=100 + 4 * HZ, ctxt=7300)],
    )
    found = told([source], readings)
    assert found["cpu.user_cores"] == pytest.approx([1.0, 1.5])
    assert found["cpu.context_switches"] == pytest.approx([300.0, 0.0])
    assert readings.at_s.tolist() == [1.0, 3.0]


def test_a_gauge_is_what_the_file_says_at_the_sample(stat):
    source, read = stat
    assert told([source], Readings([[0.0], [1.0]], [read(), read()]))["cpu.running_tasks"] == [3.0]


def test_a_counter_that_fell_was_reset_and_only_that_interval_is_missing(stat):
    source, read = stat
    readings = Readings([[0.0], [1.0], [2.0], [3.0]], [read(ctxt=n) for n in (4_294_967_290, 5, 25, 65)])
    values = told([source], readings)["cpu.context_switches"]
    assert isnan(values[0])
    assert values[1:] == [20.0, 40.0]


def test_a_missing_reading_leaves_both_its_intervals_missing_and_is_never_filled_in(stat):
    source, read = stat
    readings = Readings([[0.0], [1.0], [2.0], [3.0]], [read(ctxt=0), [None], read(ctxt=20), read(ctxt=50)])
    found = told([source], readings)
    assert [isnan(value) for value in found["cpu.context_switches"]] == [True, True, False]
    assert found["cpu.context_switches"][2] == 30.0
    assert isnan(found["cpu.running_tasks"][0])
    assert found["cpu.running_tasks"][1:] == [3.0, 3.0]


def test_text_that_makes_no_sense_is_missing(stat):
    source, read = stat
    found = told([source], Readings([[0.0], [1.0]], [read(), [b"cpu x y z\n"]]))
    assert all(isnan(value) for [value] in found.values())


def test_what_the_machine_does_not_give_is_listed_with_its_reason_and_has_no_column(tmp_path):
    (tmp_path / "vmstat").write_text("pgfault 10\npgmajfault 0\npgalloc_normal 5\n")
    sources, missing = opened(machine_sources(tmp_path, tmp_path)[3:5])
    names = [measure.counter.name for source in sources for measure in source.measures]
    assert names == ["vm.page_faults", "vm.major_faults", "vm.allocated_pages"]
    reasons = {one.counter: one.reason for one in missing}
    assert reasons["vm.dirtied_pages"] == f"{tmp_path}/vmstat holds no nr_dirtied"
    assert reasons["memory.free_bytes"] == f"{tmp_path}/meminfo: No such file or directory"
    assert not reasons.keys() & set(names)


def test_an_open_file_that_is_gone_reads_as_missing(tmp_path):
    (tmp_path / "vmstat").write_text("pgfault 10\n")
    [source], _ = opened(machine_sources(tmp_path, tmp_path)[3:5])
    source.close()
    assert source.read() is None
    assert [isnan(value) for value in source.values(None)] == [True]
