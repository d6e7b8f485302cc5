"""whorl's own job log: Parquet or CSV with the column names of jobs.runs.

Needed: run_id, name or group_key, started_at or submitted_at, runtime_s or ended_at. Times are timestamps, ISO text
or epoch seconds; one without a zone is of params.time_zone, UTC if that is empty. params.columns says what ours are
called in the file, params.features which of the others are kept in `features`; the rest is ignored and logged. CSV has
one header line and a comma, a semicolon or a tab between fields; an empty field is missing. Lists (vertices, skyline,
skus) need Parquet."""

import csv
import json
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from io import BytesIO
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from tasks.errors import BadInput, headless, quoted
from tasks.intake.files import (
    PARQUET_FAULTS,
    Block,
    Chunk,
    all_refusals,
    damaged_parquet,
    no_refusals,
    open_plain,
    read_blocks,
    refusals,
)
from tasks.intake.limits import ReadLimits
from tasks.jobs.columns import (
    ALL_COLUMNS,
    COLUMNS,
    FLAT_COLUMNS,
    LIST_COLUMNS,
    MADE_COLUMNS,
    vet_runs,
)
from tasks.jobs.params import Measured, ReadParams, dimension_of
from tasks.jobs.readers.own_values import FEATURE, check_type, is_feature, to_runs, unit_of
from tasks.times import check_zone

logger = logging.getLogger(__name__)
ENOUGH_NAMES = 3  # of our columns in a header line, run_id among them, that tell our CSV from others
NEEDED = (("run_id",), ("name", "group_key"), ("started_at", "submitted_at"), ("runtime_s", "ended_at"))
EXPECTED = "the columns " + ", ".join(" or ".join(names) for names in NEEDED)
PANDAS_INDEX = "__index_level_"
ALL = "all"  # as the only feature: every column that stands for nothing else
DELIMITERS = ",;\t"
QUOTE = b'"'
MAGIC = b"PAR1"
BATCH_ROWS = 65_536
LIST_BATCH_ROWS = 8_192  # where rows hold lists, of any length
LARGE_COLUMN_BYTES = 256 * 2**20  # a column of a row group that unpacks to more must not have shrunk too far
MAX_RECORD_LINES = 1000  # a quoted text with more lines is taken for a quote that was never closed
OPEN_QUOTE = "unexpected end of data"  # what the csv module says of a line that ends inside quotes


@dataclass(frozen=True)
class OwnReader:
    """Reads whorl's own Parquet and CSV."""

    name: str = "own"
    version: int = 4  # 2: the columns of CONDITIONS; 3: others' words for statuses, units in names; 4: features
    ids_hold_names: bool = False
    title: str = "whorl's own columns (.parquet, .csv, .csv.gz)"
    endings: tuple[str, ...] = (".parquet", ".csv", ".csv.gz")

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """Any Parquet file, and text whose first line names our columns."""
        if head.startswith(MAGIC):
            return True
        first = next((line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()), b"")
        names, _ = split_header(first.decode("utf-8", "replace"))
        return "run_id" in names and sum(name in COLUMNS for name in names) >= ENOUGH_NAMES

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """See Reader.read; raises BadSetting for a time zone that does not exist."""
        check_zone(params.time_zone or "UTC")
        with open_plain(path) as stream:
            is_parquet = stream.read(len(MAGIC)) == MAGIC
        batches = (parquet_batches if is_parquet else csv_batches)(path, params)
        now = datetime.now(UTC).replace(tzinfo=None)
        units = {
            ours: unit for ours in get_args(Measured) if (unit := unit_of(path, ours, params)) != dimension_of(ours)
        }
        for ours in units.keys() - params.units:
            otherwise = f"if it is not: --unit {ours}={'B' if dimension_of(ours) == 'bytes' else 's'}"
            read_in = "%s: '%s' is read in %s, as its name says; %s"
            logger.warning(read_in, path, params.columns[ours], units[ours], otherwise)
        for batch in batches:
            rows, faults = to_runs(batch.table, params, units)
            bad = [row for row, fault in enumerate(faults) if fault]
            unread = refusals(batch.places[bad], [faults[row] for row in bad], [batch.raw(row) for row in bad])
            chunk = vet_runs(rows.assign(place=batch.places).drop(index=bad), params, now)
            places, why = chunk.refused["place"], chunk.refused["reason"].to_list()
            vetoed = refusals(places, why, [batch.raw(int(row)) for row in np.searchsorted(batch.places, places)])
            yield Chunk(chunk.rows, all_refusals([batch.refused, unread, vetoed]), {})


@dataclass(frozen=True)
class Batch:
    """Some rows, their columns named as in jobs.runs and not yet in our types.

    places: line or row numbers, from 1. raw: the text of the row at a position of the table.
    refused: lines that are no rows."""

    places: Any
    table: pa.Table
    refused: pd.DataFrame
    raw: Callable[[int], str]


