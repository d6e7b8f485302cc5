"""qperf with --verbose_more: a heading for each test, and under it `name  =  value unit`.

qperf prints three digits and changes the unit with the size (2.25 GB/sec, 431 us, 1.02 sec/GB), puts commas between
thousands, and leaves out what is 0: that is missing here. Sizes in KiB are followed by bytes in parentheses, which are
passed over, as are settings without a metric (affinity, flip, id, port, rate, sock_buf_size). Other tests than tcp_bw
and tcp_lat, and names that nobody knows, are faults. A log that ends between two lines shows in what is
missing only."""

import re

from tasks.nodes.tools.parsing import COUNT_PREFIXES, CUT, NUMBER, SPELLED, VALUE_SHOWN, Log, LogLine, Parser, facts_of

TOOL = "qperf"
# the name of a metric is the test and the name of its line, but for bandwidth, which is bw there
BANDWIDTH = """
    tcp_bw_bandwidth | +! B/s | | bytes received a second
    tcp_bw_msg_rate | + 1/s | | messages a second
    tcp_bw_access_recv | = 1 | | setting: 1 if received data are read once more
    """
COSTS = """
    tcp_bw_send_cost | - s/GB | | processor time of the sender for a GB
    tcp_bw_recv_cost | - s/GB | | processor time of the receiver for a GB
    """
LATENCY = """
    tcp_lat_latency | -! s | | time of a message one way: half of there and back
    tcp_lat_msg_rate | + 1/s | | messages a second
    """
SETTINGS_OF = """
    {test}_msg_size | = B | | setting: size of a message
    {test}_time | = s | | setting: time to run
    {test}_timeout | = s | | setting: time to wait for the other side
    """
SIDE = """
    {side}_cpus_used | = % | | processors busy; nothing printed for 0, as for those below
    {side}_cpus_user | = % | | processors busy in user mode
    {side}_cpus_intr | = % | | processors busy with interrupts
    {side}_cpus_kernel | = % | | processors busy in kernel mode
    {side}_cpus_iowait | = % | | processors waiting for disks
    {side}_real_time | = s | | time that the test ran on this side
    {side}_cpu_time | = s per {side}_real_time | | processor time on this side
    """
MOVED = """
    {way}_bytes | + B per {side}_real_time | | bytes moved
    {way}_msgs | + 1 per {side}_real_time | | messages moved
    {way}_errors | - 1 per {side}_real_time | | errors; nothing printed for 0
    """


def _side(side: str, *ways: str) -> str:
    """The lines of what a test says of one side. ways: beginnings of the names of what it moved."""
    return SIDE.format(side=side) + "".join(MOVED.format(way=way, side=side) for way in ways)


METRICS = facts_of(
    "network",
    BANDWIDTH + SETTINGS_OF.format(test="tcp_bw") + COSTS
    + _side("tcp_bw_send", "tcp_bw_send") + _side("tcp_bw_recv", "tcp_bw_recv")
    + LATENCY + SETTINGS_OF.format(test="tcp_lat")
    + _side("tcp_lat_loc", "tcp_lat_loc_send", "tcp_lat_loc_recv")
    + _side("tcp_lat_rem", "tcp_lat_rem_send", "tcp_lat_rem_recv"),
)  # fmt: skip

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


def _split(log: Log) -> None:
    """A further log begins with a test that stood there before."""
    heads, seen = [log.place], set[str]()
    for line in log.lines:
        test = heading[1] if (heading := HEADING.match(line.text)) else ""
        if test in seen:
            heads.append(line.place)
            seen = set()
        seen |= {test} if test else set()
    log.split(heads)


def _read(log: Log) -> None:
    _split(log)
    test, seen = "", set[str]()
    for line in log.lines:
        if heading := HEADING.match(line.text):
            test = heading[1] if heading[1] in TESTS else ""
            seen.add(heading[1])
            if not test:
                reason = f"the test {heading[1]} is not read; expected {' or '.join(TESTS)}"
                log.fault(line.place, reason, line.text)
        elif match := ENTRY.match(line.text):
            if test and not SETTINGS.match(match[1]):
                _take(log, f"{test}_{'bandwidth' if match[1] == 'bw' else match[1]}", match[2], line)
        else:
            log.fault_lines([line], ERRORS)
    for name in TESTS if not log.faults else ():
        if name in seen and not any(metric.startswith(name) and metric in log for metric in METRICS):
            log.fault(log.lines[-1].place, f"the log is cut off: nothing under {name}", log.lines[-1].text)


def _take(log: Log, metric: str, rest: str, line: LogLine) -> None:
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
