"""iperf3: JSON (-J), or text; TCP, of the client."""

import re

from tasks.nodes.measured import ParsedLog
from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.iperf3_facts import METRICS
from tasks.nodes.tools.iperf3_json import read_json
from tasks.nodes.tools.iperf3_text import read_text
from tasks.nodes.tools.json_text import looks_like_json
from tasks.nodes.tools.lines import lines_of, parts_of
from tasks.nodes.tools.parser import Parser, empty_log, report_errors, report_others

TOOL = "iperf3"
VERSION = re.compile(r"^iperf (3\.[0-9A-Za-z.+\-]+)")
STARTS = (VERSION, re.compile(r"^Connecting to host"))
ERRORS = re.compile(r"^\s*iperf3?: (error|interrupt|parameter error|unable|warning)")
SIGNS = re.compile(
    r'^iperf 3\.|^Connecting to host .*, port \d+|^\s*iperf3?: |"connecting_to":|"cpu_utilization_percent":|"sum_sent":'
    r'|^\s*"error":\s*"(unable|error|control|the server|unexpected)|^\[ *(\d+|SUM)\].* sec .*Bytes .*/sec',
    re.MULTILINE,
)


def parse(text: str) -> ParsedLog:
    """The values of a log of iperf3."""
    found = Gathering(TOOL, METRICS)
    lines = lines_of(text)
    if not lines:
        return empty_log(found)
    if looks_like_json(text):
        report_errors(found, lines, ERRORS)
        read_json(found, text)
        return found.log()
    parts = parts_of(lines, *STARTS)
    report_others(found, parts[1:], "of iperf3")
    report_errors(found, parts[0], ERRORS)
    found.version = next((match[1] for line in parts[0] if (match := VERSION.match(line.text))), "")
    if SIGNS.search("\n".join(line.text for line in parts[0] if not ERRORS.match(line.text))):
        read_text(found, parts[0])
    return found.log()


PARSER = Parser("network-iperf3", TOOL, "network", METRICS, parse, SIGNS)
