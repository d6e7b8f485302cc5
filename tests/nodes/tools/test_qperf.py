"""qperf: units change with the size, and what is 0 is not printed; of a broken log what is whole survives."""

from collections.abc import Callable

import pytest


def test_bandwidth_latency_and_cost_keep_the_units_of_the_line(values):
    found = values("qperf/0.4.9.txt")
    assert found["tcp_bw_bandwidth"] == (117, "MB/sec")
    assert found["tcp_bw_send_cost"] == (512, "ms/GB")
    assert found["tcp_bw_recv_cost"] == (1.02, "sec/GB")
    assert found["tcp_lat_latency"] == (43.1, "us")
    assert found["tcp_bw_send_bytes"] == (3.52, "GB")
    assert found["tcp_lat_loc_send_bytes"] == (348, "KB")


def test_a_rate_with_a_prefix_is_multiplied_out_exactly(values):
    found = values("qperf/0.4.9.txt")
    assert found["tcp_bw_msg_rate"] == (1790, "/sec")
    assert found["tcp_lat_msg_rate"] == (23200, "/sec")


def test_thousands_have_commas_and_bytes_in_parentheses_are_passed_over(values):
    found = values("qperf/0.4.9.txt")
    assert found["tcp_bw_send_msgs"] == (53687, "")
    assert found["tcp_lat_rem_recv_msgs"] == (348040, "")
    assert found["tcp_bw_msg_size"] == (64, "KiB")
    assert found["tcp_lat_msg_size"] == (1, "bytes")


def test_shares_of_processors_are_percent(values):
    assert values("qperf/0.4.9.txt")["tcp_lat_rem_cpus_iowait"] == (0.07, "%")


def test_what_is_0_and_so_not_printed_is_missing(parse):
    missing = parse("qperf/0.4.9.txt").missing
    assert missing == (
        "tcp_bw_send_errors",
        "tcp_bw_recv_cpus_iowait",
        "tcp_bw_recv_errors",
        "tcp_lat_loc_cpus_iowait",
        "tcp_lat_loc_send_errors",
        "tcp_lat_loc_recv_errors",
        "tcp_lat_rem_send_errors",
        "tcp_lat_rem_recv_errors",
    )


def test_bits_are_told_from_bytes(values):
    assert values("qperf/0.4.11-bits.txt") == {
        "tcp_bw_bandwidth": (21.3, "Gbits/sec"),
        "tcp_lat_latency": (980, "ns"),
    }


def test_the_output_of_debian_12_is_read(values):
    found = values("qperf/0.4.11.txt")
    assert found["tcp_bw_bandwidth"] == (43.5, "MB/sec")
    assert found["tcp_bw_msg_rate"] == (656, "/sec")
    assert found["tcp_bw_send_cost"] == (44.6, "sec/GB")
    assert found["tcp_bw_send_cpus_intr"] == (0.5, "%")
    assert found["tcp_bw_send_msgs"] == (1389, "")
    assert found["tcp_lat_latency"] == (842, "us")
    assert found["tcp_lat_rem_recv_bytes"] == (1.19, "KB")
    assert len(found) == 47  # 53 but for six shares of processors that were 0


def test_a_faster_network_is_told_in_gb_and_us(values):
    found = values("qperf/0.4.11-fast.txt")
    assert found["tcp_bw_bandwidth"] == (1.51, "GB/sec")
    assert found["tcp_bw_msg_rate"] == (23000, "/sec")
    assert found["tcp_bw_recv_bytes"] == (3.02, "GB")
    assert found["tcp_lat_latency"] == (12.6, "us")
    assert found["tcp_lat_msg_rate"] == (79400, "/sec")
    assert found["tcp_lat_loc_cpus_intr"] == (31.5, "%")


LOG = "qperf/0.4.9.txt"
CUT = "the log ends inside this line: it was cut off"
COMMA = "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
SPEEDS = (
    "B/s, GB/s, GB/sec, Gbits/sec, GiB/s, KB/sec, Kbits/sec, KiB/s, MB/s, MB/sec, Mbits/sec, MiB/s, MiB/sec, TB/sec, "
    "Tbits/sec, TiB/s, bits/sec, bytes/sec, kB/s"
)
Edit = Callable[[str], str] | tuple[str, str] | str


