"""iperf3: each direction and each end, in text and JSON; a broken log keeps what is whole, the rest is said."""

import json
from collections.abc import Callable

import pytest


def test_both_directions_of_bidir_are_read(values):
    found = values("iperf3/3.7-bidir.txt")
    assert found["tx_c_transfer_size_sender"] == (3.51, "GiB")
    assert found["tx_c_transfer_size_receiver"] == (3.50, "GiB")
    assert found["rx_c_transfer_bitrate_receiver"] == (0.11, "GiB/s")
    assert (found["tx_c_transfer_retr_sender"], found["rx_c_transfer_retr_sender"]) == ((418, ""), (902, ""))
    assert found["tx_c_time_receiver"] == (30.04, "sec")
    assert len(found) == 26


def test_the_cpu_use_belongs_to_the_end_and_not_to_the_host(values):
    found = values("iperf3/3.7-bidir.txt")
    assert found["tx_c_cpu_util_sender"] == found["rx_c_cpu_util_receiver"] == (11.3, "%")
    assert found["tx_c_cpu_util_receiver"] == found["rx_c_cpu_util_sender"] == (9.8, "%")
    assert found["rx_c_cpu_util_sender_system"] == (8.9, "%")


def test_one_way_gives_one_direction_and_the_other_is_missing(parse, values):
    found = values("iperf3/3.1.txt")
    assert found["tx_c_transfer_bitrate_sender"] == (943, "Mbits/sec")
    assert found["tx_c_transfer_size_receiver"] == (1.09, "GiB")
    assert {name for name in found if name.startswith("rx_c")} == set()
    assert parse("iperf3/3.1.txt").version == "3.1.3"


def test_reverse_mode_is_the_way_back(values):
    found = values("iperf3/3.1-reverse.txt")
    assert found["rx_c_transfer_bitrate_receiver"] == (797, "Kbits/sec")
    assert found["rx_c_transfer_size_receiver"] == (973, "KiB")
    assert found["rx_c_transfer_retr_sender"] == (231, "")
    assert "tx_c_time_sender" not in found


def test_of_parallel_streams_the_sum_counts(values):
    found = values("iperf3/3.9-parallel.txt")
    assert found["tx_c_transfer_size_sender"] == (1.09, "GiB")
    assert found["tx_c_transfer_retr_sender"] == (7, "")
    assert found["tx_c_transfer_bitrate_receiver"] == (8.99, "Gbits/sec")


def test_the_json_of_one_way_has_round_trips_too(values):
    found = values("iperf3/3.1.json")
    assert found["tx_c_transfer_size_sender"] == (236187648, "B")
    assert found["tx_c_transfer_bitrate_receiver"] == (939415593.498951, "bits/sec")
    assert found["tx_c_rtt_mean"] == (4001, "us")
    assert found["tx_c_max_snd_cwnd"] == (525624, "B")
    assert found["tx_c_cpu_util_receiver_user"] == (1.284411, "%")
    assert len(found) == 17


def test_the_text_of_debian_12_is_read(values):
    found = values("iperf3/3.12-bidir.txt")
    assert found["tx_c_transfer_bitrate_receiver"] == (320, "Mbits/sec")
    assert found["rx_c_transfer_size_sender"] == (91.2, "MiB")
    assert (found["tx_c_transfer_retr_sender"], found["rx_c_transfer_retr_sender"]) == ((10, ""), (2, ""))
    assert found["rx_c_cpu_util_sender_user"] == (0.7, "%")
    assert len(found) == 26
    assert values("iperf3/3.12-reverse.txt")["rx_c_transfer_retr_sender"] == (4, "")
    assert values("iperf3/3.12.txt")["tx_c_transfer_size_sender"] == (125, "MiB")


def test_the_json_of_debian_12_is_read_both_ways(values):
    found = values("iperf3/3.12-bidir.json")
    assert found["tx_c_transfer_size_sender"] == (100794368, "B")
    assert found["rx_c_transfer_bitrate_receiver"] == (319300622.97617966, "bits/sec")
    assert (found["tx_c_transfer_retr_sender"], found["rx_c_transfer_retr_sender"]) == ((1, ""), (4, ""))
    assert (found["tx_c_rtt_min"], found["tx_c_rtt_max"]) == ((6283, "us"), (14085, "us"))
    assert found["rx_c_cpu_util_receiver"] == found["tx_c_cpu_util_sender"] == (2.7954281741352665, "%")
    assert found["rx_c_time_receiver"] == (2.170709, "s")
    assert len(found) == 30


def test_the_json_of_reverse_mode_has_the_way_back_only(values):
    found = values("iperf3/3.12-reverse.json")
    assert found["rx_c_transfer_size_sender"] == (129761280, "B")
    assert found["rx_c_transfer_retr_sender"] == (17, "")
    assert found["rx_c_cpu_util_sender_system"] == (1.9230537503596867, "%")
    assert {name for name in found if name.startswith("tx_c")} == set()


