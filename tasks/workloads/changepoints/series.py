"""Series that change points are sought in: columns of CSV, for which neither pandas nor pyarrow is imported, and
counters of telemetry that a reader knows."""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tasks.errors import BadInput, quoted
from tasks.intake.files import MISSING, key_of, number_of, read_head, read_lines, split_header
from tasks.params import ReadLimits
from tasks.workloads.telemetry import TIMES, FloatArray, spelled

if TYPE_CHECKING:
    from tasks.workloads.params import ReadParams

OWN_TIME = "ats"  # at_s, the times of whorl's own tables
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d|\d{4}[-/]\d\d|\d{1,2}:\d\d")  # as times begin, and no number does
WRITTEN_UNIT = re.compile(r"[A-Za-zµ%]+(?:\s*/s)?")
EXPECTED = "a header line, then numbers; an empty cell is a missing sample"


@dataclass(frozen=True)
class Series:
    """names: of the columns, k; values: (n, k), NaN: missing; times: (n,) as written, empty without a column of times;
    units: of the values, k, empty where the file does not say.

    Row i is line i + 2 of a CSV file, sample i of telemetry."""

    names: tuple[str, ...]
    values: FloatArray
    times: tuple[str, ...]
    units: tuple[str, ...]


def series_of(path: str, read: "ReadParams", columns: Sequence[str] = ()) -> Series:
    """Columns of a CSV file, as read_series has them; of other telemetry, and of CSV that holds text beside times and
    numbers (a host, a long table), the counters of its run that vary.

    Raises BadInput for a file that is neither, for several runs, and for a counter that is not there."""
    try:
        return read_series(path, read.limits, columns)
    except BadInput as fault:
        from tasks.intake.tables import JSON_MARKS, MAGIC
        from tasks.workloads.intake import read_file
        from tasks.workloads.readers import detect

        is_csv = False
        if not read_head(path, read.limits).startswith((MAGIC, *JSON_MARKS)):
            try:
                is_csv = detect(path, read.limits).name == "wide"
            except BadInput:
                raise fault from None
        try:
            runs, refused = read_file(path, read)
        except BadInput:
            if is_csv:
                raise fault from None
            raise
        if is_csv and (not runs or len(refused)):
            raise fault from None
    if not runs:
        reasons = "; ".join(refused["reason"].unique()) or "nothing to read"
        raise BadInput(path, f"no run in it: {reasons}", "a run of several samples", "record it longer")
    if len(runs) > 1:
        raise BadInput(path, f"{len(runs)} runs in it", "one run", "take the file apart, or see whorl workloads ingest")
    run = runs[0].telemetry
    wanted = [column if column in run.names else spelled(column) for column in columns]
    places, _ = _columns_of(path, list(run.names), wanted)
    varying = [at for at in places if columns or len(np.unique(run.values[~np.isnan(run.values[:, at]), at])) > 1]
    started = run.started_at
    times = (f"{started + timedelta(seconds=at):%F %T}" if started else f"{at:g}" for at in run.at_s.tolist())
    counters = [run.counters[at] for at in varying]
    units = (f"{counter.unit}/s" if counter.unit and counter.is_rate else counter.unit for counter in counters)
    names = tuple(counter.name for counter in counters)
    return Series(names, run.values[:, varying], tuple(times), tuple(units))


