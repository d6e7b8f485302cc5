"""What perf counted over time: `perf stat -I` (CSV with any separator, or one JSON object a line, each line one count
of one interval), and metrics of Intel PerfSpect (`*_metrics.csv` of version 3, `metric_out.sys.csv` of version 1).

Version 3 begins with TS (Unix seconds), SKT, CPU and CID: socket, processor and control group are empty for the whole
machine. A file by socket or processor gives a counter for each of them, one by control group a run for each. Version 1
begins with `time` (seconds since the start), and its names with `metric_`. Empty fields are missing values."""

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from tasks.errors import BadInput, quoted
from tasks.intake.files import CUT_OFF, UNSUPPORTED_EVENT, all_refusals, json_of, read_lines, refusals, refused_rows
from tasks.intake.tables import column_names, whole_table
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import FileRun, Reading
from tasks.workloads.readers.tables import side_by_side, start_and_offsets, unix_seconds
from tasks.workloads.readers.wide import WideTable, check_counters, counters_of, read_table
from tasks.workloads.telemetry import OWN_PREFIX, Counter, Kind, described, spelled

NOT_COUNTED = ("<not counted>", "<not supported>")
TIME = re.compile(r"^\s*(\d+\.\d{9}|\d+,\d{9}(?![,.]))([^0-9A-Za-z])")  # 1,404218089,5 is a table: 404 MB in second 1
UNIT_OF_CPUS = re.compile(r"^(CPU\d+|S\d+(-D\d+)?(-.*)?|N\d+|D\d+|.+-\d+)$")
NUMBER = re.compile(r"^-?\d+([.,]\d+)?$")
SHARE = re.compile(r"^\d{1,3}[.,]\d+$")
SUMMARY = "summary"
MODIFIERS = re.compile(r"^[ukhIGHpPSDWeb]+$")
SOFTWARE = {
    "alignment_faults", "bpf_output", "cgroup_switches", "context_switches", "cpu_clock", "cpu_migrations", "cs",
    "dummy", "emulation_faults", "faults", "major_faults", "migrations", "minor_faults", "page_faults", "task_clock",
}  # fmt: skip
UNITS = {"msec": "ms"}
MACHINE = ("", "/")
STARTED = "# started on "
STARTED_FORMAT = "%a %b %d %H:%M:%S %Y"
JSON_LINE = re.compile(rb'^\{"interval" ?:', re.MULTILINE)
LEAST_RUNNING_PCT = 5.0  # of an interval that perf counted (multiplexing): less, and the count is missing
WHOLE_SHARE = 0.9  # of the usual interval: a shorter last one is cut off


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


def stat_sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """The line with the start, or lines that begin with a time in nanoseconds."""
    text = head.decode("utf-8", "replace")
    is_started = text.lstrip().startswith(STARTED)
    return is_started or any(TIME.match(line) for line in text.splitlines()[:3]) or bool(JSON_LINE.search(head))


def stat_read(path: str, params: ReadParams) -> Reading:
    """See Reader.read. Raises BadInput for output without intervals."""
    lines, started, refused = _counts(path, params)
    if lines.empty:
        raise BadInput(
            path,
            "no interval in it, or its counts stand in columns for people",
            "the output of perf stat -I 1000 -x,",
            "record with -I, and with -x or -j",
        )
    runs: list[FileRun] = []
    recordings = lines.groupby("recording")
    for number, (_, of_recording) in enumerate(recordings, 1):
        reasons = _faults(of_recording)
        bad, good = of_recording[reasons != ""], of_recording[reasons == ""]
        refused.append(refusals(bad["place"], reasons[bad.index].to_list(), bad["event"]))
        if len(good):
            unsupported = sorted(set(bad.loc[~bad["is_supported"], "event"]) - set(good["event"]))
            notes = tuple(f"{event}: {UNSUPPORTED_EVENT}" for event in unsupported)
            part = f"{number}" if recordings.ngroups > 1 else ""
            began = started[of_recording["recording"].iloc[0]]
            runs.append(_sampled(good, started_at=began, part=part, refused=notes))
    return Reading(runs, all_refusals(refused))


