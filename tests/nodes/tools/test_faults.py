"""Of a broken log what is whole survives, and the rest is said with its line; the same for all tools."""

import json
import re
from collections.abc import Callable

import pytest

CUT = "the log ends inside this line: it was cut off"
COMMA = "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
NOT_FINITE = "is no finite number"
AGAIN = "another log begins here; only the first is read"
FIO, FIO_JSON = "fio/3.1-write.txt", "fio/2.2.10.json"
IOPING, IOPING_RAW = "ioping/1.1.txt", "ioping/1.0-raw.txt"
QPERF = "qperf/0.4.9.txt"
IPERF, IPERF_JSON = "iperf3/3.7-bidir.txt", "iperf3/3.1.json"
CPU, MEMORY = "sysbench/cpu-1.0.17.txt", "sysbench/memory-1.0.17.txt"
Edit = Callable[[str], str] | tuple[str, str] | str

# log, line, what stands there, what for it, why its metric is refused (… stands for the rest)
VALUES = [
    (FIO, 9, "avg=386.05", "avg=386,05", f"write_clat_avg (386,05) {COMMA}"),
    (FIO, 10, "avg=393.68", "avg=-nan", f"write_lat_avg (-nan) {NOT_FINITE}"),
    (FIO, 21, "usr=2.99%", "usr=-2.99%", "cpu_usr (-2.99) is negative"),
    (FIO, 17, "min=30184", f"min={2**64 - 1}", f"write_bw_min ({2**64 - 1}) is more than any counter holds"),
    (FIO, 7, "IOPS=10.1k", "IOPS=lots", "write_iops (lots) is no number"),
    (FIO, 17, " stdev=619.59,", "", "write_bw_stdev is not in its line"),
    (FIO, 16, "[28181]", "[2818x]", "write_clat_99_99p (2818x) is no number"),
    (FIO_JSON, 1, "15560.21", "NaN", f"read_clat_avg (nan) {NOT_FINITE}"),
    (FIO_JSON, 1, "99.34", "Infinity", f"read_bw_per (inf) {NOT_FINITE}"),
    (FIO_JSON, 1, ": 2001,", ": -2001,", "read_runtime (-2001) is negative"),
    (FIO_JSON, 1, "63.97", '"63.97"', "read_iops (63.97) is no number"),
    (FIO_JSON, 1, "63.97", "null", "read_iops (None) is no number"),
    (FIO_JSON, 1, "63.97", "true", "read_iops (True) is no number"),
    (FIO_JSON, 1, "2872,", f"{2**64 - 1},", f"read_lat_min ({2**64 - 1}) is more than any counter holds"),
    (FIO_JSON, 1, "60213,", f"{9 * 10**18},", f"read_lat_max ({9 * 10**18}) is longer than a machine lives"),
    (IOPING, 9, "1.01 ms", "1,01 ms", f"latency_avg (1,01) {COMMA}"),
    (IOPING, 7, "987 iops", "-nan iops", f"iops (-nan) {NOT_FINITE}"),
    (IOPING, 9, "98.7 us /", "-98.7 us /", "latency_min (-98.7) is negative"),
    (IOPING, 7, "29.4 ms", "29.4 eons", "total_duration (29.4) has the unknown unit 'eons'; expected one of…"),
    (IOPING, 9, "820.4 us", "fast", "latency_mdev is no number with a unit"),
    (IOPING, 9, "5.02 ms / 820.4", "99999999 day / 820.4", "latency_max (99999999) is longer than a machine lives"),
    (QPERF, 28, "43.1 us", "43,1 us", f"tcp_lat_latency (43,1) {COMMA}"),
    (QPERF, 2, "117 MB/sec", "nan MB/sec", f"tcp_bw_bandwidth (nan) {NOT_FINITE}"),
    (QPERF, 9, "1.02 sec/GB", "-1.02 sec/GB", "tcp_bw_recv_cost (-1.02) is negative"),
    (QPERF, 2, "117 MB/sec", "117 MX/sec", "tcp_bw_bandwidth (117) has the unknown unit 'MX/sec'; expected…"),
    (QPERF, 8, "512 ms/GB", "much", "tcp_bw_send_cost (much) is no number"),
    (QPERF, 18, "53,687", "53,68", f"tcp_bw_send_msgs (53,68) {COMMA}"),
    (IPERF, 17, "3.51 GBytes", "3,51 GBytes", f"tx_c_transfer_size_sender (3,51) {COMMA}"),
    (IPERF, 18, "3.50 GBytes  0.12", "3.50 GBytes  -nan", f"tx_c_transfer_bitrate_receiver (-nan) {NOT_FINITE}"),
    (IPERF_JSON, 1, '"mean_rtt":\t4001', '"mean_rtt":\tNaN', f"tx_c_rtt_mean (nan) {NOT_FINITE}"),
    (IPERF_JSON, 1, '"host_total":\t2.128441', '"host_total":\t"2.1"', "tx_c_cpu_util_sender (2.1) is no number"),
    (IPERF_JSON, 1, "1.284411", "-1.284411", "tx_c_cpu_util_receiver_user (-1.284411) is negative"),
    (CPU, 23, "8.80", "-nan", f"latency_avg (-nan) {NOT_FINITE}"),
    (CPU, 15, "1816.43", "inf", f"events_per_second (inf) {NOT_FINITE}"),
    (CPU, 22, "  1.04", " -1.04", "latency_min (-1.04) is negative"),
    (CPU, 15, "1816.43", "1816,43", f"events_per_second (1816,43) {COMMA}"),
    (CPU, 19, "54512", "54,512", f"total_number_of_events (54,512) {COMMA}"),
    (CPU, 22, "  1.04", " 18446744073709.55", "latency_min (18446744073709.55) is longer than a machine lives"),
    (CPU, 19, "54512", "many", "total_number_of_events (many) is no number"),
    (CPU, 19, "54512", "", "total_number_of_events () is no number"),
    (CPU, 18, "30.0089s", "30.0089fortnights", "total_time (30.0089) has the unknown unit 'fortnights'; expected…"),
    (CPU, 19, "54512", "9" * 20, f"total_number_of_events ({'9' * 20}) is more than any counter holds"),
    (CPU, 23, "8.80", "8.\x0080", "latency_avg (8.\x0080) is no number"),
    (MEMORY, 20, "(5023.16 MiB/sec)", "(-5023.16 MiB/sec)", "transfer_rate (-5023.16) is negative"),
]