VALUES: list[tuple[str, Edit, str, int, str]] = [
    ("comma", ("43.1 us", "43,1 us"), "tcp_lat_latency", 28, f"tcp_lat_latency (43,1) {COMMA}"),
    ("nan", ("117 MB/sec", "nan MB/sec"), "tcp_bw_bandwidth", 2, "tcp_bw_bandwidth (nan) is no finite number"),
    ("negative", ("1.02 sec/GB", "-1.02 sec/GB"), "tcp_bw_recv_cost", 9, "tcp_bw_recv_cost (-1.02) is negative"),
    (
        "unknown unit",
        ("117 MB/sec", "117 MX/sec"),
        "tcp_bw_bandwidth",
        2,
        f"tcp_bw_bandwidth (117) has the unknown unit 'MX/sec'; expected one of {SPEEDS}",
    ),
    ("a word", ("512 ms/GB", "much"), "tcp_bw_send_cost", 8, "tcp_bw_send_cost (much) is no number"),
    (
        "unknown name",
        ("    bw     ", "    speed  "),
        "tcp_bw_bandwidth",
        2,
        "tcp_bw_speed is no metric of qperf that is known",
    ),
    ("groups of two", ("53,687", "53,68"), "tcp_bw_send_msgs", 18, f"tcp_bw_send_msgs (53,68) {COMMA}"),
]


@pytest.mark.parametrize(
    ("edit", "lost", "place", "reason"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES]
)
def test_a_value_that_is_none_is_a_fault_and_the_rest_survives(broken, edit, lost, place, reason):
    found = broken("network-qperf", LOG, edit)
    assert (found.lost, found.faults) == ({lost}, [(place, reason)])


@pytest.mark.parametrize(
    ("marker", "n_lost", "faults"),
    [
        ("rem_recv_msgs    =  348,04", 1, [(53, CUT)]),
        ("rem_send_bytes   =     348 K", 4, [(50, CUT)]),
        ("tcp_lat:\n", 26, [(27, "the log is cut off: nothing under tcp_lat")]),
        ("recv_msgs         =  53,590 \n", 26, []),
    ],
)
def test_a_log_that_was_cut_off_keeps_what_came_before(broken, marker, n_lost, faults):
    found = broken("network-qperf", LOG, (marker))
    assert len(found.lost) == n_lost
    assert [(place, reason.split("; ")[0]) for place, reason in found.faults] == faults


def test_a_test_that_stands_there_twice_or_is_another_is_a_fault(broken):
    found = broken("network-qperf", LOG, lambda text: text + text)
    assert found.lost == set()
    assert found.faults == [
        (54, "tcp_bw stands there twice; the first counts"),
        (80, "tcp_lat stands there twice; the first counts"),
    ]
    found = broken("network-qperf", LOG, lambda text: f"{text}udp_lat:\n    latency  =  50.3 us\n")
    assert (found.lost, found.faults) == (set(), [(54, "the test udp_lat is not read; expected tcp_bw or tcp_lat")])


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("tcp_lat:", "[ 88.1] device eth0 left promiscuous mode\ntcp_lat:"),
        lambda text: text.replace("    timeout ", "    port              =  5,201 \n    timeout "),
    ],
    ids=["Windows", "a foreign line", "a setting without a metric"],
)
def test_what_does_not_touch_a_value_costs_none(broken, edit):
    found = broken("network-qperf", LOG, edit)
    assert (found.lost, found.faults) == (set(), [])


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", [(1, "the log is empty")]),
        (
            "tcp_bw:\n127.0.0.1: failed to connect\n",
            [(2, "qperf reported an error: 127.0.0.1: failed to connect")],
        ),
        ("tcp_bw:\n", [(1, "the log is cut off: nothing under tcp_bw")]),
        ("hello\n", [(1, "no result of qperf in it")]),
    ],
)
def test_a_log_without_results_gives_nothing_and_says_why(broken, text, faults):
    found = broken("network-qperf", LOG, lambda _: text)
    assert (found.log.measured, found.faults) == ((), faults)
