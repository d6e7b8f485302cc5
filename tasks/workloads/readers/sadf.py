"""sysstat's `sadf -d`: lines with semicolons, one section for each kind of counters, each under its `#` header. What
`sar` prints is read line by line as if `sadf -d` had printed it, in local time.

A line is hostname;interval;timestamp;… A column in capitals after these (CPU, DEV, IFACE, …) names the device of the
line: its counters are called cpu.all.pct_usr, dev.sda.tps, iface.eth0.rxpck. Columns that end in /s are rates.
LINUX-RESTART lines end a run: counters begin anew. Each host is a run of its own; files joined together may hold
several. Times are UTC, Unix seconds (-U), or of params.time_zone (-T, sar).

The sections of a run may lie in files of their own (cpu, io, memory, network): files of one folder and host, with
other sections at the same times, are one run, whichever of them is named, and its rows are numbered on from file to
file.

A table of `sar` begins with a clock and the names of its columns; the date stands in the banner of the file alone.
Clocks have 12 or 24 hours, decimals a point or a comma, dates the order of their country; means at the end ("Average:",
"Durchschn.:", "Moyenne :") are no samples. A clock that falls back by most of a day has passed midnight."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.intake.files import all_refusals, read_head, read_lines, refusals, refused_rows
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import FileRun, Reading
from tasks.workloads.readers.tables import side_by_side, start_and_offsets, unix_seconds
from tasks.workloads.telemetry import Counter, FloatArray, spelled

HEADER = ["hostname", "interval", "timestamp"]
RESTART = "LINUX-RESTART"
ALL_CPUS = {"-1": "all"}
RATES = ("tps", "rtps", "wtps", "dtps")  # per second, without saying so
OF_EACH_CPU = ["CPU*"]  # of an interrupt: all processors, then each of them, which are left out
EXPECTED = "the output of sadf -d or of sar"
HEAD_BYTES = 4096
MOST_BYTES = 1 << 26  # of a file that is looked into for its sections
SAME_SPAN = 0.5  # of the time of two files together: sections of one run have at least as much in common
SLOWER = 0.9  # a file whose samples are denser than those of the first keeps its own times
TOKENS = re.compile(r"[-_. ]+")
BANNER = re.compile(r"^(?:Linux|SunOS|AIX|Darwin) \S+ +\((?P<host>[^)]*)\)\s+(?P<date>\S+)")
CLOCK = re.compile(r"^(\d{1,2})[:時h](\d\d)[:分m](\d\d)[秒s]?(?:\s+([AaPp])\.?\s?[Mm]\.?)?(?=\s)")
RESTARTED = re.compile(r"\bLINUX RESTART\b")
MAGIC = (b"\x96\xd5", b"\xd5\x96")
DOCUMENT = re.compile(  # JSON, XML, -p, -r, and all sections on one line
    rb"\s*(\{\s*\"sysstat\"|<\?xml[^>]*>\s*(<!DOCTYPE sysstat|<sysstat)|\S+\t-?\d+\t[^\t]+\t[^\t]+\t\S+\t|"
    rb"\d\S*( UTC)?; \w+; |# hostname;[^\n]*\[\.\.\.\])"
)
NUMBER = re.compile(r"^(-?\d+(?:[.,]\d+)?)([%BkMGTP]?)$")
KIBIBYTES = {"%": 1.0, **{letter: 1024.0 ** (power - 1) for power, letter in enumerate("BkMGTP")}}  # of sar --human
COMMA = re.compile(rb"\s\d+,\d+\s")  # where decimals have commas, days stand before months
DEVICE = re.compile(r"^[A-Z]+$")
MIDNIGHT_S = 6 * 3600  # a clock that falls by more has passed midnight; by less it was set back
NOON, CENTURY, MONTHS, DATE_PARTS = 12, 2000, 12, 3
NEIGHBOURS = {("UID", "PID"): "pidstat's counters of processes", ("avg-cpu:",): "what iostat prints"}
UNREADABLE = ("BUS",)  # sections of words, not of numbers


@dataclass
class HostSection:
    """The lines of one host between restarts."""

    host: str
    files: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    cells: list[tuple[int, int, float]] = field(default_factory=list)
    columns: dict[tuple[str, str], int] = field(default_factory=dict)
    seen: set[tuple[str, str, str]] = field(default_factory=set)


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """By the header of the first section, sar's banner, or what sysstat's other files begin with."""
    return is_sadf(head) or is_sar(head) or is_other(head) or bool(neighbour(head))


def read(path: str, params: ReadParams) -> Reading:
    """See Reader.read. Raises BadInput for a file without a section."""
    head = read_head(path, params.limits)
    if tool := neighbour(head):
        raise BadInput(path, tool, EXPECTED, "record the machine with sar -A 1")
    if is_other(head):
        problem = "a file of sysstat itself, JSON of sysstat, or what sadf prints with -x, -p, -r or -h"
        fix = "sadf -d FILE -- -A, where FILE is sysstat's own, such as sa26; without one, record with sar -A 1"
        raise BadInput(path, problem, EXPECTED, fix)
    files = section_files(path)
    parts, refused = _parts(files, params)
    runs = []
    for number, part in enumerate(parts, 1):
        run, bad = _run(part, params.time_zone, f"{part.host}-{number}" if len(parts) > 1 else "")
        runs += [run] if run else []
        refused.append(bad)
    if not runs and not any(len(frame) for frame in refused):
        raise BadInput(path, "no line of counters in it", EXPECTED, "sadf -d FILE -- -A prints all of them")
    also = ", ".join(Path(file).name for file in files[1:])
    return Reading(runs, all_refusals(refused), (f"with the sections of {also}",) if also else ())


def is_sadf(head: bytes) -> bool:
    """Whether a file begins with the header of a section."""
    return head.lstrip().removeprefix(b"#").lstrip().startswith(";".join(HEADER).encode())


def is_sar(head: bytes) -> bool:
    """Whether a file begins as `sar` does: its banner, and a table that a clock heads."""
    banner, *lines = head.decode("utf-8", "replace").lstrip("\ufeff\r\n").splitlines() or [""]
    tables = [line for line in lines if line.strip()]
    return bool(BANNER.match(banner) and tables and (CLOCK.match(tables[0]) or RESTARTED.search(tables[0])))


def is_other(head: bytes) -> bool:
    """Whether a file is sysstat's own, as `sar -o` and the daily sa26 are, or what `sadf` prints without -d."""
    return head.startswith(MAGIC) or bool(DOCUMENT.match(head))


