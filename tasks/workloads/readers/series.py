"""A series for change points: one column a counter, a header line; every line is a sample, also an empty one."""

from dataclasses import dataclass

import numpy as np

from tasks.errors import BadInput
from tasks.read_limits import ReadLimits
from tasks.reading import read_lines
from tasks.workloads.readers.csv_rows import split_header
from tasks.workloads.readers.tables import MISSING
from tasks.workloads.telemetry import FloatArray

EXPECTED = "a header line, then numbers; an empty cell is a missing sample"


@dataclass(frozen=True)
class Series:
    """names: of the columns, k; values: (n, k), NaN: missing. Row i is line i + 2 of the file."""

    names: tuple[str, ...]
    values: FloatArray


def read_series(path: str, limits: ReadLimits) -> Series:
    """A CSV file as a series. An empty cell, and an empty line, is a missing sample and keeps its row.

    Empty lines after the last line with a value count as well, but not the line end that closes the file.
    Raises BadInput, with the line, for a cell that is no number and for a line with another number of fields: a
    sample that were left out would move all change points after it."""
    lines: list[str] = []
    for block in read_lines(path, limits):
        if len(block.refused):
            first = block.refused.iloc[0]
            raise BadInput(f"{path}, line {first['place']}", str(first["reason"]), EXPECTED)
        lines += block.lines
    if not lines or not lines[0].strip():
        raise BadInput(path, "no header line", EXPECTED, "put the names of the columns into the first line")
    names, mark = split_header(lines[0])
    if all(_is_number(name) for name in names):
        raise BadInput(path, "no header line: the first line holds numbers", EXPECTED, "add one")
    if len(lines) < 2:
        raise BadInput(path, "no sample in it", EXPECTED)
    values = np.full((len(lines) - 1, len(names)), np.nan)
    for row, line in enumerate(lines[1:]):
        if line.strip():
            values[row] = _numbers(path, row + 2, line.split(mark), len(names))
    return Series(tuple(names), values)


def _numbers(path: str, place: int, cells: list[str], n_columns: int) -> list[float]:
    if len(cells) != n_columns:
        raise BadInput(f"{path}, line {place}", f"{len(cells)} fields; the header has {n_columns}", EXPECTED)
    return [_number(path, place, cell.strip().strip('"')) for cell in cells]


def _number(path: str, place: int, cell: str) -> float:
    if cell.lower() in MISSING:
        return float("nan")
    if not _is_number(cell) or not np.isfinite(float(cell)):
        raise BadInput(f"{path}, line {place}", f"{cell[:40]!r} is no finite number", EXPECTED, "mend the line")
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