@pytest.mark.parametrize(("log", "line", "old", "new", "why"), VALUES, ids=[f"{row[0]}-{row[3]}" for row in VALUES])
def test_a_value_that_is_none_is_a_fault_with_its_line_and_the_rest_survives(broken, log, line, old, new, why):
    found = broken(log, (old, new))
    ((place, reason),) = found.faults
    assert (found.lost, place) == ({why.split()[0]}, line)
    assert reason.startswith(why[:-1]) if why.endswith("…") else reason == why


def moments(prefix: str, *names: str) -> set[str]:
    return {f"{prefix}_{name}" for name in names or ("min", "max", "avg", "stdev")}


def use(prefix: str, *ends: str) -> set[str]:
    return {f"{prefix}_cpu_util_{end}{mode}" for end in ends for mode in ("", "_user", "_system")}


def summary(prefix: str, end: str) -> set[str]:
    retransmits = {f"{prefix}_transfer_retr_sender"} if end == "sender" else set()
    return {f"{prefix}_{what}_{end}" for what in ("time", "transfer_size", "transfer_bitrate")} | retransmits


# of fio
TOTALS = {"number_of_processes", "write_iops", "write_bw", "write_io_size", "write_runtime"}
BEHIND = moments("write_bw") | moments("write_iops") | moments("write_bw", "samples", "per") | moments(
    "write", "iops_samples", "total_ios", "short_ios", "dropped_ios"
) | moments("cpu", "usr", "sys", "ctx", "majf", "minf") | {"disk_util"}  # fmt: skip
# of ioping
LATENCIES, COUNTED = moments("latency", "min", "avg", "max", "mdev"), {"number_of_requests", "total_duration", "iops"}
COUNTED |= {"transfer_size", "transfer_bitrate"}
GENERATED = moments("generated", "requests", "duration", "size", "iops", "bitrate")
# of sysbench
EXCTIME = {"fairness_exctime_avg", "fairness_exctime_stddev"}
FAIRNESS = EXCTIME | {"fairness_events_avg", "fairness_events_stddev"}
# of iperf3
RX = summary("rx_c", "sender") | summary("rx_c", "receiver") | use("rx_c", "sender", "receiver")
NO_STATUS, NO_LATENCY, NO_DONE, NO_TIME = (
    f"the log is cut off: no {what} at its end" if what != "min/avg/max/mdev" else f"the log is cut off: no {what}"
    for what in ("'Run status group'", "min/avg/max/mdev", "'iperf Done.'", "'execution time (avg/stddev)'")
)
NO_REQUESTS, UNCLEAR = "no number of requests, time, iops and speed here", "a summary without its time, size and speed"
EDITS: list[tuple[str, Edit, set[str], list[tuple[int, str]]]] = [
    (FIO_JSON, ('"95.000000"', '"97.000000"'), {"read_clat_95p"}, [(1, "percentile 97.000000 is not kept")]),
    (FIO, "99.99th=[28181]\n", BEHIND, [(16, NO_STATUS)]),
    (FIO, ("err= 0", "err=28"), set(), [(6, "the job ended with error 28")]),
    (FIO_JSON, ('"error" : 0', '"error" : 28'), set(), [(1, "the job ended with error 28")]),
    (IOPING, "5.02 ms / 820.4 u", LATENCIES, [(9, CUT)]),
    (IOPING, "/ 5.02 ms / 82", LATENCIES, [(9, CUT)]),
    (IOPING, "246.8 MiB/s\n", GENERATED | LATENCIES, [(7, NO_LATENCY)]),
    (IOPING, "246.8 MiB", GENERATED | LATENCIES | COUNTED, [(7, NO_REQUESTS), (7, NO_LATENCY)]),
    (
        IOPING,
        "time=5.02 ms (slow)\n",
        GENERATED | LATENCIES | COUNTED,
        [(4, "the log is cut off: requests without statistics at the end")],
    ),
    (IOPING_RAW, "90044", {"generated_duration"}, [(1, CUT)]),
    ("ioping/0.8-raw.txt", str.rstrip, {"latency_mdev"}, [(1, CUT)]),
    (QPERF, "rem_recv_msgs    =  348,04", {"tcp_lat_rem_recv_msgs"}, [(53, CUT)]),
    (
        QPERF,
        ("    bw     ", "    speed  "),
        {"tcp_bw_bandwidth"},
        [(2, "tcp_bw_speed is no metric of qperf that is known")],
    ),
    (
        QPERF,
        lambda text: f"{text}udp_lat:\n    latency  =  50.3 us\n",
        set(),
        [(54, "the test udp_lat is not read; expected tcp_bw or tcp_lat")],
    ),
    (IPERF, ("3.50 GBytes", "lots of GBytes"), summary("tx_c", "receiver"), [(18, UNCLEAR)]),
    (IPERF, ("local/receiver 11.3%", "local/receiver a bit"), use("rx_c", "sender", "receiver"), [(22, UNCLEAR)]),
    (IPERF, "remote/receiver 9.8% (0.9%u/8.9%s)\n", RX, [(19, NO_DONE)]),
    (IPERF, "remote/receiver 9.8% (0.9%u/8.", RX | use("tx_c", "sender", "receiver"), [(19, CUT), (19, NO_DONE)]),
    (CPU, "sum:                               4798", {"latency_sum"} | FAIRNESS, [(26, CUT)]),
    (CPU, "8.80\n", {"latency_max", "latency_95p", "latency_sum"} | FAIRNESS, [(23, NO_TIME)]),
    (CPU, "3407.0000/19.31\n", EXCTIME, [(29, NO_TIME)]),
    (CPU, "29.9901/0.0", EXCTIME, [(30, CUT)]),
    (
        CPU,
        ("95th percentile", "99th percentile"),
        {"latency_95p"},
        [(25, "percentile 99 is not kept; run with --percentile=95")],
    ),
    (
        CPU,
        ("3407.0000/19.31", "3407.0000"),
        FAIRNESS - EXCTIME,
        [(29, "fairness_events_avg and fairness_events_stddev (3407.0000) is no number")],
    ),
    (
        CPU,
        ("         avg:", "         min:      9.99\n         avg:"),
        set(),
        [(23, "latency_min (9.99) stands there twice; the first counts")],
    ),
    (MEMORY, ("150705.07 MiB transferred (5023.16 MiB/sec)\n", ""), {"transfer_size", "transfer_rate"}, []),
]