def choose_columns(
    path: str, names: Sequence[str], params: ReadParams, known: Collection[str] = ALL_COLUMNS
) -> dict[str, str]:
    """Our columns and their names in the file, in our order; then the columns kept as features, as `features.NAME`.

    names: the columns of the file; known: ours that this format can hold. Columns that are neither are logged and left
    out. Raises BadInput if a column that is needed or named is missing, or stands there twice."""
    names, renamed = [name.strip() for name in names], params.columns
    known = [name for name in known if name not in MADE_COLUMNS]
    for ours, theirs in renamed.items():
        if ours not in known:
            fix = "lists need Parquet" if ours in LIST_COLUMNS else "mend --map"
            raise BadInput(path, f"cannot map '{theirs}' to '{ours}'", f"one of {', '.join(known)}", fix)
        if theirs not in names:
            raise BadInput(path, f"no column '{theirs}' to read '{ours}' from", f"one of {quoted(names)}", "mend --map")
    taken = set(renamed.values())
    own = {name: name for name in names if name in known and name not in renamed and name not in taken}
    chosen = {ours: (own | dict(renamed))[ours] for ours in known if ours in own or ours in renamed}
    features = _features(path, names, params.features, chosen.values())
    for theirs in (*chosen.values(), *features):
        if names.count(theirs) > 1:
            raise BadInput(path, f"the column '{theirs}' stands there twice", "each column once", "export it again")
    missing = [needed for needed in NEEDED if not any(name in chosen for name in needed)]
    if not missing and not {"runtime_s", "started_at", "wait_s"} & set(chosen):
        raise BadInput(path, "ended_at without started_at gives no runtime", EXPECTED, "export one of the two as well")
    if missing:
        lacking = " and no ".join(" or ".join(needed) for needed in missing)
        fix = headless(names) or f"name yours, as in --map {missing[0][0]}=THEIRS"
        raise BadInput(path, f"no column {lacking} among {quoted(names)}", EXPECTED, fix)
    lists = [name for name in names if name in LIST_COLUMNS and name not in known]
    if lists:
        logger.warning("%s: %s left out: lists need Parquet", path, ", ".join(lists))
    unknown = [name for name in _others(names, (*chosen.values(), *lists)) if name not in features]
    if unknown:
        logger.info("%s: %d unknown columns are ignored: %s", path, len(unknown), quoted(unknown))
    return chosen | {f"{FEATURE}{name}": name for name in features}


def _features(path: str, names: Sequence[str], wanted: Sequence[str], taken: Collection[str]) -> list[str]:
    """The columns of the file that are kept as features."""
    if list(wanted) == [ALL]:
        return _others(names, taken)
    for name in wanted:
        if name not in names:
            problem = f"no column '{name}' to keep as a feature"
            raise BadInput(path, problem, f"one of {quoted(names)}", "mend --features")
    return list(dict.fromkeys(wanted))


def _others(names: Sequence[str], taken: Collection[str]) -> list[str]:
    return [name for name in names if name not in taken and not name.startswith(PANDAS_INDEX)]


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


def csv_batches(path: str, params: ReadParams) -> Iterator[Batch]:
    """Batches of at most 100,000 rows. Raises BadInput for a wrong header and for a file without rows."""
    header: Header | None = None
    waiting, n_lines, max_chars = Block(1, b"", no_refusals()), 0, params.limits.max_line_bytes
    for block in read_blocks(path, params.limits):
        if header is None:
            header, block = _cut_header(path, block, params)
        joined = Block(block.first - waiting.data.count(b"\n"), waiting.data + block.data, block.refused)
        batch, waiting = _batch(joined, header, max_chars, is_last=False)
        n_lines += len(batch.places) + len(batch.refused)
        yield batch
    if header and waiting.data:
        batch, _ = _batch(waiting, header, max_chars, is_last=True)
        n_lines += len(batch.places) + len(batch.refused)
        yield batch
    if not n_lines:
        raise BadInput(path, "no row in it", "a header line and at least one run", "export it again")


def _cut_header(path: str, block: Block, params: ReadParams) -> tuple[Header, Block]:
    lines = block.data.split(b"\n")
    position = next((row for row, line in enumerate(lines) if line.strip()), 0)
    names, delimiter = split_header(lines[position].decode())
    chosen = choose_columns(path, names, params, FLAT_COLUMNS)
    rest = Block(block.first + position + 1, b"\n".join(lines[position + 1 :]), block.refused)
    return Header(names, delimiter, chosen), rest


def _batch(block: Block, header: Header, max_chars: int, *, is_last: bool) -> tuple[Batch, Block]:
    """The rows of a block, and its last lines if they end inside quotes."""
    n_lines = block.data.count(b"\n")
    table = _table(block.data, header) if block.data.count(QUOTE) % 2 == 0 else None
    if table is None or table.num_rows != n_lines:
        return _batch_one_by_one(block, header, max_chars, is_last=is_last)
    lines = cache(lambda: block.data.split(b"\n"))  # told apart when the first is asked for
    places = np.arange(block.first, block.first + n_lines)
    batch = Batch(places, table, block.refused, lambda row: lines()[row].decode())
    return batch, Block(1, b"", no_refusals())


