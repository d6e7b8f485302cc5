"""fio: JSON (--output-format=json or json+, behind any lines of text), or text of 2.x and 3.x."""

import re

from tasks.nodes.measured import ParsedLog
from tasks.nodes.tools.fio_facts import METRICS
from tasks.nodes.tools.fio_json import read_json
from tasks.nodes.tools.fio_settings import read_text_settings
from tasks.nodes.tools.fio_text import JOB, read_text
from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.json_text import looks_like_json
from tasks.nodes.tools.lines import lines_of, parts_of
from tasks.nodes.tools.parser import Parser, empty_log, report_errors, report_others

TOOL = "fio"
VERSION = re.compile(r"^fio[- ]([0-9][0-9A-Za-z.\-]*)\s*$")
DESCRIBED = re.compile(r"^\S.*: \(g=\d+\): rw=")
ERRORS = re.compile(r"^fio: (?!file hash not empty)|^\S+: (you need to specify|No I/O performed by)|^Bad option")
SIGNS = re.compile(rf'{VERSION.pattern}|{DESCRIBED.pattern}|{JOB.pattern}|"fio version"\s*:|^fio: ', re.MULTILINE)


def parse(text: str) -> ParsedLog:
    """The values of a log of fio."""
    found = Gathering(TOOL, METRICS)
    lines = lines_of(text)
    if not lines:
        return empty_log(found)
    if looks_like_json(text):
        report_errors(found, lines, ERRORS, is_failure=False)
        read_json(found, text)
        return found.log()
    parts = parts_of(lines, VERSION)
    report_others(found, parts[1:], "of fio")
    report_errors(found, parts[0], ERRORS, is_failure=False)  # its job says whether it failed
    read_text_settings(found, parts[0])
    found.version = next((match[1] for line in parts[0] if (match := VERSION.match(line.text))), "")
    if any(VERSION.match(line.text) or JOB.match(line.text) for line in parts[0]):
        read_text(found, parts[0])
    return found.log()


PARSER = Parser("disk-fio", TOOL, "disk", METRICS, parse, SIGNS)