@pytest.mark.parametrize(("log", "edit", "lost", "faults"), EDITS)
def test_a_log_that_was_cut_or_does_not_read_loses_what_is_not_whole_and_says_where(broken, log, edit, lost, faults):
    found = broken(log, edit)
    assert (found.lost, found.faults) == (lost, faults)


def test_of_what_was_cut_off_in_fio_and_qperf_the_whole_lines_stay(broken):
    found = broken(FIO, "clat (usec): min=59, max=454")
    assert {one.metric for one in found.log.measured} == TOTALS | moments("write_slat")
    assert found.faults == [(9, CUT), (9, NO_STATUS)]
    found = broken(FIO, "(1 file / 4096MiB)\n")
    assert (found.log.measured, found.faults) == ((), [(4, "the log is cut off: no job in it")])
    for end, n_lost, faults in (
        ("rem_send_bytes   =     348 K", 4, [(50, CUT)]),
        ("tcp_lat:\n", 26, [(27, "the log is cut off: nothing under tcp_lat")]),
        ("recv_msgs         =  53,590 \n", 26, []),
    ):
        found = broken(QPERF, end)
        assert (len(found.lost), [(place, why.split("; ")[0]) for place, why in found.faults]) == (n_lost, faults)


def test_an_unknown_unit_costs_the_values_of_its_line(broken):
    found = broken(FIO, ("    clat (usec): min", "    clat (jiffies): min"))
    assert found.lost == moments("write_clat")
    assert all("has the unknown unit 'jiffies'" in reason for _, reason in found.faults)


