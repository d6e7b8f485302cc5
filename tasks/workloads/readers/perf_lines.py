"""Lines of `perf stat -I`: CSV with any separator, or one JSON object a line; each is one count of one interval."""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from tasks.reading import json_of

NOT_COUNTED = ("<not counted>", "<not supported>")
TIME = re.compile(r"^\s*(\d+[.,]\d{9})([^0-9A-Za-z])")
UNIT_OF_CPUS = re.compile(r"^(CPU\d+|S\d+(-D\d+)?(-.*)?|N\d+|D\d+|.+-\d+)$")
NUMBER = re.compile(r"^-?\d+([.,]\d+)?$")
SHARE = re.compile(r"^\d{1,3}[.,]\d+$")
SUMMARY = "summary"


class Count(NamedTuple):
    """One count.

    time_s: end of the interval, since the start. unit: of the value. cpu: the processors that it is of, "" for all.
    value: None where it was not counted. running_pct: share of the interval that it was counted."""

    time_s: float
    cpu: str
    group: str
    event: str
    unit: str
    value: float | None
    is_supported: bool
    running_pct: float


def separator_of(lines: Iterable[str]) -> str:
    """What stands between the fields, told by what follows the first time; empty if no line begins with one."""
    for line in lines:
        if found := TIME.match(line):
            return found[2]
    return ""


def parse_json(line: str) -> Count | str:
    """A count from one JSON object, or why it is none."""
    try:
        entry = json_of(line)
    except ValueError:
        return "malformed JSON; expected one object a line"
    if not isinstance(entry, dict) or "event" not in entry or "counter-value" not in entry:
        return "no event with a counter-value; expected a count"
    if "interval" not in entry:
        return "no interval; expected the output of perf stat -I"
    cpu = next((str(entry[key]) for key in ("cpu", "core", "die", "socket", "node", "thread") if key in entry), "")
    fields = [str(entry.get(key, "")) for key in ("counter-value", "unit", "event", "cgroup")]
    try:
        time_s, running = float(entry["interval"]), float(entry.get("pcnt-running", 100))
    except (TypeError, ValueError, OverflowError):
        time_s = running = math.nan
    if not math.isfinite(time_s) or not math.isfinite(running):
        return "interval or pcnt-running is no number"
    return _count(time_s, cpu, fields[3], fields[2], fields[1], fields[0], running)


def parse_csv(line: str, separator: str) -> Count | str:
    """A count from one line, or why it is none."""
    fields = [field.strip() for field in line.split(separator)]
    if fields[0] == SUMMARY:
        return "the summary at the end; its counts stand in the intervals"
    time_s = _number(fields[0])
    if time_s is None:
        return "no time at the beginning; expected seconds since the start"
    at = _value_at(fields)
    if at < 0:
        return "no count with an event; a metric of perf's own is not read"
    event, rest = _event(fields[at + 2 :], separator)
    if not event:
        return "no event; a metric of perf's own is not read"
    if len(rest) < 2:
        return "the line is cut off; expected run time and share of it"
    has_group = len(rest) > 2 and not (rest[0].isdigit() and SHARE.match(rest[1]))
    group, rest = (rest[0], rest[1:]) if has_group else ("", rest)
    running = _number(rest[1]) if len(rest) > 1 else None
    if running is None or not rest[0].isdigit():
        return "no run time with its share; expected them after the event"
    return _count(time_s, fields[1] if at > 1 else "", group, event, fields[at + 1], fields[at], running)


def _value_at(fields: list[str]) -> int:
    """Where the count stands: after the time, after a processor, or after a socket and how many it counts."""
    for at in range(1, min(4, len(fields) - 2)):
        is_value = fields[at] in NOT_COUNTED or bool(NUMBER.match(fields[at]))
        is_after = at == 1 or bool(UNIT_OF_CPUS.match(fields[1]))
        is_last = not NUMBER.match(fields[at + 1]) and fields[at + 1] not in NOT_COUNTED
        if is_value and is_after and is_last:
            return at
    return -1


def _event(fields: list[str], separator: str) -> tuple[str, list[str]]:
    """The event, put together again where its terms (between slashes) hold separators, and the fields behind it."""
    for n_fields in range(1, len(fields) + 1):
        event = separator.join(fields[:n_fields])
        if event.count("/") % 2 == 0:
            return event, fields[n_fields:]
    return "", []


def _count(time_s: float, cpu: str, group: str, event: str, unit: str, value: str, running: float) -> Count | str:
    number = None if value in NOT_COUNTED else _number(value)
    if number is None and value not in NOT_COUNTED:
        return f"the count {value[:40]!r} is no number"
    return Count(time_s, cpu, group, event, unit, number, value != NOT_COUNTED[1], running)


def _number(text: str) -> float | None:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
