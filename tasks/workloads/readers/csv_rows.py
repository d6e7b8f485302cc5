"""A CSV file of samples as columns of text, all lines at once; lines with another number of fields are refused."""

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from tasks.errors import BadInput, quoted
from tasks.read_limits import ReadLimits
from tasks.reading import all_refusals, csv_fields, read_blocks, refusals

DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class CsvRows:
    """The rows of a file, as text.

    names: of the header line, position by position; columns: in that order. places: (n,), line numbers from 1."""

    names: list[str]
    columns: list[pa.ChunkedArray]
    places: NDArray[np.int64]
    refused: pd.DataFrame
    lines: list[bytes]

    def raw(self, row: int) -> str:
        """The line of a row."""
        return self.lines[int(self.places[row]) - 1].decode("utf-8", "replace")


def read_csv(path: str, limits: ReadLimits) -> CsvRows:
    """The whole file: first line with text is the header; blank lines are no rows.

    Raises BadInput for a file without a header line or without rows, and for what read_blocks refuses."""
    blocks = list(read_blocks(path, limits))
    data, unread = b"".join(block.data for block in blocks), all_refusals([block.refused for block in blocks])
    lines = data.split(b"\n")
    at = next((row for row, line in enumerate(lines) if line.strip()), len(lines))
    if at >= len(lines) - 1:
        raise BadInput(path, "no row in it", "a header line and at least one sample", "export it again")
    names, delimiter = split_header(lines[at].decode())
    if all(_is_number(name) for name in names):
        raise BadInput(path, "no header line: the first line holds numbers", "the names of the columns", "add one")
    table, bad = _parsed(path, lines[at + 1 :], len(names), delimiter)
    faults = {at + 1 + number: n_fields for number, n_fields in bad}
    unread_places = set(unread["place"].tolist())
    numbered = [place for place in range(at + 2, at + 2 + table.num_rows + len(faults)) if place not in faults]
    is_row = np.array([bool(lines[place - 1].strip()) and place not in unread_places for place in numbered], dtype=bool)
    refused = refusals(
        list(faults),
        [f"{n_fields} fields; the header has {len(names)}" for n_fields in faults.values()],
        [lines[place - 1].decode() for place in faults],
    )
    if not is_row.any() and not len(refused) and not len(unread):
        raise BadInput(path, "no row in it", "a header line and at least one sample", "export it again")
    places = np.array(numbered, dtype=np.int64)[is_row]
    columns = table.filter(pa.array(is_row)).columns
    return CsvRows(names, columns, places, all_refusals([unread, refused]), lines)


def split_header(line: str) -> tuple[list[str], str]:
    """The names in a header line, and the delimiter: the one that makes most of them."""
    try:
        splits = [(csv_fields(line, mark), mark) for mark in DELIMITERS]
    except ValueError:  # a field that is too long for a name
        splits = [(line.split(mark), mark) for mark in DELIMITERS]
    names, mark = max(splits, key=lambda split: len(split[0]))
    return [name.strip() for name in names], mark


def _parsed(path: str, lines: list[bytes], n_columns: int, delimiter: str) -> tuple[pa.Table, list[tuple[int, int]]]:
    """All columns as text, and the lines (from 1) that have another number of fields, with that number."""
    names = [str(position) for position in range(n_columns)]
    if n_columns == 1:
        return pa.table({"0": pa.array([line.strip().strip(b'"').decode() for line in lines[:-1]], pa.string())}), []
    bad: list[tuple[int, int]] = []

    def refuse(row: Any) -> str:
        bad.append((row.number, row.actual_columns))
        return "skip"

    body = b"\n".join(lines)
    try:
        table = pacsv.read_csv(
            BytesIO(body),
            read_options=pacsv.ReadOptions(column_names=names, use_threads=False, block_size=len(body) + 1),
            parse_options=pacsv.ParseOptions(
                delimiter=delimiter, invalid_row_handler=refuse, ignore_empty_lines=False, quote_char='"'
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        said = str(error).splitlines()[0][:200]
        raise BadInput(path, f"no CSV ({quoted(said)})", "one record a line", "check quotes and delimiters") from error
    return table, bad


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