HARMLESS: list[tuple[str, Edit]] = [
    *((log, str.rstrip) for log in (FIO, IOPING, IPERF, CPU)),
    *((log, lambda text: text.replace("\n", "\r\n")) for log in (FIO, IOPING, QPERF, IPERF, CPU)),
    (FIO, lambda text: text.replace("     | 30.00th", "[ 12.5] audit: backlog limit exceeded\n     | 30.00th")),
    (FIO, lambda text: text.replace("\nmyjob: (groupid", "\rJobs: 1 (f=1): [W(1)][9.1%][eta 00m]\r\nmyjob: (groupid")),
    (FIO, lambda text: text.replace("sec):\n     |", "sec): |").replace(",\n     |", ", |")),
    (FIO, lambda text: re.sub(r"\.([0-9]{2}th=)", r",\1", text)),  # another locale
    (FIO_JSON, lambda text: f"note: both iodepth >= 1 and synchronous I/O engine are selected\n{text}\nDONE\n"),
    (IOPING, lambda text: text.replace("min/avg", "Nov 21 kernel: sd 0:0:0:0: [sda] tag#3\nmin/avg")),
    (IOPING, lambda text: text.replace("^", "").replace("\n---", "^C\n---")),
    (QPERF, lambda text: text.replace("tcp_lat:", "[ 88.1] device eth0 left promiscuous mode\ntcp_lat:")),
    (QPERF, lambda text: text.replace("    timeout ", "    port              =  5,201 \n    timeout ")),
    (IPERF, lambda text: text.replace("- - - -", "[ 88.1] device eth0 entered promiscuous mode\n- - - -", 1)),
    (IPERF, lambda text: text.replace("iperf Done.", "warning: this system does not support IPv6\n\niperf Done.")),
    (CPU, lambda text: "\ufeff" + text),
    (CPU, lambda text: text.replace("Latency (ms):", "[ 431.52] EXT4-fs (sda1): mounted\nLatency (ms):")),
    (CPU, lambda text: text.replace("Latency (ms):", "\x7fELF\x02\x00\ufffd\ufffd\nLatency (ms):")),
    (CPU, lambda text: text.replace("Threads started!", "\x1b[1mThreads started!\x1b[0m")),
]


