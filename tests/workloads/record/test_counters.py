"""Each file of /proc, as text of a real machine cut short, and the numbers in it worked out by hand."""

from tasks.workloads.record.counters import (
    GIVEAWAYS,
    machine_sources,
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


def test_load_and_tasks():
    assert parse_loadavg("0.52 1.00 1.10 3/154 12345\n") == {"load_1m": 0.52, "tasks": 154}


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


def test_segments_of_tcp_and_datagrams_of_udp():
    found = parse_snmp("Tcp: InSegs OutSegs MaxConn\nTcp: 5 6 -1\nUdp: InDatagrams OutDatagrams\nUdp: 7 8\n")
    assert (found["Tcp.InSegs"], found["Tcp.OutSegs"], found["Udp.OutDatagrams"]) == (5, 6, 8)


def test_sockets_in_use():
    assert parse_sockets("sockets: used 17\nTCP: inuse 4 orphan 0\n") == {"sockets": 17}


def test_interrupts_by_name_and_all_devices_together():
    found = parse_interrupts(INTERRUPTS)
    assert (found["devices"], found["LOC"], found["TLB"]) == (2_729_307, 24_386_974, 10)


def test_pressure_some_and_full():
    text = "some avg10=0.00 avg60=1.00 avg300=2.00 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n"
    assert parse_pressure(text) == {"some": 1500, "full": 20}


def test_memory_in_bytes_and_counts_as_they_are():
    assert parse_meminfo("MemFree:     10 kB\nHugePages_Total:   3\n") == {"MemFree": 10240, "HugePages_Total": 3}


def test_names_are_unique_and_every_giveaway_is_a_gauge_that_is_recorded():
    measures = {m.counter.name: m for source in machine_sources() for m in source.measures}
    assert len(measures) == sum(len(source.measures) for source in machine_sources())
    assert GIVEAWAYS.keys() <= measures.keys()
    assert not any(measures[name].counter.is_rate for name in GIVEAWAYS)


def test_every_counter_says_what_it_is():
    measures = [measure for source in machine_sources() for measure in source.measures]
    assert all(measure.what and measure.counter.unit and measure.keys for measure in measures)
    assert len(measures) >= 72
