"""The text of sysbench 0.4, 0.5, 1.0 and 1.1: lines with a label, a colon and one or two values.

A line with a known label and without a number that can be used is a fault. A last line without a line break counts as
cut off, unless its decimals are all there (sysbench prints four for times, two for deviations). Several logs in one
text: the first of the benchmark is read, each other is a fault."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.nodes.measured import ParsedLog
from tasks.nodes.tools.facts import Metrics
from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.lines import Line, lines_of, parts_of
from tasks.nodes.tools.numbers import NUMBER
from tasks.nodes.tools.parser import CUT, empty_log, report_errors, report_others

TOOL = "sysbench"
VERSION = re.compile(r"^sysbench v?([0-9][0-9A-Za-z.\-]*)")
STARTS = (VERSION, re.compile(r"^Running the test with following options"))
ERRORS = re.compile(r"^\s*(FATAL|ALERT|CRITICAL|error|sysbench: )\b", re.IGNORECASE)
OTHER_PERCENTILE = re.compile(r"^(?:approx\.\s+)?([0-9]+)(?:th)? percentile$")
ONE = re.compile(rf"({NUMBER})\s*([A-Za-z/]*)")
TWO = re.compile(rf"({NUMBER})/({NUMBER})")
WITH_RATE = re.compile(rf"({NUMBER})\s*\(\s*({NUMBER}) (?:per second|ops/sec)\)")
MOVED = re.compile(rf"^({NUMBER}) (Mi?B) transferred \(\s*({NUMBER}) (Mi?B/sec)\)")
LAST = "execution time (avg/stddev)"
EPS = "events/s (eps)"  # 1.1 repeats the events per second there
WHOLE_LAST = re.compile(r"[0-9]\.[0-9]{4}/[0-9]+\.[0-9]{2}$")
WITHOUT_EVENTS = ("total_time", "total_number_of_events")  # what is known of a run without an event
BINARY = {"K": "KiB", "M": "MiB", "KB": "KiB", "MB": "MiB", "MB/sec": "MiB/sec"}  # 0.4 means powers of 1,024


@dataclass(frozen=True)
class Cell:
    """A value behind a label. unit: where the line has none."""

    metric: str
    unit: str = ""


SHARED = {
    "total time": (Cell("total_time", "s"),),
    "time elapsed": (Cell("total_time", "s"),),  # 1.1
    "total number of events": (Cell("total_number_of_events"),),
    "total time taken by event execution": (Cell("latency_sum", "s"),),  # 0.4 without a unit, 0.5 with s
    "min": (Cell("latency_min", "ms"),),
    "avg": (Cell("latency_avg", "ms"),),
    "max": (Cell("latency_max", "ms"),),
    "95th percentile": (Cell("latency_95p", "ms"),),
    "approx. 95 percentile": (Cell("latency_95p", "ms"),),
    "sum": (Cell("latency_sum", "ms"),),
    "events (avg/stddev)": (Cell("fairness_events_avg"), Cell("fairness_events_stddev")),
    LAST: (Cell("fairness_exctime_avg", "s"), Cell("fairness_exctime_stddev", "s")),
}


def parse_sysbench(
    text: str,
    metrics: Metrics,
    own: Mapping[str, tuple[Cell, ...]],
    signs: re.Pattern[str],
    what: str,
    *,
    words: Mapping[str, str] | None = None,
) -> ParsedLog:
    """The values of a log. own: labels beside the shared ones; signs: of the benchmark; what: its name in faults.

    words: settings that are texts, by their labels. Without an event nothing was measured: zeros are missing then."""
    found = Gathering(TOOL, metrics)
    lines = lines_of(text)
    if not lines:
        return empty_log(found)
    parts = parts_of(lines, *STARTS)
    chosen = next((part for part in parts if any(signs.search(line.text) for line in part)), parts[0])
    report_others(found, [part for part in parts if part is not chosen], f"of {what}")
    report_errors(found, chosen, ERRORS)
    found.version = next((match[1].rstrip(".") for line in chosen if (match := VERSION.match(line.text))), "")
    if any(signs.search(line.text) for line in chosen):
        _read(found, chosen, {**SHARED, **own})
        _read_words(found, chosen, words or {})
    if found.value("total_number_of_events") == 0:
        _drop_unmeasured(found, chosen[-1])
    return found.log()


def _read(found: Gathering, lines: Sequence[Line], rows: Mapping[str, tuple[Cell, ...]]) -> None:
    labels: set[str] = set()
    for line in lines:
        label, colon, rest = line.text.partition(":")
        label = " ".join(label.split()).lower()
        if line.is_cut and LAST not in labels and not (label == LAST and WHOLE_LAST.search(rest.rstrip())):
            found.fault(line.place, CUT, line.text)
        elif moved := MOVED.match(line.text.strip()):
            _take_moved(found, moved, line)
        elif colon and label in rows and not (label == EPS and "events_per_second" in found):
            labels.add(label)
            _take(found, rows[label], rest.strip(), line)
        elif (other := OTHER_PERCENTILE.match(label)) and colon:
            found.fault(line.place, f"percentile {other[1]} is not kept; run with --percentile=95", line.text)
    if LAST not in labels and not any(fault.reason == CUT for fault in found.faults):
        found.fault(lines[-1].place, f"the log is cut off: no {LAST!r} at its end", lines[-1].text)


def _read_words(found: Gathering, lines: Sequence[Line], words: Mapping[str, str]) -> None:
    for line in lines:
        label, colon, rest = line.text.partition(":")
        name = words.get(" ".join(label.split()).lower())
        if colon and name and not line.is_cut:
            found.setting(name, rest)


def _drop_unmeasured(found: Gathering, last: Line) -> None:
    found.drop(*(name for name, fact in found.metrics.items() if not (fact.is_setting or name in WITHOUT_EVENTS)))
    found.fault(last.place, "no event was counted: nothing is known of rates and times", last.text, is_failure=True)


def _take(found: Gathering, cells: tuple[Cell, ...], rest: str, line: Line) -> None:
    if len(cells) == 2:
        match = WITH_RATE.fullmatch(rest) or TWO.fullmatch(rest)
        values = [(match[1], cells[0].unit), (match[2], cells[1].unit)] if match else []
    else:
        match = ONE.fullmatch(rest)
        values = [(match[1], BINARY.get(match[2], match[2]) or cells[0].unit)] if match else []
    if not values:
        names = " and ".join(cell.metric for cell in cells)
        found.fault(line.place, f"{names} ({rest[:40]}) is no number", line.text)
    for cell, (number, unit) in zip(cells, values, strict=False):
        found.text(cell.metric, number, unit, line)


def _take_moved(found: Gathering, moved: re.Match[str], line: Line) -> None:
    if "transfer_size" in found.metrics:
        found.text("transfer_size", moved[1], BINARY.get(moved[2], moved[2]), line)
        found.text("transfer_rate", moved[3], BINARY.get(moved[4], moved[4]), line)