@pytest.mark.parametrize(("log", "edit"), HARMLESS)
def test_what_does_not_touch_a_value_costs_none(broken, log, edit):
    found = broken(log, edit)
    assert (found.lost, found.faults) == (set(), [])


@pytest.mark.parametrize("log", [FIO, FIO_JSON, IOPING, IPERF, CPU, QPERF])
def test_of_several_logs_the_first_is_read(broken, log):
    found = broken(log, lambda text: text + text)
    assert (found.lost, [reason for _, reason in found.faults]) == (set(), [AGAIN])


def test_of_several_jobs_or_benchmarks_the_first_of_its_kind_is_read(broken, logs):
    job = "other: (groupid=0, jobs=1): err= 0: pid=9: Fri Oct  6 05:21:27 2017\n  write: IOPS=1, BW=4KiB/s (4kB/s)"
    found = broken(FIO, ("\nRun status", f"{job}(8KiB/2msec)\n\nRun status"))
    assert (found.lost, found.faults) == ({"disk_util"}, [(27, AGAIN)])  # which is of both
    found = broken(CPU, lambda text: (logs / MEMORY).read_text() + text)
    assert (found.lost, found.faults) == (set(), [(1, AGAIN)])


ALONE = '"stat": {"count": 9, "size": 36864, "time": 4302017, "iops": 2092.0, "bps": 8569004, "min": 318311'
UDP = "a UDP test, which is read in JSON alone; run with -J"
SERVER = "the log of a server; the client's is read"
NOTHING = [  # log, text in its place, line and reason
    *((log, "", 1, "the log is empty") for log in (FIO, IOPING, QPERF, IPERF, CPU)),
    (CPU, " \n\t\n", 1, "the log is empty"),
    (FIO, "fio: unable to open 'a.fio'\n", 1, "fio reported an error: fio: unable to open 'a.fio'"),
    (FIO, '{"fio version": "fio-3.33", "jobs": []}', 1, "no jobs in it; expected the output of a run"),
    (FIO, '{"fio version": "fio-3.33", "jobs": {"read": 1}}', 1, "no jobs in it; expected the output of a run"),
    (FIO, '{"fio version": "fio-3.33", "jobs": [7]}', 1, "neither read nor written"),
    (FIO, "<html>504 Gateway Time-out</html>\n", 1, "no result of fio in it"),
    (IOPING, "ioping: failed to create\n", 1, "ioping reported an error: ioping: failed to create"),
    (
        IOPING,
        "9 4302017 50 8569004 318311 478002 709284 117606 10 9004411837\n",
        1,
        "requests, time and requests per second do not fit: neither ns nor us",
    ),
    (
        IOPING,
        "9 4302017 2092 8569004 318311 478002 709284 117606\n7 4302017 1627 8569004 418311 478002 709284 117606\n",
        2,
        "several lines of raw statistics, and the last is not their total",
    ),
    (IOPING, "9 4302017 2092 8569004 318311 478002 709284\n", 1, "no result of ioping in it"),
    (IOPING, f"[{{\n{ALONE}", 1, "malformed JSON: Expecting ',' delimiter in line 2"),
    (IOPING, '[{"io": {"request": 1}}]', 1, "the log has requests, but no statistics"),
    (IOPING, "total 8\ndrwxr-xr-x 2 root root 4096\n", 1, "no result of ioping in it"),
    (QPERF, "tcp_bw:\n127.0.0.1: failed to connect\n", 2, "qperf reported an error: 127.0.0.1: failed to connect"),
    (QPERF, "tcp_bw:\n", 1, "the log is cut off: nothing under tcp_bw"),
    (QPERF, "hello\n", 1, "no result of qperf in it"),
    (IPERF, "iperf3: error - unable to connect\n", 1, "iperf3 reported an error: iperf3: error - unable to connect"),
    (IPERF, '{"start": {}, "end": {}, "error": "error - busy"}', 1, "iperf3 reported an error: error - busy"),
    (
        IPERF,
        "-----------\nServer listening on 5201\n-----------\nAccepted connection from 10.0.0.1, port 4\n"
        "[  5]   0.00-2.00   sec  1.02 GBytes  4.38 Gbits/sec                  receiver\n",
        1,
        SERVER,
    ),
    (IPERF, '{"start": {"accepted_connection": {"host": "::1"}}, "end": {"sum_sent": {"seconds": 1}}}', 1, SERVER),
    (IPERF, '{"start": {}, "end": {}}', 1, "no results: end is empty"),
    (IPERF, '{"start": {}, "end": {"sum": {"seconds": 2}}}', 1, "no sum_sent under end; expected a TCP test"),
    (
        IPERF,
        '{"start": {"test_start": {"protocol": "UDP"}}, "end": {"sum_sent": {"bytes": 1}}}',
        1,
        "no result of iperf3 in it",
    ),
    (IPERF, "Client connecting to 10.0.0.1, TCP port 5001\n", 1, "no result of iperf3 in it"),
    (
        IPERF,  # datagrams
        "Connecting to host a, port 5201\n"
        "[  5]   0.00-2.00   sec  2.5 MBytes  1.05 Mbits/sec  0.013 ms  0/181 (0%)  receiver\n\niperf Done.\n",
        2,
        UDP,
    ),
    (CPU, "sysbench 1.0.17 (LuaJIT)\n\nFATAL: error 11\n", 3, "sysbench reported an error: FATAL: error 11"),
    (CPU, "PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.\n", 1, "no result of sysbench in it"),
    (CPU, "\x00\x01\x02\ufffd" * 300, 1, "no result of sysbench in it"),
]