def read_series(path: str, limits: ReadLimits, columns: Sequence[str] = ()) -> Series:
    """Columns of a CSV file as series; without names all but the times. Lines are read as they come.

    An empty cell, and an empty line, is a missing sample and keeps its row; so do empty lines after the last line with
    a value, but not the line end that closes the file. A column that is called a time, such as date or timestamp, holds
    the times of the rows, in whatever form, unless it is the only one or named in columns; without one, the first
    column whose first row is a date or a clock does. Cells may carry a unit (%, sizes, time spans, or these in a
    second); their column is in that of its first cell.
    Raises BadInput, with the line, for a cell that is no number, or of another unit than those above, and for a line
    with another number of fields (a sample that were left out would move all change points after it), and for a column
    that is not there."""
    names: list[str] = []
    mark, place, time_at = "", 1, -1
    wanted: list[int] = []
    values, moments, units = array("d"), [], dict[int, Unit | None]()
    for block in read_lines(path, limits):
        if block.refused:
            first, reason, _ = block.refused[0]
            raise BadInput(f"{path}, line {first}", reason, EXPECTED)
        for line in block.lines:
            if not names:
                names, mark = _header_of(path, line)
                wanted, time_at = _columns_of(path, names, columns)
                continue
            place += 1
            cells = line.split(mark) if line.strip() else [""] * len(names)
            if len(cells) != len(names):
                raise BadInput(f"{path}, line {place}", f"{len(cells)} fields; the header has {len(names)}", EXPECTED)
            if time_at < 0 and not values and len(names) > 1:
                dated = (at for at, cell in enumerate(cells) if DATE.match(cell.strip(' "')))
                time_at = next((at for at in dated if names[at] not in columns), -1)
                wanted = [at for at in wanted if at != time_at]
            try:
                values.extend([_cell(cells[at].strip().strip('"'), mark, units, at) for at in wanted])
            except ValueError as fault:
                numeric = [name for name, cell in zip(names, cells, strict=True) if number_of(cell) is not None]
                fix = f"mend the line, or name --column, as in --column {numeric[0]}" if numeric else "mend the line"
                raise BadInput(f"{path}, line {place}", str(fault), EXPECTED, fix) from None
            if time_at >= 0:
                moments.append(cells[time_at].strip().strip('"'))
    if not names:
        raise BadInput(path, "no header line", EXPECTED, "put the names of the columns into the first line")
    if not values:
        raise BadInput(path, "no sample in it", EXPECTED)
    table = np.frombuffer(values, dtype=np.float64).reshape(-1, len(wanted))
    written = tuple(unit.name if (unit := units.get(at)) else "" for at in wanted)
    return Series(tuple(names[at] for at in wanted), table, tuple(moments) if time_at >= 0 else (), written)


def _header_of(path: str, line: str) -> tuple[list[str], str]:
    if not line.strip():
        raise BadInput(path, "no header line", EXPECTED, "put the names of the columns into the first line")
    names, mark = split_header(line)
    if all(number_of(name) is not None for name in names):
        raise BadInput(path, "no header line: the first line holds numbers", EXPECTED, "add one")
    return names, mark


def _columns_of(path: str, names: list[str], columns: Sequence[str]) -> tuple[list[int], int]:
    """The places of the columns that are read, and that of the times, -1 without one."""
    for column in columns:
        if column not in names:
            raise BadInput(path, f"no column {quoted(column)}", f"one of {', '.join(names[:20])}", "name one of these")
    called = [at for at, name in enumerate(names) if key_of(name) in (*TIMES, OWN_TIME) and name not in columns]
    time_at = called[0] if called and len(names) > 1 else -1
    return [names.index(wanted) for wanted in columns] or [at for at in range(len(names)) if at != time_at], time_at


class Unit(NamedTuple):
    """name: as written; base: what it is a multiple of, size times: %, B or s, or one of them in a second."""

    name: str
    base: str
    size: float


def _cell(cell: str, mark: str, units: dict[int, Unit | None], at: int) -> float:
    """1.234,5 is 1234.5 where commas do not part the fields. units: by column, of the cells above, None: without one;
    the first cell with a value adds that of its column. Raises ValueError for what is no such number."""
    if cell.lower() in MISSING:
        return float("nan")
    text = cell.replace(".", "").replace(",", ".") if "," in cell and mark != "," else cell
    number, base = number_of(text), ""
    if number is None:
        from tasks.intake.aliases import amount_of

        number, base = amount_of(text) or (None, "")
        if at not in units and (written := WRITTEN_UNIT.search(text)):
            size, of = amount_of(f"1{written[0]}") or (1.0, "")
            units[at] = Unit(written[0], base, size) if of == base else Unit(base, base, 1.0)
    if number is None or not np.isfinite(number):
        fault = "is no finite number"
    else:
        unit = units.setdefault(at, None)
        if base == (unit.base if unit else ""):
            return number / unit.size if unit else number
        fault = f"is of another unit than the cells above ({unit.name if unit else 'which have none'})"
    raise ValueError(f"{cell[:40]!r} {fault}")