def _counts(path: str, params: ReadParams) -> tuple[pd.DataFrame, list[datetime | None], list[pd.DataFrame]]:
    """The counts of a file, each with its place and the number of its recording; when each recording was started, if
    that is said; and what was refused. A time that falls begins another recording."""
    rows: list[tuple[Any, ...]] = []
    started: list[datetime | None] = [None]
    refused, separator, last_s = [], "", -math.inf
    for block in read_lines(path, params.limits):
        bad = [*block.refused]
        separator = separator or separator_of(block.lines)
        for place, line in zip(block.places, block.lines, strict=True):
            if line.startswith(STARTED):
                started.append(_started(line, params.time_zone))
                last_s = -math.inf
            elif line.strip() and not line.startswith("#"):
                count = parse_json(line) if line.startswith("{") else parse_csv(line, separator or ",")
                if isinstance(count, str):
                    bad.append((place, count, line))
                    continue
                if count.time_s < last_s:
                    started.append(None)
                last_s = count.time_s
                rows.append((len(started) - 1, place, *count))
        refused.append(refused_rows(bad))
    counts = pd.DataFrame(rows, columns=["recording", "place", *Count._fields])
    return counts.astype({"value": float, "is_supported": bool}), started, refused


def _started(line: str, zone: str) -> datetime | None:
    try:
        local = datetime.strptime(line.removeprefix(STARTED).strip(), STARTED_FORMAT)
    except ValueError:
        return None
    return local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None)


def _faults(lines: pd.DataFrame) -> pd.Series:
    """Why each line cannot be used; empty: it can."""
    times = np.unique(lines["time_s"])
    lengths = np.diff(times, prepend=0.0)
    is_short = len(times) > 1 and lengths[-1] < WHOLE_SHARE * np.median(lengths[:-1])
    keys = ["time_s", "cpu", "group", "event"]
    n_lines = lines.groupby("time_s")["event"].size()
    is_cut = len(n_lines) > 1 and n_lines.iloc[-1] < n_lines.iloc[:-1].min()
    reasons = pd.Series("", index=lines.index)
    reasons[lines.duplicated(keys)] = "the event stands twice in its interval; the first counts"
    if is_short or is_cut:
        problem = "is shorter than the others" if is_short else "lacks events of the others"
        reasons[lines["time_s"] == times[-1]] = f"the last interval {problem}: {CUT_OFF}"
    reasons[~lines["is_supported"]] = UNSUPPORTED_EVENT
    return reasons


def _sampled(lines: pd.DataFrame, **more: Any) -> FileRun:
    """The run of a recording: rates by group and event, those of several processors added up."""
    times = np.unique(lines["time_s"])
    length_s = dict(zip(times.tolist(), np.diff(times, prepend=0.0).tolist(), strict=True))
    codes, known = pd.MultiIndex.from_frame(lines[["group", "event"]]).factorize()
    groups = {str(group) for group in lines["group"]} - {"", "/"}
    units = lines.groupby(codes)["unit"].first()
    counters = tuple(counter_of(key[1], units[at], key[0], has_several=len(groups) > 1) for at, key in enumerate(known))
    values = lines["value"].where(lines["running_pct"] >= LEAST_RUNNING_PCT)
    rates = (values / lines["time_s"].map(length_s)).to_numpy(dtype=float)
    n_lines = lines.groupby([codes, lines["time_s"].to_numpy()]).size().groupby(level=0).max()
    running = lines["running_pct"].where(values.notna()).groupby(codes).mean().to_numpy(dtype=float)
    return side_by_side(
        counters,
        lines["time_s"].to_numpy(dtype=float),
        lines["place"].to_numpy(dtype=np.int64),
        (np.arange(len(lines)), codes.astype(np.int64), rates),
        n_units=np.asarray(n_lines, dtype=np.int64),
        running_pct=running,
        **more,
    )


def separator_of(lines: Iterable[str]) -> str:
    """What stands between the fields, told by what follows the first time; empty if no line begins with one."""
    for line in lines:
        if match := TIME.match(line):
            return match[2]
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