@pytest.mark.parametrize(("log", "text", "line", "why"), NOTHING)
def test_a_log_without_results_gives_nothing_and_says_why(broken, log, text, line, why):
    found = broken(log, lambda _: text)
    assert {one.metric for one in found.log.measured} <= {"number_of_processes"}
    assert found.faults == [(line, why)]


def test_json_that_was_cut_gives_nothing(broken):
    for log, end in ((FIO_JSON, '"usr_cpu" : 0.15'), (IPERF_JSON, '"cpu_utilization_percent":')):
        found = broken(log, end)
        assert (found.log.measured, len(found.faults)) == ((), 1)
        assert found.faults[0][1].startswith("malformed JSON: Expecting ")


def test_json_without_any_io_has_no_values_but_those_of_the_job(broken):
    def idle(text: str) -> str:
        return text.replace('"io_bytes" : 524288', '"io_bytes" : 0').replace('"total_ios" : 128', '"total_ios" : 0')

    found = broken(FIO_JSON, idle)
    of_job = moments("cpu", "usr", "sys", "ctx", "majf", "minf") | {"number_of_processes", "disk_util"}
    assert ({one.metric for one in found.log.measured}, found.faults) == (of_job, [(1, "neither read nor written")])


def test_json_values_that_are_none_are_faults(read, broken):
    tail = '}, "load": {"count": 10, "time": 9004411837, "iops": NaN, "bps": -1}}]'
    log = read("disk-ioping", f'[{{{ALONE}, "avg": null, "max": "1"{tail}')
    assert {one.metric for one in log.measured} == COUNTED | {"latency_min", "generated_requests", "generated_duration"}
    assert [fault.reason for fault in log.faults] == [
        "latency_avg (None) is no number",
        "latency_max (1) is no number",
        "generated_iops (nan) is no finite number",
        "generated_bitrate (-1) is negative",
    ]

    def endless(text: str) -> str:
        head, tail = text.split('"sum_sent":')
        return f'{head}"sum_sent":{tail.replace("2.000231", "Infinity", 2)}'

    found = broken(IPERF_JSON, endless)
    assert (found.lost, found.faults) == ({"tx_c_time_sender"}, [(1, "tx_c_time_sender (inf) is no finite number")])