def _batch_one_by_one(block: Block, header: Header, max_chars: int, *, is_last: bool) -> tuple[Batch, Block]:
    """The same where a record may have several lines.

    A line that is no record, alone or with lines that follow it, is refused alone: the next line starts anew."""
    lines, n_fields = block.data.decode().split("\n")[:-1], len(header.names)
    found: list[tuple[int, list[str], str]] = []
    bad: list[tuple[int, str, str]] = []
    row = 0
    while row < len(lines):
        n_lines, (fields, is_open) = 1, fields_of(lines[row], header.delimiter)
        if is_open:
            n_closing = _closing(lines[row : row + MAX_RECORD_LINES], max_chars)
            may_go_on = len(lines) - row < MAX_RECORD_LINES and sum(map(len, lines[row:])) <= max_chars
            if not n_closing and not is_last and may_go_on:
                break
            if n_closing:
                n_lines = n_closing
                fields, is_open = fields_of("\n".join(lines[row : row + n_lines]), header.delimiter)
        if not lines[row].strip():
            row += 1
        elif len(fields) == n_fields:
            found.append((block.first + row, fields, lines[row]))
            row += n_lines
        else:
            fault = "a quote that is not closed" if is_open else f"{len(fields)} fields; the header has {n_fields}"
            bad.append((block.first + row, fault, lines[row]))
            row += 1
    refused = refusals([place for place, _, _ in bad], [fault for _, fault, _ in bad], [raw for _, _, raw in bad])
    positions = {ours: header.names.index(theirs) for ours, theirs in header.chosen.items()}
    columns = {ours: pa.array([fields[at] for _, fields, _ in found], pa.string()) for ours, at in positions.items()}
    places = np.array([place for place, _, _ in found], dtype="int64")
    batch = Batch(places, pa.table(columns), all_refusals([block.refused, refused]), lambda row: found[row][2])
    rest = "".join(f"{line}\n" for line in lines[row:])
    return batch, Block(block.first + row, rest.encode(), no_refusals())


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


def parquet_batches(path: str, params: ReadParams) -> Iterator[Batch]:
    """Batches of 65,536 rows, 8,192 where they hold lists.

    Raises BadInput for a damaged file, missing columns, wrong types and bombs."""
    with open_plain(path) as stream:
        try:
            yield from _batches(path, pq.ParquetFile(stream, pre_buffer=False), params)
        except PARQUET_FAULTS as error:
            raise damaged_parquet(path, error) from error


def _batches(path: str, file: pq.ParquetFile, params: ReadParams) -> Iterator[Batch]:
    schema, first = file.schema_arrow, 1
    chosen = choose_columns(path, schema.names, params)
    if params.features == [ALL]:
        chosen = {ours: theirs for ours, theirs in chosen.items() if is_feature(ours, schema.field(theirs).type)}
    for ours, theirs in chosen.items():
        check_type(path, ours, theirs, schema.field(theirs).type)
    _check_size(path, file.metadata, params.limits)
    if not file.metadata.num_rows:
        raise BadInput(path, "no row in it", "at least one run", "export it again")
    n_rows = min(BATCH_ROWS, LIST_BATCH_ROWS) if set(LIST_COLUMNS) & set(chosen) else BATCH_ROWS
    for batch in file.iter_batches(n_rows, columns=list(chosen.values())):
        table = pa.Table.from_batches([batch]).select(list(chosen.values()))
        table.validate(full=True)  # text that is not UTF-8
        places = np.arange(first, first + table.num_rows)
        yield Batch(places, table.rename_columns(list(chosen)), no_refusals(), partial(_row_text, table))
        first += table.num_rows


def _check_size(path: str, metadata: pq.FileMetaData, limits: ReadLimits) -> None:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > limits.max_bytes:
        problem, fix = f"more than {limits.max_bytes:,} bytes unpacked", "split it, or raise read.limits.max_bytes"
        raise BadInput(path, problem, "a smaller file", fix)
    for column in (group.column(number) for group in groups for number in range(group.num_columns)):
        n_bytes = column.total_uncompressed_size
        if n_bytes > LARGE_COLUMN_BYTES and n_bytes > limits.max_ratio * column.total_compressed_size:
            problem = f"column '{column.path_in_schema}' unpacks to more than {limits.max_ratio:g} times its size"
            raise BadInput(path, problem, "an ordinary log", "look at it by hand, or raise read.limits.max_ratio")


def _row_text(table: pa.Table, row: int) -> str:
    """The row at a position as JSON."""
    values = {name: _value(table[name][row]) for name in table.column_names}
    return json.dumps(values, ensure_ascii=False, default=str)


def _value(scalar: pa.Scalar) -> object:
    """A value for JSON; times as text, or as what the file holds if no calendar has them."""
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError):
        return _beyond_python(scalar)
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def _beyond_python(scalar: pa.Scalar) -> object:
    if isinstance(scalar, pa.ListScalar | pa.LargeListScalar | pa.FixedSizeListScalar):
        return [_value(one) for one in scalar.values]  # noqa: PD011
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(scalar[name]) for name in scalar}
    return f"{getattr(scalar, 'value', 'a value')} {scalar.type}"


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