def neighbour(head: bytes) -> str:
    """Whose output a file holds that begins with sar's banner and is none of sar's; empty: nobody's."""
    banner, *lines = head.decode("utf-8", "replace").lstrip("\ufeff\r\n").splitlines() or [""]
    words = [set(line.split()) for line in lines] if BANNER.match(banner) else []
    return next((what for heads, what in NEIGHBOURS.items() if any(set(heads) <= line for line in words)), "")


@dataclass
class SarLines:
    """Turns the lines of a file, in their order, into those of `sadf -d`. head: its beginning."""

    head: bytes
    host: str = ""
    day: date | None = None
    columns: tuple[str, ...] = ()
    is_last: bool = False  # whether the device stands behind the values
    before: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)  # of each table: clock and days

    def as_sadf(self, line: str) -> str:
        """A header, a line of values or of a restart; empty for what is neither."""
        if banner := BANNER.match(line):
            self.host, self.columns, self.before = banner["host"], (), {}
            self.day = day_of(banner["date"], is_month_first=not COMMA.search(self.head))
            return ""
        clock = CLOCK.match(line)
        words = line[clock.end() :].split() if clock else []
        if clock is None or not words or words[0] == "COM":
            return ""
        if RESTARTED.search(line):
            self.before = {}
            return f"{self.host};-1;{self._time(clock, ())};LINUX-RESTART"
        if not any(map(NUMBER.match, words)):
            return self._header(words)
        fields = words
        if self.is_last:  # a mount point may hold blanks
            values = len(self.columns) - 1
            fields = [" ".join(words[values:]), *words[:values]]
        if not self.columns or self.columns[0] in UNREADABLE:
            return ""
        columns = self.columns if len(self.columns) == len(fields) else ("",) * len(fields)
        cells = (_plain(cell, column) for cell, column in zip(fields, columns, strict=True))
        return ";".join([self.host, "", self._time(clock, self.columns), *cells])

    def _header(self, words: Sequence[str]) -> str:
        self.is_last = bool(DEVICE.match(words[-1])) and not DEVICE.match(words[0])
        columns = [words[-1], *words[:-1]] if self.is_last else list(words)
        self.columns = (columns[0], *OF_EACH_CPU) if columns[:2] == ["INTR", "all"] else tuple(columns)
        if self.columns[0] in UNREADABLE:
            return ""
        return ";".join(["# hostname", "interval", "timestamp", *self.columns])

    def _time(self, clock: re.Match[str], table: tuple[str, ...]) -> str:
        hour, minute, second = (int(clock[at]) for at in (1, 2, 3))
        if clock[4]:
            hour = hour % NOON + (NOON if clock[4] in "Pp" else 0)
        seconds = 3600 * hour + 60 * minute + second
        last, days = self.before.get(table, (seconds, 0))
        days += last - seconds > MIDNIGHT_S
        self.before[table] = seconds, days
        if self.day is None:
            return f"{hour:02}:{minute:02}:{second:02}"  # which day, nobody says
        return f"{self.day + timedelta(days=days)} {hour:02}:{minute:02}:{second:02}"


