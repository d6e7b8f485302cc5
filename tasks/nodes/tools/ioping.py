"""ioping: the text of 0.4 to 1.3, its line of raw statistics (-B, -q -p) and its JSON (-J).

Before 1.0 "completed in" is the time with the pauses between requests, which later versions print as generated; it is
read as generated_duration there. Statistics of nothing (no request counted) are missing, not zero. Several statistics
in one text: the first are read, the others are faults, except for periods (-p) that a total follows. Periods that were
cut off after their first line cannot be told from a total."""

import re

from tasks.nodes.measured import ParsedLog
from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.ioping_facts import MEASURED, METRICS
from tasks.nodes.tools.ioping_json import read_json
from tasks.nodes.tools.ioping_raw import RAW, read_raw
from tasks.nodes.tools.ioping_settings import read_settings
from tasks.nodes.tools.ioping_text import STATISTICS, read_text
from tasks.nodes.tools.json_text import looks_like_json
from tasks.nodes.tools.lines import lines_of
from tasks.nodes.tools.parser import Parser, empty_log, report_errors

TOOL = "ioping"
ERRORS = re.compile(r"^\s*ioping: ")
REQUEST = re.compile(r"^[0-9.]+ ?(bytes|[KMGT]?i?B) (from|to|<<<|>>>) .*request=[0-9]")
SIGNS = re.compile(rf'{STATISTICS.pattern}|{REQUEST.pattern}|"mdev":|{ERRORS.pattern}|{RAW.pattern}', re.MULTILINE)


def parse(text: str) -> ParsedLog:
    """The values of a log of ioping."""
    found = Gathering(TOOL, METRICS)
    lines = lines_of(text)
    if not lines:
        return empty_log(found)
    report_errors(found, lines, ERRORS)
    if any(STATISTICS.search(line.text) for line in lines):
        read_text(found, lines)
    elif looks_like_json(text):
        read_json(found, text)
    elif any(RAW.match(line.text.strip()) for line in lines):
        read_raw(found, lines)
    elif any(REQUEST.match(line.text) for line in lines):
        found.fault(lines[-1].place, "the log is cut off: requests without statistics at the end", lines[-1].text)
    if found.value("number_of_requests") == 0:
        found.drop(*MEASURED)
        told = "no request was counted: nothing is known of their time"
        found.fault(lines[-1].place, told, lines[-1].text, is_failure=True)
    read_settings(found, lines, text)
    return found.log()


PARSER = Parser("disk-ioping", TOOL, "disk", METRICS, parse, SIGNS)