def test_where_nothing_was_counted_nothing_is_known_and_zeros_are_missing(read, logs):
    log = read(
        "disk-ioping",
        "--- /data (ext4 /dev/sda1) ioping statistics ---\n0 requests completed in 0 ns, 0 B read, 0 iops, 0 B/s\n"
        "generated 30 requests in 29.1 s, 7 MiB, 1 iops, 264 KiB/s\nmin/avg/max/mdev = 0 ns / 0 ns / 0 ns / 0 ns\n",
    )
    assert {one.metric for one in log.measured} == {"number_of_requests"} | GENERATED
    assert [fault.reason for fault in log.faults] == ["no request was counted: nothing is known of their time"]
    text = (logs / CPU).read_text().replace("54512", "0")
    for rate in ("1816.43", "  1.04", "8.80", "92.31", "27.66"):
        text = text.replace(rate, "0.00")
    log = read("cpu-sysbench", text)
    assert {one.metric: one.value for one in log.measured} == {
        "num_threads": 16, "prime_numbers_limit": 10000, "total_time": 30.0089, "total_number_of_events": 0,
    }  # fmt: skip
    reasons = [fault.reason for fault in log.faults]
    assert (reasons, log.has_failed) == (["no event was counted: nothing is known of rates and times"], True)


def test_a_side_that_told_nothing_is_missing_and_not_zero(logs, read, parse):
    document = json.loads((logs / "iperf3/3.12.json").read_text())
    document["error"] = "error - the server has terminated"
    document["end"]["sum_received"] |= {"seconds": 0, "bytes": 0, "bits_per_second": 0}
    document["end"]["cpu_utilization_percent"] |= dict.fromkeys(("remote_total", "remote_user", "remote_system"), 0)
    log = read("network-iperf3", json.dumps(document))
    lost = {one.metric for one in parse("iperf3/3.12.json").measured} - {one.metric for one in log.measured}
    assert lost == summary("tx_c", "receiver") | use("tx_c", "receiver")  # a server that was killed told none of it
    told = "iperf3 reported an error: error - the server has terminated"
    silent = "the receiver told nothing: 0 bytes in 0 s"
    assert ([fault.reason for fault in log.faults], log.has_failed) == ([told, silent], True)
    text = (logs / "iperf3/3.12.txt").read_text()
    end = ("0.00-2.23   sec   124 MBytes   466 Mbits/sec", "0.00-2.23   sec  0.00 Bytes  0.00 bits/sec")
    log = read("network-iperf3", text.replace(*end))
    lost = {one.metric for one in parse("iperf3/3.12.txt").measured} - {one.metric for one in log.measured}
    assert lost == summary("tx_c", "receiver")
    assert [fault.reason for fault in log.faults] == ["the receiver told nothing: 0.00 Bytes in 2.23 s"]


@pytest.mark.parametrize(
    ("log", "edit", "has_failed"),
    [
        (IPERF, lambda text: f"{text}iperf3: interrupt - the client has terminated\n", True),
        (IPERF, lambda text: f"{text}iperf3: warning: parameter is ignored\n", False),
        (FIO, ("err= 0", "err=28"), True),
        (MEMORY, lambda text: text, False),  # whose latencies are less than the tool prints
    ],
)
def test_a_log_in_which_the_tool_reports_an_error_has_failed(broken, log, edit, has_failed):
    assert broken(log, edit).log.has_failed is has_failed