def _plain(cell: str, column: str) -> str:
    """A cell as sadf -d prints it: in the unit that its column has, kB or MB, where --human has scaled it."""
    number, unit = match.groups() if (match := NUMBER.match(cell)) else (cell, "")
    number = number.replace(",", ".")
    return f"{float(number) * KIBIBYTES[unit] / (1024 if column.startswith('MB') else 1):g}" if unit else number


def day_of(text: str, *, is_month_first: bool) -> date | None:
    """The date of a banner; None for what is none. is_month_first: of two numbers that may both be a month."""
    numbers = [int(digits) for digits in re.findall(r"\d+", text)]
    if len(numbers) != DATE_PARTS:
        return None
    if numbers[0] >= CENTURY:
        year, month, day = numbers
    else:
        month, day, year = numbers
        if "." in text or "-" in text or (not is_month_first and day <= MONTHS) or month > MONTHS:
            month, day = day, month
    try:
        return date(year if year >= CENTURY else CENTURY + year, month, day)
    except ValueError:
        return None


def _translation(head: bytes) -> Callable[[str], str]:
    """What makes a line of sadf -d of each line of a file that begins so."""
    return SarLines(head).as_sadf if is_sar(head) else str


@dataclass(frozen=True)
class Outline:
    """What a file holds: its hosts, its counters (each with the kind of its device), and the first and last time."""

    hosts: frozenset[str]
    counters: frozenset[tuple[str, str]]
    first_s: float
    last_s: float

    def completes(self, other: "Outline") -> bool:
        """Whether both hold sections of one run."""
        if self.hosts != other.hosts or len(self.hosts) != 1 or self.counters & other.counters:
            return False
        together_s = max(self.last_s, other.last_s) - min(self.first_s, other.first_s)
        return min(self.last_s, other.last_s) - max(self.first_s, other.first_s) >= SAME_SPAN * together_s