def test_round_trips_of_parallel_streams_are_joined(values):
    found = values("iperf3/3.12-parallel.json")
    assert found["tx_c_transfer_size_sender"] == (23330816, "B")
    assert (found["tx_c_rtt_min"], found["tx_c_rtt_max"]) == ((14167, "us"), (14570, "us"))
    assert found["tx_c_rtt_mean"] == (14368.5, "us")


TEXT, JSON = "iperf3/3.7-bidir.txt", "iperf3/3.1.json"
NO_END = "the log is cut off: no 'iperf Done.' at its end"
COMMA = "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
SECOND = "another log begins here; only the first of iperf3 is read"
UNCLEAR = "a summary without its time, size and speed"
Edit = Callable[[str], str] | tuple[str, str] | str


def cpu_util(prefix: str) -> set[str]:
    return {f"{prefix}_cpu_util_{end}{mode}" for end in ("sender", "receiver") for mode in ("", "_user", "_system")}


def summary(prefix: str, end: str) -> set[str]:
    retransmits = {f"{prefix}_transfer_retr_sender"} if end == "sender" else set()
    return {f"{prefix}_{what}_{end}" for what in ("time", "transfer_size", "transfer_bitrate")} | retransmits


VALUES: list[tuple[str, str, Edit, str, int, str]] = [
    (
        "comma",
        TEXT,
        ("3.51 GBytes", "3,51 GBytes"),
        "tx_c_transfer_size_sender",
        17,
        f"tx_c_transfer_size_sender (3,51) {COMMA}",
    ),
    (
        "nan",
        TEXT,
        ("3.50 GBytes  0.12", "3.50 GBytes  -nan"),
        "tx_c_transfer_bitrate_receiver",
        18,
        "tx_c_transfer_bitrate_receiver (-nan) is no finite number",
    ),
    (
        "JSON NaN",
        JSON,
        ('"mean_rtt":\t4001', '"mean_rtt":\tNaN'),
        "tx_c_rtt_mean",
        1,
        "tx_c_rtt_mean (nan) is no finite number",
    ),
    (
        "JSON text",
        JSON,
        ('"host_total":\t2.128441', '"host_total":\t"2.1"'),
        "tx_c_cpu_util_sender",
        1,
        "tx_c_cpu_util_sender (2.1) is no number",
    ),
    (
        "JSON negative",
        JSON,
        ("1.284411", "-1.284411"),
        "tx_c_cpu_util_receiver_user",
        1,
        "tx_c_cpu_util_receiver_user (-1.284411) is negative",
    ),
]


@pytest.mark.parametrize(
    ("log", "edit", "lost", "place", "reason"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES]
)
def test_a_value_that_is_none_is_a_fault_and_the_rest_survives(broken, log, edit, lost, place, reason):
    found = broken("network-iperf3", log, edit)
    assert (found.lost, found.faults) == ({lost}, [(place, reason)])


def test_a_summary_that_does_not_read_costs_its_own_values(broken):
    found = broken("network-iperf3", TEXT, ("3.50 GBytes", "lots of GBytes"))
    assert (found.lost, found.faults) == (summary("tx_c", "receiver"), [(18, UNCLEAR)])
    found = broken("network-iperf3", TEXT, ("local/receiver 11.3%", "local/receiver a bit"))
    assert (found.lost, found.faults) == (cpu_util("rx_c"), [(22, UNCLEAR)])


def test_a_log_that_was_cut_off_keeps_whole_lines_only(broken):
    rest = summary("rx_c", "sender") | summary("rx_c", "receiver") | cpu_util("rx_c")
    found = broken("network-iperf3", TEXT, ("remote/receiver 9.8% (0.9%u/8.9%s)\n"))
    assert (found.lost, found.faults) == (rest, [(19, NO_END)])
    found = broken("network-iperf3", TEXT, ("remote/receiver 9.8% (0.9%u/8."))
    assert found.lost == rest | cpu_util("tx_c")
    assert found.faults == [(19, "the log ends inside this line: it was cut off"), (19, NO_END)]


@pytest.mark.parametrize(
    "edit",
    [
        str.rstrip,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("- - - -", "[ 88.1] device eth0 entered promiscuous mode\n- - - -", 1),
        lambda text: text.replace("iperf Done.", "warning: this system does not seem to support IPv6\n\niperf Done."),
    ],
    ids=["no last line break", "Windows", "a foreign line", "a warning"],
)
def test_what_does_not_touch_a_value_costs_none(broken, edit):
    found = broken("network-iperf3", TEXT, edit)
    assert (found.lost, found.faults) == (set(), [])


def test_of_two_logs_the_first_is_read(broken):
    found = broken("network-iperf3", TEXT, lambda text: text + text)
    assert (found.lost, found.faults) == (set(), [(25, SECOND)])
    found = broken("network-iperf3", JSON, lambda text: text + text)
    assert (found.lost, [reason for _, reason in found.faults]) == (set(), [SECOND])


def test_json_that_was_cut_gives_nothing(broken):
    found = broken("network-iperf3", JSON, ('"cpu_utilization_percent":'))
    assert found.log.measured == ()
    assert [(place, reason.split(":")[0]) for place, reason in found.faults] == [(1, "malformed JSON")]


