"""qperf with --verbose_more: a heading for each test, and under it `name  =  value unit`.

qperf prints three digits and changes the unit with the size (2.25 GB/sec, 431 us, 1.02 sec/GB), puts commas between
thousands, and leaves out what is 0: that is missing here. Sizes in KiB are followed by bytes in parentheses, which are
passed over, as are settings without a metric (affinity, flip, id, port, rate, sock_buf_size). Other tests than tcp_bw
and tcp_lat, and names that nobody knows, are faults. A log that ends between two lines shows in what is
missing only."""

import re

from tasks.nodes.tools.facts import MetricFacts, Of
from tasks.nodes.tools.parsing import COUNT_PREFIXES, CUT, NUMBER, SPELLED, VALUE_SHOWN, Line, Log, Parser

TOOL = "qperf"
NETWORK = Of("network")
USES = {
    "used": "all of it",
    "user": "user mode",
    "intr": "interrupts",
    "kernel": "kernel mode",
    "iowait": "waiting for disks",
}


def _settings(test: str) -> dict[str, MetricFacts]:
    return {
        f"{test}_msg_size": NETWORK.neither("B", "setting: size of a message"),
        f"{test}_time": NETWORK.neither("s", "setting: time to run"),
        f"{test}_timeout": NETWORK.neither("s", "setting: time to wait for the other side"),
    }


def _side(prefix: str, who: str, moved: dict[str, str]) -> dict[str, MetricFacts]:
    """What both tests say of a side. moved: beginnings of the names of what it moved, and how that is told."""
    over = f"{prefix}_real_time"
    table = {
        f"{prefix}_cpus_{use}": NETWORK.neither("%", f"processors busy at {who}: {what}; nothing printed for 0")
        for use, what in USES.items()
    }
    table[over] = NETWORK.neither("s", f"time that the test ran at {who}")
    table[f"{prefix}_cpu_time"] = NETWORK.neither("s", f"processor time at {who}", over)
    for name, way in moved.items():
        table[f"{name}_bytes"] = NETWORK.more("B", f"bytes {way} at {who}", over)
        table[f"{name}_msgs"] = NETWORK.more("", f"msgs {way} at {who}", over)
        table[f"{name}_errors"] = NETWORK.less("", f"errors at {who}; nothing printed for 0", over)
    return table


METRICS: dict[str, MetricFacts] = {  # test and name of the line, but for bandwidth, which is bw there
    "tcp_bw_bandwidth": NETWORK.more("B/s", "bytes received a second", is_headline=True),
    "tcp_bw_msg_rate": NETWORK.more("1/s", "messages a second"),
    "tcp_bw_access_recv": NETWORK.neither("", "setting: 1 if received data are read once more"),
    **_settings("tcp_bw"),
    "tcp_bw_send_cost": NETWORK.less("s/GB", "processor time of the sender for a GB"),
    "tcp_bw_recv_cost": NETWORK.less("s/GB", "processor time of the receiver for a GB"),
    **_side("tcp_bw_send", "the sender", {"tcp_bw_send": "sent"}),
    **_side("tcp_bw_recv", "the receiver", {"tcp_bw_recv": "received"}),
    "tcp_lat_latency": NETWORK.less("s", "time of a message one way: half of there and back", is_headline=True),
    "tcp_lat_msg_rate": NETWORK.more("1/s", "messages a second"),
    **_settings("tcp_lat"),
    **_side("tcp_lat_loc", "the client", {"tcp_lat_loc_send": "sent", "tcp_lat_loc_recv": "received"}),
    **_side("tcp_lat_rem", "the server", {"tcp_lat_rem_send": "sent", "tcp_lat_rem_recv": "received"}),
}

TESTS = ("tcp_bw", "tcp_lat")
HEADING = re.compile(r"^((?:tcp|udp|sctp|sdp|rds|rc|uc|ud|ver|xrc)_[a-z_]+|conf|quit):\s*$")
ENTRY = re.compile(r"^\s+([a-z_]+)\s+=\s*(.*?)\s*$")
VALUE = re.compile(rf"({NUMBER})(?: ([A-Za-z%/ ]+?))?(?: \([0-9,]+\))?")
ERRORS = re.compile(
    r"\b(failed|unable|cannot|refused|timed out|unexpected|mismatch|invalid|bad option)\b|^error\b", re.IGNORECASE
)
SETTINGS = re.compile(r"^(loc_|rem_)?(affinity|flip|id|port|rate|sock_buf_size)$")
RATE = re.compile(r"([KMGT]?)/sec")
BITS = re.compile(r"([KMGT])b/sec")
PART_OF_TIME = re.compile(r"\bs$")  # the beginning of sec
SIGNS = re.compile(r"^(tcp|udp|sctp|rc)_(bw|lat):\s*$|^qperf: |^\s+send_cpus_used\s+=", re.MULTILINE)


def _read(log: Log) -> None:
    test, seen = "", set[str]()
    for line in log.lines:
        if heading := HEADING.match(line.text):
            test = _test_of(log, heading[1], seen, line)
        elif entry := ENTRY.match(line.text):
            if test and not SETTINGS.match(entry[1]):
                _take(log, f"{test}_{'bandwidth' if entry[1] == 'bw' else entry[1]}", entry[2], line)
        else:
            log.fault_lines([line], ERRORS)
    for name in TESTS if not log.faults else ():
        if name in seen and not any(metric.startswith(name) and metric in log for metric in METRICS):
            log.fault(log.lines[-1].place, f"the log is cut off: nothing under {name}", log.lines[-1].text)


def _test_of(log: Log, name: str, seen: set[str], line: Line) -> str:
    """The test that begins; empty if its values are not read, which is a fault."""
    if name in seen:
        log.fault(line.place, f"{name} stands there twice; the first counts", line.text)
        return ""
    seen.add(name)
    if name not in TESTS:
        log.fault(line.place, f"the test {name} is not read; expected {' or '.join(TESTS)}", line.text)
        return ""
    return name


def _take(log: Log, metric: str, rest: str, line: Line) -> None:
    value = VALUE.fullmatch(rest)
    if metric not in METRICS:
        log.fault(line.place, f"{metric} is no metric of qperf that is known", line.text)
    elif not value:
        log.fault(line.place, CUT if line.is_cut else f"{metric} ({rest[:VALUE_SHOWN]}) is no number", line.text)
    else:
        unit, prefix = _unit_of(value[2] or "")
        is_part = unit == "" or PART_OF_TIME.search(unit)  # a count of fewer digits, or the beginning of sec
        if line.is_cut and (is_part or unit not in SPELLED[METRICS[metric].unit]):
            log.fault(line.place, CUT, line.text)
        else:
            log.take(metric, value[1], unit, line, prefix=prefix, has_groups=True)


def _unit_of(text: str) -> tuple[str, str]:
    """The unit as parsing.SPELLED has it, and the prefix that the value is to be multiplied with."""
    if text in COUNT_PREFIXES and len(text) > 1:
        return "", text
    if rate := RATE.fullmatch(text):
        return "/sec", rate[1]
    if bits := BITS.fullmatch(text):
        return f"{bits[1]}bits/sec", ""
    return "%" if text == "% cpus" else text, ""


PARSER = Parser("network-qperf", TOOL, "network", METRICS, _read, SIGNS)