def section_files(path: str) -> list[str]:
    """The files that hold the sections of one run, this one among them, in the order of their names."""
    here = Path(path)
    if not here.is_file() or _outline_of(here) is None:
        return [path]
    groups: list[dict[Path, Outline]] = []
    for file in sorted(entry for entry in here.parent.iterdir() if entry.is_file()):
        outline = _outline_of(file)
        if outline is None:
            continue
        fitting = [group for group in groups if all(outline.completes(other) for other in group.values())]
        # several runs may lie at the same times: names tell them apart
        best = max(
            fitting, key=lambda group: SequenceMatcher(None, file.name, next(iter(group)).name).ratio(), default=None
        )
        if best is None:
            groups.append({file: outline})
        else:
            best[file] = outline
    return next([str(file) for file in group] for group in groups if here in group)


def run_path(files: Sequence[str]) -> str:
    """The path that a run in several files is called after: what their names share, else the name of the folder."""
    first, *others = (Path(file) for file in files)
    if not others:
        return files[0]
    taken = [set(TOKENS.split(other.stem)) for other in others]
    shared = [token for token in TOKENS.split(first.stem) if all(token in tokens for tokens in taken)]
    return str(first.with_name(("-".join(shared) or first.parent.name) + first.suffix))


def _outline_of(path: Path) -> Outline | None:
    about = path.stat()
    return _outline(path, about.st_mtime_ns, about.st_size) if about.st_size <= MOST_BYTES else None


@lru_cache(maxsize=4096)
def _outline(path: Path, mtime_ns: int, size: int) -> Outline | None:  # noqa: ARG001 - they tell versions apart
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:  # who reads it says why; beside another file it is none of its sections
        return None
    if neighbour(head) or not (is_sadf(head) or is_sar(head)):
        return None
    as_sadf = _translation(head)
    text = path.read_text(errors="replace").splitlines()
    lines = [as_sadf(line).removeprefix("#").strip() for line in text]
    records = [line.split(";") for line in lines if line and RESTART not in line]
    rows = [fields for fields in records if len(fields) > len(HEADER) and fields[:3] != HEADER]
    seconds = _seconds_of([fields[2] for fields in rows], "UTC")
    seconds = seconds[~np.isnan(seconds)]
    if not len(seconds):
        return None
    heads = [fields[3:] for fields in records if fields[:3] == HEADER and fields[3:]]
    counters = frozenset(
        (head[0] if DEVICE.match(head[0]) else "", name) for head in heads for name in head[1:] or head
    )
    return Outline(frozenset(fields[0] for fields in rows), counters, float(seconds.min()), float(seconds.max()))


def _parts(files: Sequence[str], params: ReadParams) -> tuple[list[HostSection], list[pd.DataFrame]]:
    """The stretches between restarts, in order; those of several files are joined one by one."""
    parts: dict[tuple[str, int], HostSection] = {}
    refused: list[pd.DataFrame] = []
    n_before = 0
    for number, path in enumerate(files):
        names: list[str] = []
        restarts: dict[str, int] = {}
        last = 0
        as_sadf = _translation(read_head(path, params.limits))
        for block in read_lines(path, params.limits):
            bad = [(n_before + place, reason, raw) for place, reason, raw in block.refused]
            for place, line in zip(block.places, block.lines, strict=True):
                last = place
                sadf_line = as_sadf(line)
                fields = sadf_line.removeprefix("#").strip().split(";")
                if fields[:3] == HEADER:
                    names = fields[3:]
                elif RESTART in sadf_line:
                    restarts[fields[0]] = restarts.get(fields[0], 0) + 1
                elif sadf_line.strip():
                    part = parts.setdefault((fields[0], restarts.get(fields[0], 0)), HostSection(fields[0]))
                    if fault := _add(part, number, n_before + place, fields, names):
                        bad.append((n_before + place, fault, line))
            refused.append(refused_rows(bad))
        n_before += last
    return [part for part in parts.values() if part.places], refused


