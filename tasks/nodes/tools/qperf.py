"""qperf: a heading for each test, and under it `name  =  value unit`.

qperf prints three digits and changes the unit with the size (2.25 GB/sec, 431 us, 1.02 sec/GB), puts commas between
thousands, and leaves out what is 0: that is missing here. Sizes in KiB are followed by bytes in parentheses, which are
passed over, as are settings without a metric (affinity, flip, id, port, rate, sock_buf_size). Other tests than tcp_bw
and tcp_lat, and names that nobody knows, are faults. A log that ends between two lines shows in what is
missing only."""

import re

from tasks.nodes.measured import ParsedLog
from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.lines import Line, lines_of
from tasks.nodes.tools.numbers import NUMBER
from tasks.nodes.tools.parser import CUT, Parser, empty_log
from tasks.nodes.tools.qperf_facts import METRICS
from tasks.nodes.tools.units import COUNT_PREFIXES, SPELLED

TOOL = "qperf"
TESTS = ("tcp_bw", "tcp_lat")
HEADING = re.compile(r"^((?:tcp|udp|sctp|sdp|rds|rc|uc|ud|ver|xrc)_[a-z_]+|conf|quit):\s*$")
ENTRY = re.compile(r"^\s+([a-z_]+)\s+=\s*(.*?)\s*$")
VALUE = re.compile(rf"({NUMBER})(?: ([A-Za-z%/ ]+?))?(?: \([0-9,]+\))?")
ERRORS = re.compile(
    r"\b(failed|unable|cannot|refused|timed out|unexpected|mismatch|invalid|bad option)\b|^error\b", re.IGNORECASE
)
SETTINGS = re.compile(r"^(loc_|rem_)?(affinity|flip|id|port|rate|sock_buf_size)$")
NAMES = {"bw": "bandwidth"}
RATE = re.compile(r"([KMGT]?)/sec")
BITS = re.compile(r"([KMGT])b/sec")
SIGNS = re.compile(r"^(tcp|udp|sctp|rc)_(bw|lat):\s*$|^qperf: |^\s+send_cpus_used\s+=", re.MULTILINE)


def parse(text: str) -> ParsedLog:
    """The values of a log of qperf."""
    found = Gathering(TOOL, METRICS)
    lines = lines_of(text)
    if not lines:
        return empty_log(found)
    test, seen = "", set[str]()
    for line in lines:
        if heading := HEADING.match(line.text):
            test = _test_of(found, heading[1], seen, line)
        elif entry := ENTRY.match(line.text):
            if test:
                _take(found, test, entry[1], entry[2], line)
        elif ERRORS.search(line.text):
            told = f"{TOOL} reported an error: {line.text.strip()[:200]}"
            found.fault(line.place, told, line.text, is_failure=True)
    for name in TESTS if not found.faults else ():
        if name in seen and not any(metric.startswith(name) and metric in found for metric in METRICS):
            found.fault(lines[-1].place, f"the log is cut off: nothing under {name}", lines[-1].text)
    return found.log()


def _test_of(found: Gathering, name: str, seen: set[str], line: Line) -> str:
    """The test that begins; empty if its values are not read, which is a fault."""
    if name in seen:
        found.fault(line.place, f"{name} stands there twice; the first counts", line.text)
        return ""
    seen.add(name)
    if name not in TESTS:
        found.fault(line.place, f"the test {name} is not read; expected {' or '.join(TESTS)}", line.text)
        return ""
    return name


def _take(found: Gathering, test: str, name: str, rest: str, line: Line) -> None:
    metric = f"{test}_{NAMES.get(name, name)}"
    value = VALUE.fullmatch(rest)
    if SETTINGS.match(name):
        return
    if metric not in METRICS:
        found.fault(line.place, f"{metric} is no metric of qperf that is known", line.text)
    elif not value:
        told = CUT if line.is_cut else f"{metric} ({rest[:40]}) is no number"
        found.fault(line.place, told, line.text)
    else:
        unit, times = _plain(value[2] or "")
        is_part = unit == "" or re.search(r"\bs$", unit)  # a count of fewer digits, or the beginning of sec
        if line.is_cut and (is_part or unit not in SPELLED[METRICS[metric].unit]):
            found.fault(line.place, CUT, line.text)
            return
        found.text(metric, value[1], unit, line, times=times, has_groups=True)


def _plain(unit: str) -> tuple[str, int]:
    """The unit as units.SPELLED has it, and what the value is to be multiplied with."""
    if unit in COUNT_PREFIXES and len(unit) > 1:
        return "", COUNT_PREFIXES[unit]
    if rate := RATE.fullmatch(unit):
        return "/sec", COUNT_PREFIXES[rate[1]]
    if bits := BITS.fullmatch(unit):
        return f"{bits[1]}bits/sec", 1
    return "%" if unit == "% cpus" else unit, 1


PARSER = Parser("network-qperf", TOOL, "network", METRICS, parse, SIGNS)
