"""Broken logs of qperf: what survives, and what is said of the rest."""

from collections.abc import Callable

import pytest

LOG = "qperf/0.4.9.txt"
CUT = "the log ends inside this line: it was cut off"
COMMA = "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
SPEEDS = (
    "B/s, GB/s, GB/sec, Gbits/sec, GiB/s, KB/sec, Kbits/sec, KiB/s, MB/s, MB/sec, Mbits/sec, MiB/s, MiB/sec, TB/sec, "
    "Tbits/sec, TiB/s, bits/sec, bytes/sec, kB/s"
)
Edit = Callable[[str], str]


def swap(old: str, new: str) -> Edit:
    def edit(text: str) -> str:
        assert text.count(old) == 1
        return text.replace(old, new)

    return edit


def until(marker: str) -> Edit:
    """Ends the log behind the marker."""
    return lambda text: text[: text.index(marker) + len(marker)]


VALUES: list[tuple[str, Edit, str, int, str]] = [
    ("comma", swap("43.1 us", "43,1 us"), "tcp_lat_latency", 28, f"tcp_lat_latency (43,1) {COMMA}"),
    ("nan", swap("117 MB/sec", "nan MB/sec"), "tcp_bw_bandwidth", 2, "tcp_bw_bandwidth (nan) is no finite number"),
    ("negative", swap("1.02 sec/GB", "-1.02 sec/GB"), "tcp_bw_recv_cost", 9, "tcp_bw_recv_cost (-1.02) is negative"),
    (
        "unknown unit",
        swap("117 MB/sec", "117 MX/sec"),
        "tcp_bw_bandwidth",
        2,
        f"tcp_bw_bandwidth (117) has the unknown unit 'MX/sec'; expected one of {SPEEDS}",
    ),
    ("a word", swap("512 ms/GB", "much"), "tcp_bw_send_cost", 8, "tcp_bw_send_cost (much) is no number"),
    (
        "unknown name",
        swap("    bw     ", "    speed  "),
        "tcp_bw_bandwidth",
        2,
        "tcp_bw_speed is no metric of qperf that is known",
    ),
    ("groups of two", swap("53,687", "53,68"), "tcp_bw_send_msgs", 18, f"tcp_bw_send_msgs (53,68) {COMMA}"),
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
    found = broken("network-qperf", LOG, until(marker))
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