def _add(part: HostSection, file: int, place: int, fields: list[str], names: list[str]) -> str:
    """Put the values of a line into a part; returns why it cannot be done, or nothing."""
    if not names:
        return "no header before it; expected # hostname;interval;timestamp;…"
    if names[1:] == OF_EACH_CPU:
        names, fields = [names[0], "intr/s"], fields[: len(HEADER) + 2]
    if len(fields) != len(names) + len(HEADER):
        return f"{len(fields)} fields; the header has {len(names) + len(HEADER)}"
    values, device = fields[3:], ""
    columns = list(zip(names, values, strict=True))
    if DEVICE.match(names[0]) and len(names) > 1:
        device = f"{spelled(names[0])}.{ALL_CPUS.get(values[0], spelled(values[0]).replace('.', '_'))}"
        columns = columns[1:]
    key = (device, ";".join(names), fields[2])
    if key in part.seen:
        return "a second line of this time and device; the first counts"
    try:
        numbers = [(name, _number(text)) for name, text in columns]
    except ValueError:
        return "a value is no number; expected numbers after the timestamp"
    part.seen.add(key)
    row = len(part.places)
    part.files.append(file)
    part.places.append(place)
    part.times.append(fields[2])
    for name, number in numbers:
        code = part.columns.setdefault((device, name), len(part.columns))
        part.cells.append((row, code, number))
    return ""


def _number(text: str) -> float:
    return float(text.replace(",", ".")) if text.strip() else float("nan")


def _run(part: HostSection, zone: str, name: str) -> tuple[FileRun | None, pd.DataFrame]:
    seconds = _in_step(_seconds_of(part.times, "UTC" if part.times[0].endswith("UTC") else zone), np.array(part.files))
    is_bad = np.isnan(seconds)
    places = np.array(part.places, dtype=np.int64)
    refused = refusals(places[is_bad], "no time; expected UTC, or Unix seconds (-U)", [""] * int(is_bad.sum()))
    if is_bad.all():
        return None, refused
    kept = np.flatnonzero(~is_bad)
    new_row = np.cumsum(~is_bad) - 1
    rows, codes, values = (np.array(column) for column in zip(*part.cells, strict=True))
    is_kept = ~is_bad[rows]
    first, offsets = start_and_offsets(seconds[kept])
    cells = (new_row[rows[is_kept]].astype(np.int64), codes[is_kept].astype(np.int64), values[is_kept].astype(float))
    counters: dict[str, Counter] = {}
    for (device, raw), code in part.columns.items():
        spelling = spelled(raw.removesuffix("/s"))
        called = f"{device}.{spelling}" if device else f"sar.{spelling}"
        called = called if called not in counters else f"{called}_{code}"
        is_rate = raw.endswith("/s") or raw in RATES
        counters[called] = Counter(called, "%" if raw.startswith("%") else "", "software", is_rate)
    about: dict[str, Any] = {"part": name, "labels": {"machine": part.host}, "started_at": first}
    run = side_by_side(tuple(counters.values()), offsets, places[kept], cells, **about)
    return run, refused


def _seconds_of(texts: list[str], zone: str) -> FloatArray:
    return unix_seconds([text.removesuffix(" UTC").strip() for text in texts], zone)


def _in_step(seconds: FloatArray, files: NDArray[np.int64]) -> FloatArray:
    """Times of later files moved to those of the first, where they lie within half of its interval."""
    grid = np.unique(seconds[(files == 0) & ~np.isnan(seconds)])
    moved = seconds.copy()
    for file in range(1, int(files.max()) + 1):
        is_of = (files == file) & ~np.isnan(seconds)
        theirs = np.unique(seconds[is_of])
        if min(len(grid), len(theirs)) < 2 or np.median(np.diff(theirs)) < SLOWER * np.median(np.diff(grid)):
            continue
        nearest = grid[np.abs(theirs[:, None] - grid).argmin(axis=1)]
        nearest = np.where(np.abs(nearest - theirs) <= np.median(np.diff(grid)) / 2, nearest, theirs)
        if len(np.unique(nearest)) == len(theirs):
            moved[is_of] = nearest[np.searchsorted(theirs, seconds[is_of])]
    return moved
