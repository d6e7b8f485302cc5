"""Files of /proc as text of a real machine cut short, and the numbers and rates in them worked out by hand."""

import os
from math import isnan

import pytest

from tasks.workloads.record.counters import (
    GIVEAWAYS,
    CounterReadings,
    machine_sources,
    opened,
    parse_devices,
    parse_diskstats,
    parse_interrupts,
    parse_loadavg,
    parse_meminfo,
    parse_pressure,
    parse_schedstat,
    parse_snmp,
    parse_sockets,
    parse_stat,
    values_of,
    whole_disks,
)

DISKSTATS = """   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9
 254       0 vda 10 1 200 30 40 2 800 50 3 60 70 5 0 16 1 6 7
 254       1 vda1 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99
   8       0 sda 1 0 2 1 0 0 0 0 0 1 1
"""
DEVICES = """Inter-|   Receive                                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 1000      10    0    0    0     0          0         0     1000      10    0    0    0     0       0          0
  eth0:5000      50    1    2    0     0          0         0      700       7    0    4    0     0       0          0
  eth1: 300       3    0    0    0     0          0         0       20       2    0    0    0     0       0          0
"""
INTERRUPTS = """           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          5   2729301 PCI-MSIX-0000:00:01.0   1-edge      virtio1-req.0
LOC:   11886345   12500629   Local timer interrupts
TLB:          7          3   TLB shootdowns
ERR:          4
"""


def test_processor_time_of_all_processors_together_and_not_of_each():
    found = parse_stat("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 50 50 50 50 50 50 50 50\nctxt 99\nprocs_running 2\n")
    assert (found["user"], found["steal"], found["ctxt"], found["procs_running"]) == (1, 8, 99, 2)


def test_waiting_for_a_core_is_summed_over_the_processors_where_the_kernel_tells_it():
    text = "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 100 20 3\ndomain0 3 1 2\ncpu1 0 0 0 0 0 0 200 30 4\n"
    assert parse_schedstat(text) == {"ran_ns": 300, "waited_ns": 50, "slices": 7}
    assert parse_schedstat("version 15\n") == {}


def test_disks_are_summed_and_partitions_and_loop_devices_do_not_count_twice(tmp_path):
    for name in ("vda", "sda", "loop0", "zram0", "dm-0"):
        (tmp_path / name).mkdir()
    disks = whole_disks(tmp_path)
    assert disks == {"vda", "sda"}
    found = parse_diskstats(DISKSTATS, disks)
    assert (found["reads"], found["read_sectors"], found["writes"], found["flushes"]) == (11, 202, 40, 6)
    assert found["in_flight"] == 3


def test_loopback_and_all_other_devices_are_kept_apart():
    found = parse_devices(DEVICES)
    assert (found["lo.received_bytes"], found["lo.received_packets"]) == (1000, 10)
    assert (found["other.received_bytes"], found["other.sent_bytes"], found["other.sent_packets"]) == (5300, 720, 9)
    assert found["other.drops"] == 7


def test_interrupts_load_segments_sockets_pressure_and_memory():
    found = parse_interrupts(INTERRUPTS)
    assert (found["devices"], found["LOC"], found["TLB"]) == (2_729_307, 24_386_974, 10)
    assert parse_loadavg("0.52 1.00 1.10 3/154 12345\n") == {"load_1m": 0.52, "tasks": 154}
    found = parse_snmp("Tcp: InSegs OutSegs MaxConn\nTcp: 5 6 -1\nUdp: InDatagrams OutDatagrams\nUdp: 7 8\n")
    assert (found["Tcp.InSegs"], found["Tcp.OutSegs"], found["Udp.OutDatagrams"]) == (5, 6, 8)
    assert parse_sockets("sockets: used 17\nTCP: inuse 4 orphan 0\n") == {"sockets": 17}
    text = "some avg10=0.00 avg60=1.00 avg300=2.00 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n"
    assert parse_pressure(text) == {"some": 1500, "full": 20}
    assert parse_meminfo("MemFree:     10 kB\nHugePages_Total:   3\n") == {"MemFree": 10240, "HugePages_Total": 3}


def test_names_are_unique_and_every_giveaway_is_a_gauge_that_is_recorded():
    measures = {m.counter.name: m for source in machine_sources() for m in source.measures}
    assert len(measures) == sum(len(source.measures) for source in machine_sources()) >= 72
    assert all(one.what and one.counter.unit and one.keys for one in measures.values())
    assert GIVEAWAYS.keys() <= measures.keys()
    assert not any(measures[name].counter.is_rate for name in GIVEAWAYS)


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
    readings = CounterReadings(
        [[0.0], [1.0], [3.0]],
        [read(user=100, ctxt=7000), read(user=100 + HZ, ctxt=7300), read(user=100 + 4 * HZ, ctxt=7300)],
    )
    found = told([source], readings)
    assert found["cpu.user_cores"] == pytest.approx([1.0, 1.5])
    assert found["cpu.context_switches"] == pytest.approx([300.0, 0.0])
    assert found["cpu.running_tasks"] == [3.0, 3.0]  # a gauge: what the file says at the sample
    assert readings.at_s.tolist() == [1.0, 3.0]


def test_a_counter_that_fell_was_reset_and_only_that_interval_is_missing(stat):
    source, read = stat
    readings = CounterReadings([[0.0], [1.0], [2.0], [3.0]], [read(ctxt=n) for n in (4_294_967_290, 5, 25, 65)])
    values = told([source], readings)["cpu.context_switches"]
    assert isnan(values[0])
    assert values[1:] == [20.0, 40.0]


def test_a_missing_reading_leaves_both_its_intervals_missing_and_is_never_filled_in(stat):
    source, read = stat
    readings = CounterReadings([[0.0], [1.0], [2.0], [3.0]], [read(ctxt=0), [None], read(ctxt=20), read(ctxt=50)])
    found = told([source], readings)
    assert [isnan(value) for value in found["cpu.context_switches"]] == [True, True, False]
    assert found["cpu.context_switches"][2] == 30.0
    assert isnan(found["cpu.running_tasks"][0])
    assert found["cpu.running_tasks"][1:] == [3.0, 3.0]


def test_text_that_makes_no_sense_is_missing(stat):
    source, read = stat
    found = told([source], CounterReadings([[0.0], [1.0]], [read(), [b"cpu x y z\n"]]))
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
