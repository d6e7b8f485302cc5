"""whorl's own job log as CSV: blocks of lines, all at once where they are well formed, else record by record."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from tasks.errors import BadInput
from tasks.jobs.columns import FLAT_COLUMNS
from tasks.jobs.readers.own_batch import Batch
from tasks.jobs.readers.own_columns import choose_columns
from tasks.jobs.readers.own_records import fields_of, split_records
from tasks.read_limits import ReadLimits
from tasks.reading import Block, all_refusals, no_refusals, read_blocks

DELIMITERS = ",;\t"
QUOTE = b'"'


@dataclass(frozen=True)
class Header:
    """The columns of the file, and ours among them."""

    names: list[str]
    delimiter: str
    chosen: dict[str, str]


def split_header(line: str) -> tuple[list[str], str]:
    """The names in a header line and the delimiter: the one that makes most of them ours, then most of them."""
    splits = [([name.strip() for name in fields_of(line, mark)[0]], mark) for mark in DELIMITERS]
    return max(splits, key=lambda split: (sum(name in FLAT_COLUMNS for name in split[0]), len(split[0])))


def csv_batches(path: str, renamed: Mapping[str, str], limits: ReadLimits) -> Iterator[Batch]:
    """Batches of at most 100,000 rows. Raises BadInput for a wrong header and for a file without rows."""
    header: Header | None = None
    waiting, n_lines = Block(1, b"", no_refusals()), 0
    for block in read_blocks(path, limits):
        if header is None:
            header, block = _cut_header(path, block, renamed)
        joined = Block(block.first - waiting.data.count(b"\n"), waiting.data + block.data, block.refused)
        batch, waiting = _batch(joined, header, limits.max_line_bytes, is_last=False)
        n_lines += len(batch.places) + len(batch.refused)
        yield batch
    if header and waiting.data:
        batch, _ = _batch(waiting, header, limits.max_line_bytes, is_last=True)
        n_lines += len(batch.places) + len(batch.refused)
        yield batch
    if not n_lines:
        raise BadInput(path, "no row in it", "a header line and at least one run", "export it again")


def _cut_header(path: str, block: Block, renamed: Mapping[str, str]) -> tuple[Header, Block]:
    lines = block.data.split(b"\n")
    position = next((row for row, line in enumerate(lines) if line.strip()), 0)
    names, delimiter = split_header(lines[position].decode())
    chosen = choose_columns(path, names, renamed, FLAT_COLUMNS)
    rest = Block(block.first + position + 1, b"\n".join(lines[position + 1 :]), block.refused)
    return Header(names, delimiter, chosen), rest


def _batch(block: Block, header: Header, max_bytes: int, *, is_last: bool) -> tuple[Batch, Block]:
    """The rows of a block, and its last lines if they end inside quotes."""
    n_lines = block.data.count(b"\n")
    table = _table(block.data, header) if block.data.count(QUOTE) % 2 == 0 else None
    if table is not None and table.num_rows == n_lines:
        places = np.arange(block.first, block.first + n_lines)
        return Batch(places, table, block.refused, _line_at(block.data)), Block(1, b"", no_refusals())
    return _batch_one_by_one(block, header, max_bytes, is_last=is_last)


def _batch_one_by_one(block: Block, header: Header, max_bytes: int, *, is_last: bool) -> tuple[Batch, Block]:
    lines = block.data.decode().split("\n")[:-1]
    n_fields = len(header.names)
    records = split_records(block.first, lines, header.delimiter, n_fields, max_chars=max_bytes, is_last=is_last)
    columns = {}
    for ours, theirs in header.chosen.items():
        position = header.names.index(theirs)
        columns[ours] = pa.array([fields[position] for fields in records.fields], pa.string())
    refused = all_refusals([block.refused, records.refused])
    batch = Batch(np.array(records.places, dtype="int64"), pa.table(columns), refused, records.raws.__getitem__)
    rest = "".join(f"{line}\n" for line in lines[records.n_used :])
    return batch, Block(block.first + records.n_used, rest.encode(), no_refusals())


def _table(data: bytes, header: Header) -> pa.Table | None:
    """All lines at once as text; None if one of them has not as many fields as the header."""
    if not data:
        return None
    unique = [str(position) for position in range(len(header.names))]  # columns that are not ours may repeat
    wanted = [str(header.names.index(theirs)) for theirs in header.chosen.values()]
    try:
        table = pacsv.read_csv(
            BytesIO(data),
            read_options=pacsv.ReadOptions(column_names=unique, use_threads=False, block_size=len(data) + 1),
            parse_options=pacsv.ParseOptions(delimiter=header.delimiter),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(unique, pa.string()), include_columns=wanted
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table.rename_columns(list(header.chosen))


def _line_at(data: bytes) -> Callable[[int], str]:
    """The text of the row at a position; the lines are told apart when the first is asked for."""
    lines: list[bytes] = []

    def text(row: int) -> str:
        if not lines:
            lines.extend(data.split(b"\n"))
        return lines[row].decode()

    return text
