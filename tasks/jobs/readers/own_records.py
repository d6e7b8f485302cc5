"""CSV line by line, for blocks in which a line is broken or a quoted text runs over several lines."""

import csv
from dataclasses import dataclass

import pandas as pd

from tasks.reading import refusals

MAX_RECORD_LINES = 1000  # a quoted text with more lines is taken for a quote that was never closed
OPEN_QUOTE = "unexpected end of data"  # what the csv module says of a line that ends inside quotes


@dataclass(frozen=True)
class Records:
    """Records with the right number of fields, the lines that were refused, and what is left at the end.

    places: line numbers of the first lines; raws: their texts. n_used: lines that were used up; the rest belongs
    to a record that may go on in the next block."""

    places: list[int]
    fields: list[list[str]]
    raws: list[str]
    refused: pd.DataFrame
    n_used: int


def fields_of(text: str, delimiter: str) -> tuple[list[str], bool]:
    """The fields of a record, and whether it ends inside quotes."""
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True), []), False
    except csv.Error as error:
        if str(error) == OPEN_QUOTE:
            return [], True
    try:
        return next(csv.reader([text], delimiter=delimiter), []), False  # "a"b is ab
    except csv.Error:
        return [], False


def split_records(
    first: int, lines: list[str], delimiter: str, n_fields: int, *, max_chars: int, is_last: bool
) -> Records:
    """Find the records in lines, the first of which has the number `first` in the file.

    A line that is no record, alone or with lines that follow it, is refused alone: the next line starts anew."""
    found: list[tuple[int, list[str], str]] = []
    bad: list[tuple[int, str, str]] = []
    row = 0
    while row < len(lines):
        if not lines[row].strip():
            row += 1
            continue
        fields, is_open = fields_of(lines[row], delimiter)
        n_lines = 1
        if is_open:
            n_lines = _closing(lines[row : row + MAX_RECORD_LINES], max_chars)
            if not n_lines and not is_last and _may_go_on(lines[row:], max_chars):
                break
            if n_lines:
                fields, is_open = fields_of("\n".join(lines[row : row + n_lines]), delimiter)
        if len(fields) == n_fields:
            found.append((first + row, fields, lines[row]))
            row += n_lines
        else:
            fault = "a quote that is not closed" if is_open else f"{len(fields)} fields; the header has {n_fields}"
            bad.append((first + row, fault, lines[row]))
            row += 1
    refused = refusals([place for place, _, _ in bad], [fault for _, fault, _ in bad], [raw for _, _, raw in bad])
    return Records(
        [place for place, _, _ in found], [f for _, f, _ in found], [raw for _, _, raw in found], refused, row
    )


def _closing(lines: list[str], max_chars: int) -> int:
    """How many lines it takes until the quotes are even in number; 0 if they never are."""
    n_quotes = n_chars = 0
    for n_lines, line in enumerate(lines, 1):
        n_quotes, n_chars = n_quotes + line.count('"'), n_chars + len(line)
        if n_chars > max_chars:
            return 0
        if n_quotes % 2 == 0:
            return n_lines
    return 0


def _may_go_on(lines: list[str], max_chars: int) -> bool:
    return len(lines) < MAX_RECORD_LINES and sum(map(len, lines)) <= max_chars
