"""sysstat's `sadf -d`: lines with semicolons, one section for each kind of counters, each under its `#` header.

A line is hostname;interval;timestamp;… A column in capitals after these (CPU, DEV, IFACE, …) names the device of the
line: its counters are called cpu.all.pct_usr, dev.sda.tps, iface.eth0.rxpck. Columns that end in /s are rates.
LINUX-RESTART lines end a run: counters begin anew. Each host is a run of its own; files joined together may hold
several. Times are UTC, Unix seconds (-U), or of params.time_zone (-T)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput
from tasks.reading import all_refusals, read_lines, refusals
from tasks.workloads.counter_names import spelled
from tasks.workloads.readers.tables import side_by_side, start_and_offsets, unix_seconds
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.sampled import Reading, Sampled
from tasks.workloads.telemetry import Counter

HEADER = ["hostname", "interval", "timestamp"]
RESTART = "LINUX-RESTART"
DEVICE = re.compile(r"^[A-Z]+$")
ALL_CPUS = {"-1": "all"}
RATES = ("tps", "rtps", "wtps", "dtps")  # per second, without saying so
EXPECTED = "the output of sadf -d"


@dataclass
class Part:
    """The lines of one host between restarts."""

    host: str
    places: list[int] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    cells: list[tuple[int, int, float]] = field(default_factory=list)
    columns: dict[tuple[str, str], int] = field(default_factory=dict)
    seen: set[tuple[str, str, str]] = field(default_factory=set)


@dataclass(frozen=True)
class SadfReader:
    """Reads what sadf -d prints."""

    name: str = "sadf"
    version: int = 1
    title: str = "sysstat's sadf -d"
    endings: tuple[str, ...] = (".sadf", ".sadf.csv")

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """By the header of the first section."""
        return head.lstrip().removeprefix(b"#").lstrip().startswith(b"hostname;interval;timestamp")

    def read(self, path: str, params: ReadParams) -> Reading:
        """See Reader.read. Raises BadInput for a file without a section."""
        parts, refused = _parts(path, params)
        runs = []
        for number, part in enumerate(parts, 1):
            run, bad = _run(part, params.time_zone, f"{part.host}-{number}" if len(parts) > 1 else "")
            runs += [run] if run else []
            refused.append(bad)
        if not runs and not any(len(one) for one in refused):
            raise BadInput(path, "no line of counters in it", EXPECTED, "sadf -d FILE -- -A prints all of them")
        return Reading(runs, all_refusals(refused))


def _parts(path: str, params: ReadParams) -> tuple[list[Part], list[pd.DataFrame]]:
    open_parts: dict[str, Part] = {}
    parts: list[Part] = []
    refused: list[pd.DataFrame] = []
    names: list[str] = []
    for block in read_lines(path, params.limits):
        bad: list[tuple[int, str, str]] = []
        for place, line in zip(block.places, block.lines, strict=True):
            fields = line.removeprefix("#").strip().split(";")
            if fields[:3] == HEADER:
                names = fields[3:]
            elif RESTART in line:
                open_parts.pop(fields[0], None)
            elif line.strip():
                fault = _fault(fields, names)
                if not fault:
                    part = open_parts.get(fields[0])
                    if part is None:
                        part = open_parts[fields[0]] = Part(fields[0])
                        parts.append(part)
                    fault = _add(part, place, fields, names)
                if fault:
                    bad.append((place, fault, line))
        refused += [block.refused, refusals([b[0] for b in bad], [b[1] for b in bad], [b[2] for b in bad])]
    return [part for part in parts if part.places], refused


def _fault(fields: list[str], names: list[str]) -> str:
    if not names:
        return "no header before it; expected # hostname;interval;timestamp;…"
    if len(fields) != len(names) + len(HEADER):
        return f"{len(fields)} fields; the header has {len(names) + len(HEADER)}"
    return ""


def _add(part: Part, place: int, fields: list[str], names: list[str]) -> str:
    """Put the values of a line into a part; returns why it cannot be done, or nothing."""
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
    part.places.append(place)
    part.times.append(fields[2])
    for name, number in numbers:
        code = part.columns.setdefault((device, name), len(part.columns))
        part.cells.append((row, code, number))
    return ""


def _number(text: str) -> float:
    return float(text.replace(",", ".")) if text.strip() else float("nan")


def _run(part: Part, zone: str, name: str) -> tuple[Sampled | None, pd.DataFrame]:
    seconds = unix_seconds(pa.chunked_array([pa.array([_plain(text) for text in part.times])]), _zone(part.times, zone))
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
    counters = tuple(_told_apart(part.columns))
    run = side_by_side(
        counters, offsets, places[kept], cells, part=name, labels={"machine": part.host}, started_at=first
    )
    return run, refused


def _told_apart(columns: dict[tuple[str, str], int]) -> Iterator[Counter]:
    taken: set[str] = set()
    for (device, raw), code in columns.items():
        is_rate = raw.endswith("/s") or raw in RATES
        name = spelled(raw.removesuffix("/s"))
        name = f"{device}.{name}" if device else f"sar.{name}"
        name = name if name not in taken else f"{name}_{code}"
        taken.add(name)
        yield Counter(name, "%" if raw.startswith("%") else "", "software", is_rate)


def _plain(text: str) -> str:
    return text.removesuffix(" UTC").strip()


def _zone(times: list[str], zone: str) -> str:
    return "UTC" if times and times[0].endswith("UTC") else zone