def counter_of(event: str, unit: str, group: str, *, has_several: bool) -> Counter:
    """The counter of an event. A tracepoint loses its subsystem (sched:sched_switch); what it counts stays.

    group: control group, "" or "/" for the machine. has_several: whether there are more control
    groups than one, which then tell their counters apart."""
    head, colon, tail = event.partition(":")
    is_tracepoint = bool(colon) and not MODIFIERS.match(tail) and "/" not in event
    stem = spelled(tail if is_tracepoint else event.replace(":", "_")).replace(".", "_")
    name = f"perf.{stem}"
    is_own = group not in MACHINE
    if is_own:
        name = f"{OWN_PREFIX}{name}" + (f".{spelled(group)}" if has_several else "")
    is_software = is_tracepoint or spelled(head) in SOFTWARE
    kind: Kind = "software" if is_software else "hardware"
    return Counter(name, UNITS.get(unit, unit), kind, is_rate=True, scope="workload" if is_own else "machine")


V3 = ["TS", "SKT", "CPU", "CID"]
METRIC = "metric_"
GROUP = "perfspect"


def spect_sniff(head: bytes, path: str) -> bool:
    """By the header line; a summary is taken as well, to be refused in clear words."""
    if not head:
        return False
    names = column_names(head, path)
    is_summary = path.lower().endswith("_metrics_summary.csv")
    return names[:4] == V3 or _is_first_version(names) or is_summary


def spect_read(path: str, params: ReadParams) -> Reading:
    """See Reader.read."""
    rows = whole_table(path, params.limits, row="sample")
    is_third = rows.names[:4] == V3
    if not is_third and not _is_first_version(rows.names):
        raise BadInput(
            path,
            f"no time series of PerfSpect (it begins with {quoted(rows.names[:4])})",
            "*_metrics.csv with TS, SKT, CPU, CID, or metric_out.sys.csv with time",
            "a *_metrics_summary.csv holds means only: read the *_metrics.csv beside it",
        )
    table = WideTable(**vars(rows), described=_described)
    if is_third:
        units = pd.DataFrame({name: rows.columns[at].to_pylist() for at, name in enumerate(V3)}).astype(str)
        if len(units[V3[1:]].drop_duplicates()) > 1:
            return _by_unit(table, units, params.time_zone)
    table = replace(table, ignored=frozenset(V3[1:]))
    renamed = {"timestamp": rows.names[0], **params.columns}
    return read_table(table, renamed, params)


def _is_first_version(names: list[str]) -> bool:
    return names[:1] == ["time"] and any(name.startswith(METRIC) for name in names[1:])


def _described(raw: str) -> Counter:
    return described(raw.removeprefix(METRIC), GROUP)


def _by_unit(rows: WideTable, units: pd.DataFrame, zone: str) -> Reading:
    """Sockets and processors as counters side by side, control groups as runs of their own."""
    metrics = replace(rows, names=rows.names[4:], columns=rows.columns[4:])
    counters, numbers, refused_columns = counters_of(metrics, {}, {})
    check_counters(metrics, counters, refused_columns)
    seconds, n_counters = unix_seconds(rows.columns[0], zone), len(counters)
    label = _suffix(units["SKT"], "socket") + _suffix(units["CPU"], "cpu")
    is_bad = np.isnan(seconds) | units.duplicated().to_numpy()
    runs = []
    for group, members in units[~is_bad].groupby("CID").groups.items():
        places = np.asarray(members)
        codes, names = pd.factorize(label.iloc[places])
        wide = tuple(replace(counter, name=f"{counter.name}{name}") for name in names for counter in counters)
        first, offsets = start_and_offsets(seconds[places])
        cells = (
            np.repeat(np.arange(len(places)), n_counters),
            (codes[:, None] * n_counters + np.arange(n_counters)).ravel(),
            np.column_stack([column.values[places] for column in numbers]).ravel(),  # noqa: PD011
        )
        about: dict[str, Any] = {"part": str(group), "started_at": first, "refused": tuple(refused_columns)}
        runs.append(side_by_side(wide, offsets, rows.places[places], cells, **about))
    bad = np.flatnonzero(is_bad)
    reason = "no time, or a second row of one time and unit; expected each once"
    refused = refusals(rows.places[bad], reason, [rows.raw(int(row)) for row in bad])
    return Reading(runs, all_refusals([rows.refused, refused]))


def _suffix(values: pd.Series, word: str) -> pd.Series:
    return values.where(values == "", "." + word + values)