def test_sums_that_are_no_numbers_are_faults_and_the_others_are_read(broken):
    def edit(text: str) -> str:
        head, tail = text.split('"sum_sent":')
        return f'{head}"sum_sent":{tail.replace("2.000231", "Infinity", 2)}'

    found = broken("network-iperf3", JSON, edit)
    assert found.lost == {"tx_c_time_sender"}
    assert found.faults == [(1, "tx_c_time_sender (inf) is no finite number")]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", [(1, "the log is empty")]),
        (
            "iperf3: error - unable to connect to server: Connection refused\n",
            [(1, "iperf3 reported an error: iperf3: error - unable to connect to server: Connection refused")],
        ),
        (
            '{"start": {}, "intervals": [], "end": {}, "error": "error - the server is busy running a test"}',
            [(1, "iperf3 reported an error: error - the server is busy running a test")],
        ),
        (
            "-----------\nServer listening on 5201\n-----------\nAccepted connection from 10.0.0.1, port 4\n"
            "[  5]   0.00-2.00   sec  1.02 GBytes  4.38 Gbits/sec                  receiver\n",
            [(1, "the log of a server; the client's is read")],
        ),
        (
            '{"start": {"accepted_connection": {"host": "::1"}}, "end": {"sum_sent": {"seconds": 1}}}',
            [(1, "the log of a server; the client's is read")],
        ),
        ('{"start": {}, "end": {}}', [(1, "no results: end is empty")]),
        ('{"start": {}, "end": {"sum": {"seconds": 2}}}', [(1, "no sum_sent under end; expected a TCP test")]),
        ("Client connecting to 10.0.0.1, TCP port 5001\n", [(1, "no result of iperf3 in it")]),
    ],
    ids=["empty", "text error", "JSON error", "server", "JSON server", "no end", "UDP", "iperf 2"],
)
def test_a_log_without_results_gives_nothing_and_says_why(broken, text, faults):
    found = broken("network-iperf3", TEXT, lambda _: text)
    assert (found.log.measured, found.faults) == ((), faults)


def test_the_json_of_a_refused_connection_says_so(parse):
    log = parse("iperf3/3.12-refused.json")
    assert log.measured == ()
    assert [fault.reason for fault in log.faults] == [
        "iperf3 reported an error: unable to connect to server: Connection refused"
    ]


def test_datagrams_are_not_read_and_that_is_said(read_faults):
    log = read_faults(
        "network-iperf3",
        "Connecting to host a, port 5201\n"
        "[  5]   0.00-2.00   sec  2.5 MBytes  1.05 Mbits/sec  0.013 ms  0/181 (0%)  receiver\n\niperf Done.\n",
    )
    assert log.measured == ()
    assert [fault.reason for fault in log.faults] == [UNCLEAR]


SILENT = "the receiver told nothing: 0 bytes in 0 s"
RECEIVER = summary("tx_c", "receiver") | {
    f"tx_c_cpu_util_receiver{mode}" for mode in ("", "_user", "_system")
}  # a server that was killed told none of it


def test_a_side_that_told_nothing_is_missing_and_not_zero(logs, read_faults, parse):
    document = json.loads((logs / "iperf3/3.12.json").read_text())
    document["error"] = "error - the server has terminated"
    document["end"]["sum_received"] |= {"seconds": 0, "bytes": 0, "bits_per_second": 0}
    document["end"]["cpu_utilization_percent"] |= dict.fromkeys(("remote_total", "remote_user", "remote_system"), 0)
    log = read_faults("network-iperf3", json.dumps(document))
    assert {one.metric for one in parse("iperf3/3.12.json").measured} - {one.metric for one in log.measured} == RECEIVER
    told = "iperf3 reported an error: error - the server has terminated"
    assert ([fault.reason for fault in log.faults], log.has_failed) == ([told, SILENT], True)


def test_a_side_that_told_nothing_in_text_is_missing_and_not_zero(logs, read_faults, parse):
    edit = ("0.00-2.23   sec   124 MBytes   466 Mbits/sec", "0.00-2.23   sec  0.00 Bytes  0.00 bits/sec")
    log = read_faults("network-iperf3", (logs / "iperf3/3.12.txt").read_text().replace(*edit))
    lost = {one.metric for one in parse("iperf3/3.12.txt").measured} - {one.metric for one in log.measured}
    assert lost == summary("tx_c", "receiver")
    assert [fault.reason for fault in log.faults] == ["the receiver told nothing: 0.00 Bytes in 2.23 s"]


@pytest.mark.parametrize(
    ("line", "has_failed"),
    [("iperf3: interrupt - the client has terminated", True), ("iperf3: warning: parameter is ignored", False)],
)
def test_a_log_in_which_the_tool_reports_an_error_has_failed(logs, read_faults, line, has_failed):
    log = read_faults("network-iperf3", f"{(logs / 'iperf3/3.12.txt').read_text()}{line}\n")
    assert (len(log.faults), log.has_failed) == (1, has_failed)
