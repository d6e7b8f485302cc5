"""Tables of any make as batches of rows: CSV, Parquet, and JSON (a list, an object around one, or an object a line).

CSV has one header line, before which Excel's `sep=;`, InfluxDB's annotations or dstat's banner may stand, and a comma,
a semicolon, a tab or a bar between fields; a text in quotes may run over lines. A struct of Parquet and an object of
JSON become columns with dotted names (`state.result_state`), the first and the last entry of a list of objects
`timing.0.name` and `timing.-1.name`, and what stands around the list of a JSON document `../name`. Of a list of
conditions, as Kubernetes writes them, `conditions.type` is the last that is true."""

import csv
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from io import BytesIO
from itertools import accumulate, islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.errors import BadInput, headless, quoted
from tasks.intake.aliases import named, with_dates
from tasks.intake.files import (
    BLOCK_BYTES,
    HEAD_BYTES,
    UTF8_MARK,
    Block,
    all_refusals,
    damaged_parquet,
    encodable,
    json_of,
    no_refusals,
    number_of,
    open_checked,
    open_plain,
    parquet_faults,
    read_blocks,
    read_lines,
    refused_rows,
    split_header,
)
from tasks.params import ReadLimits

MAGIC = b"PAR1"
RECORD_KEY = b"whorl.record"  # of the metadata of Parquet: how it was recorded
QUOTE = b'"'
JSON_MARKS = (b"{", b"[")
# blank, the delimiter as Excel states it, what InfluxDB says of its columns
NO_HEADER = re.compile(rb"\s*(sep=.|#(group|datatype|default|constant),.*)?\s*$", re.IGNORECASE)
BANNER = re.compile(rb'"(pcp-dstat|dstat|dool)\b', re.IGNORECASE)  # as its CSV begins: some lines about itself
BANNER_LINES = 12
OWN_NAMES = ("time", "epoch")  # of dstat's columns, that tell enough without their group
KEYS = re.compile(rb'"([^"\\]{1,60})"\s*:')
DOCUMENT_BYTES = 2**30  # of a JSON document: it is held in memory as a whole, unlike one object a line
BATCH_ROWS = 65_536
RECORDS = 20_000  # of JSON, in one batch
LIST_BATCH_ROWS = 8_192  # where rows hold lists, of any length
SAMPLE_ROWS = 1_000  # of Parquet, by which columns are chosen
LARGE_COLUMN_BYTES = 256 * 2**20  # a column of a row group that unpacks to more must not have shrunk too far
MAX_RECORD_LINES = 1000  # a quoted text with more lines is taken for a quote that was never closed
OPEN_QUOTE = "unexpected end of data"  # what the csv module says of a line that ends inside quotes
INSIDE = ("builds", "runs")  # lists in the entries of a list that hold the rows: the builds of each job
MOST_NESTED = 8
AROUND = "../"
PANDAS_INDEX = "__index_level_"
Record = dict[str, Any]


@dataclass(frozen=True)
class RowBatch:
    """Some rows of a table.

    places: (n,), line or row numbers, from 1. table: the columns that were asked for, by their names in the file.
    refused: lines that are no rows. raw: the text of the row at a position of the table."""

    places: NDArray[np.int64]
    table: pa.Table
    refused: pd.DataFrame
    raw: Callable[[int], str]


Choice = Callable[[pa.Table], Sequence[str] | None]  # from the first rows to the columns that are wanted (None: all)


def is_parquet(path: str) -> bool:
    """Whether the file begins as Parquet does."""
    with open_plain(path) as stream:
        return stream.read(len(MAGIC)) == MAGIC


def column_names(head: bytes, path: str) -> list[str]:
    """The names in the footer of a Parquet file or in the header line of a text; none if there are none."""
    if head.startswith(MAGIC):
        try:
            return list(parquet_schema(path).names)
        except BadInput:
            return []
    first = header_line(head.removeprefix(UTF8_MARK))
    return [] if first.startswith((*JSON_MARKS, b"<")) else split_header(first.decode("utf-8", "replace"))[0]


def keys_of(head: bytes) -> list[str]:
    """The keys in the first bytes of a JSON document, at any depth, each once."""
    return [key.decode("utf-8", "replace") for key in dict.fromkeys(KEYS.findall(head))]


def parquet_schema(path: str) -> pa.Schema:
    """The columns of a Parquet file. Raises BadInput for a damaged one."""
    with open_plain(path) as stream:
        try:
            return pq.read_schema(stream)
        except parquet_faults() as error:
            raise damaged_parquet(path, error) from error


def check_once(path: str, names: Sequence[str], wanted: Collection[str]) -> None:
    """Raise BadInput if a chosen column stands in the file twice."""
    for theirs in wanted:
        if names.count(theirs) > 1:
            raise BadInput(path, f"the column '{theirs}' stands there twice", "each column once", "export it again")


def table_batches(
    path: str, limits: ReadLimits, choose: Choice, *, row: str = "row", known: Collection[str] = ()
) -> Iterator[RowBatch]:
    """The rows of a table, at most 100,000 at a time.

    choose: is given the first rows with all columns. row: what a row is called in errors. known: names that tell the
    delimiter of CSV. Raises BadInput for a file without rows, a damaged one and one over the limits, and what `choose`
    raises."""
    if is_parquet(path):
        return _parquet(path, limits, choose, row)
    with open_checked(path, limits) as stream:
        start = stream.read(HEAD_BYTES).removeprefix(UTF8_MARK).lstrip()
    return _json(path, limits, choose, row) if start.startswith(JSON_MARKS) else _csv(path, limits, choose, row, known)


@dataclass(frozen=True)
class WholeTable:
    """All rows of a table in memory.

    names, columns: in the order of the file. places: (n,), rows or lines from 1. refused: lines that are no rows. raw:
    the row at a position, as text. schema: with the metadata of a Parquet file. understood: in words, what its columns
    were put together to."""

    path: str
    names: list[str]
    columns: list[pa.ChunkedArray]
    places: NDArray[np.int64]
    refused: pd.DataFrame
    raw: Callable[[int], str]
    schema: pa.Schema
    understood: tuple[str, ...] = field(default=(), kw_only=True)

    @cached_property
    def is_simulated(self) -> bool:
        """Whether the file says so of itself."""
        try:
            record = json.loads((self.schema.metadata or {}).get(RECORD_KEY, b"{}"))
        except ValueError:
            return False
        return isinstance(record, dict) and record.get("is_simulated") is True

    def by_name(self) -> dict[str, pa.ChunkedArray]:
        """The columns by name, the first of those that share one."""
        columns: dict[str, pa.ChunkedArray] = {}
        for name, column in zip(self.names, self.columns, strict=True):
            columns.setdefault(name, column)
        return columns


def header_line(head: bytes) -> bytes:
    """The first line of CSV that names columns, b"" without one."""
    return next((line for line in head.splitlines() if not NO_HEADER.match(line)), b"")


def choose_columns(
    table: WholeTable, known: Collection[str], needed: Sequence[tuple[str, ...]], renamed: Mapping[str, str]
) -> dict[str, pa.ChunkedArray]:
    """Our columns of a table. known: all that there can be; needed: of each group one. renamed: ours to theirs.

    Raises BadInput if one that is needed is missing or stands there twice, or is renamed from or to nowhere."""
    path, names = table.path, list(dict.fromkeys(table.names))
    check_renamed(path, names, renamed, known)
    taken = set(renamed.values())
    mapped = {
        name: renamed.get(name, name) for name in known if name in renamed or (name in names and name not in taken)
    }
    check_once(path, table.names, mapped.values())
    missing = [group for group in needed if not any(name in mapped for name in group)]
    if missing:
        raise BadInput(
            path,
            f"no column {' and no '.join(' or '.join(group) for group in missing)} among {quoted(names)}",
            "the columns " + ", ".join(" or ".join(group) for group in needed),
            headless(names) or f"name yours, as in --map {missing[0][0]}=THEIRS",
        )
    columns = table.by_name()
    return {ours: columns[theirs] for ours, theirs in mapped.items()}


def check_renamed(
    path: str, names: Sequence[str], renamed: Mapping[str, str], known: Collection[str], lists: Collection[str] = ()
) -> None:
    """Raise BadInput if a column is renamed from a name that the table has not, or to none of ours.

    lists: ours that only Parquet can hold."""
    for ours, theirs in renamed.items():
        if ours not in known:
            fix = "lists need Parquet" if ours in lists else "mend --map"
            raise BadInput(path, f"cannot map '{theirs}' to '{ours}'", f"one of {', '.join(known)}", fix)
        if theirs not in names:
            raise BadInput(path, f"no column '{theirs}' to read '{ours}' from", f"one of {quoted(names)}", "mend --map")


def known_otherwise(
    names: Sequence[str], aliases: Mapping[str, Sequence[str]], renamed: Mapping[str, str]
) -> dict[str, str]:
    """Columns that are called as ours in other letters (`Machine Type`) or by an alias, ours to theirs, where a table
    has none of ours and nobody named one."""
    mapped: dict[str, str] = {}
    for ours, others in aliases.items():
        if ours not in names and ours not in renamed:
            taken = {*renamed.values(), *mapped.values()}
            if name := next((name for name, _ in named(names, (ours, *others), taken)), ""):
                mapped[ours] = name
    return mapped


def whole_table(path: str, limits: ReadLimits, *, row: str = "row", as_codes: Sequence[str] = ()) -> WholeTable:
    """All of a table. as_codes: columns of few texts, kept as codes where it is Parquet.

    Raises BadInput as table_batches does, and for CSV whose first line holds numbers alone."""
    if is_parquet(path):
        return _whole_parquet(path, limits, row, as_codes)
    batches = list(table_batches(path, limits, partial(_all_of, path), row=row))
    edges = np.cumsum([0, *(len(batch.places) for batch in batches)])

    def raw(at: int) -> str:
        part = int(np.searchsorted(edges, at, side="right")) - 1
        return batches[part].raw(at - int(edges[part]))

    table, understood = with_dates(pa.concat_tables([batch.table for batch in batches]))
    return WholeTable(
        path,
        table.column_names,
        table.columns,
        np.concatenate([batch.places for batch in batches]),
        all_refusals([batch.refused for batch in batches]),
        raw,
        table.schema,
        understood=understood,
    )


def _all_of(path: str, sample: pa.Table) -> None:
    if all(number_of(name) is not None for name in sample.column_names):
        raise BadInput(path, "no header line: the first line holds numbers", "the names of the columns", "add one")


def no_row(path: str, row: str) -> BadInput:
    """The error for a table without rows."""
    return BadInput(path, "no row in it", f"at least one {row}", "export it again")


# --- CSV


@dataclass
class _Header:
    """The columns of a CSV file, and the positions of those that are wanted (all until they are known)."""

    names: list[str]
    delimiter: str
    wanted: list[int]


def _csv(path: str, limits: ReadLimits, choose: Choice, row: str, known: Collection[str]) -> Iterator[RowBatch]:
    header: _Header | None = None
    waiting, n_lines, is_selected = Block(1, b""), 0, False
    blocks = iter(read_blocks(path, limits))
    block = next(blocks, None)
    while block is not None:
        if header is None:
            header, block = _cut_header(path, block, known)
        following = next(blocks, None)
        joined = Block(block.first - waiting.data.count(b"\n"), waiting.data + block.data, block.refused)
        batch, waiting = _csv_batch(joined, header, limits.max_line_bytes, is_last=following is None)
        n_lines += len(batch.places) + len(batch.refused)
        batch = _without_empty(batch)
        if not is_selected:
            wanted = choose(batch.table)
            if wanted is not None:
                header.wanted = [header.names.index(name) for name in wanted]
                batch = RowBatch(batch.places, batch.table.select(header.wanted), batch.refused, batch.raw)
            is_selected = True
        yield batch
        block = following
    if not n_lines:
        raise BadInput(path, "no row in it", f"a header line and at least one {row}", "export it again")


def _cut_header(path: str, block: Block, known: Collection[str]) -> tuple[_Header, Block]:
    lines = block.data.split(b"\n")
    position = next((row for row, line in enumerate(lines) if not NO_HEADER.match(line)), 0)
    for place, reason, _ in block.refused:
        if place <= block.first + position:  # a row would be taken for the header
            raise BadInput(f"{path}, line {place}", reason, "the names of the columns in UTF-8")
    names, delimiter = split_header(lines[position].decode(), known)
    if BANNER.match(lines[position]):
        names, position = _below_banner(lines, position)
    rest = Block(block.first + position + 1, b"\n".join(lines[position + 1 :]), block.refused)
    return _Header(names, delimiter, list(range(len(names)))), rest


def _below_banner(lines: list[bytes], first: int) -> tuple[list[str], int]:
    """The names of dstat's columns, each behind its group, and the last line above the first row."""
    groups, names = [""], [""]
    for at, line in enumerate(lines[first : first + BANNER_LINES], first):
        cells = fields_of(line.decode(), ",")[0]
        if sum(number_of(cell) is not None for cell in cells) > len(cells) / 2:
            filled: Iterator[str] = accumulate(groups, lambda before, group: group or before)
            both = zip(filled, names, strict=False)
            return [name if name in OWN_NAMES else f"{group}.{name}" for group, name in both], at - 1
        if cells:
            groups, names = names, cells
    return names, first


def _without_empty(batch: RowBatch) -> RowBatch:
    """Without the rows that a spreadsheet leaves at its end: delimiters and nothing between them."""
    empty = np.ones(len(batch.places), dtype=bool)
    for column in batch.table.columns:
        if empty.any():
            empty &= np.asarray(pc.equal(pc.utf8_trim_whitespace(column), ""))
    if not empty.any() or batch.table.num_columns < 2:
        return batch
    kept = np.flatnonzero(~empty)
    return RowBatch(
        batch.places[kept], batch.table.take(pa.array(kept)), batch.refused, lambda row: batch.raw(int(kept[row]))
    )


def _csv_batch(block: Block, header: _Header, max_chars: int, *, is_last: bool) -> tuple[RowBatch, Block]:
    """The rows of a block, and its last lines if they end inside quotes."""
    n_lines = block.data.count(b"\n")
    table = _at_once(block.data, header) if block.data.count(QUOTE) % 2 == 0 else None
    if table is None or table.num_rows != n_lines:
        return _records_of_lines(block, header, max_chars, is_last=is_last)
    lines = cache(lambda: block.data.split(b"\n"))  # told apart when the first is asked for
    places = np.arange(block.first, block.first + n_lines)
    return RowBatch(places, table, refused_rows(block.refused), lambda row: lines()[row].decode()), Block(1, b"")


def _records_of_lines(block: Block, header: _Header, max_chars: int, *, is_last: bool) -> tuple[RowBatch, Block]:
    """The same where a record may have several lines.

    A line that is no record, alone or with lines that follow it, is refused alone: the next line starts anew."""
    lines, n_fields = block.data.decode().split("\n")[:-1], len(header.names)
    records: list[tuple[int, list[str], str]] = []
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
            records.append((block.first + row, fields, lines[row]))
            row += n_lines
        else:
            fault = "a quote that is not closed" if is_open else f"{len(fields)} fields; the header has {n_fields}"
            bad.append((block.first + row, fault, lines[row]))
            row += 1
    columns = [pa.array([fields[at] for _, fields, _ in records], pa.string()) for at in header.wanted]
    table = pa.Table.from_arrays(columns, names=[header.names[at] for at in header.wanted])
    places = np.array([place for place, _, _ in records], dtype="int64")
    refused = refused_rows([*block.refused, *bad])
    rest = "".join(f"{line}\n" for line in lines[row:])
    return RowBatch(places, table, refused, lambda at: records[at][2]), Block(block.first + row, rest.encode())


def _at_once(data: bytes, header: _Header) -> pa.Table | None:
    """All lines at once as text; None if one of them has not as many fields as the header."""
    if not data:
        return None
    unique = [str(position) for position in range(len(header.names))]  # names may repeat
    try:
        table = pacsv.read_csv(
            BytesIO(data),
            read_options=pacsv.ReadOptions(column_names=unique, use_threads=False, block_size=len(data) + 1),
            parse_options=pacsv.ParseOptions(delimiter=header.delimiter),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(unique, pa.string()), include_columns=[unique[at] for at in header.wanted]
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table.rename_columns([header.names[at] for at in header.wanted])


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


# --- Parquet


def check_size(path: str, metadata: pq.FileMetaData, limits: ReadLimits, row: str) -> None:
    """Raises BadInput if a Parquet file unpacks to more than it may, or has no row."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > limits.max_bytes:
        problem, fix = f"more than {limits.max_bytes:,} bytes unpacked", "split it, or raise read.limits.max_bytes"
        raise BadInput(path, problem, "a smaller file", fix)
    for column in (group.column(number) for group in groups for number in range(group.num_columns)):
        n_bytes = column.total_uncompressed_size
        if n_bytes > LARGE_COLUMN_BYTES and n_bytes > limits.max_ratio * column.total_compressed_size:
            problem = f"column '{column.path_in_schema}' unpacks to more than {limits.max_ratio:g} times its size"
            raise BadInput(path, problem, "an ordinary log", "look at it by hand, or raise read.limits.max_ratio")
    if not metadata.num_rows:
        raise no_row(path, row)


def _parquet(path: str, limits: ReadLimits, choose: Choice, row: str) -> Iterator[RowBatch]:
    with open_plain(path) as stream:
        try:
            file = pq.ParquetFile(stream, pre_buffer=False)
            if file.metadata.num_rows:
                sample = pa.Table.from_batches([next(file.iter_batches(SAMPLE_ROWS))], file.schema_arrow)
            else:
                sample = file.schema_arrow.empty_table()
            sample = flattened(sample)
            wanted = choose(sample)
            check_size(path, file.metadata, limits, row)
            names = sample.column_names if wanted is None else list(wanted)
            has_lists = any(pa.types.is_nested(sample.schema.field(name).type) for name in names)
            first, n_rows = 1, min(BATCH_ROWS, LIST_BATCH_ROWS) if has_lists else BATCH_ROWS
            for part in file.iter_batches(n_rows, columns=names):
                table = flattened(pa.Table.from_batches([part])).select(names)
                table.validate(full=True)  # text that is not UTF-8
                yield RowBatch(np.arange(first, first + len(table)), table, no_refusals(), partial(row_text, table))
                first += len(table)
        except parquet_faults() as error:
            raise damaged_parquet(path, error) from error


def _whole_parquet(path: str, limits: ReadLimits, row: str, as_codes: Sequence[str]) -> WholeTable:
    with open_plain(path) as stream:
        try:
            there = pq.read_schema(stream).names
            stream.seek(0)
            file = pq.ParquetFile(
                stream, pre_buffer=False, read_dictionary=[name for name in as_codes if name in there]
            )
            check_size(path, file.metadata, limits, row)
            table = file.read()
            table.validate(full=True)
        except parquet_faults() as error:
            raise damaged_parquet(path, error) from error
    places, raw = np.arange(1, len(table) + 1), partial(row_text, table)
    return WholeTable(path, table.column_names, table.columns, places, no_refusals(), raw, table.schema)


def flattened(table: pa.Table) -> pa.Table:
    """The table with the fields of its structs as columns with dotted names."""
    for _ in range(MOST_NESTED):
        if not any(pa.types.is_struct(field.type) for field in table.schema):
            break
        table = table.flatten()
    return table


def row_text(table: pa.Table, row: int) -> str:
    """The row at a position as JSON."""
    values = {name: _value(column[row]) for name, column in zip(table.column_names, table.columns, strict=True)}
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
        return [_value(element) for element in scalar.values]  # noqa: PD011
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(scalar[name]) for name in scalar}
    return f"{getattr(scalar, 'value', 'a value')} {scalar.type}"


# --- JSON


def json_records(path: str, limits: ReadLimits) -> Iterator[tuple[int, Record | None, str]]:
    """The entries of a JSON text with their numbers (of lines, where each is an object); None and why for one that is
    no object.

    Raises BadInput for a text that is damaged, holds no list of objects, or is a document of more than a gigabyte."""
    first = _first_line(path, limits)
    if first is not None:
        for lines in read_lines(path, limits):
            for place, reason, _ in lines.refused:
                yield place, None, reason
            for place, line in zip(lines.places, lines.lines, strict=True):
                if line.strip():
                    yield _line_record(place, line)
        return
    document = _document(path, limits)
    for place, (entry, around) in enumerate(_entries(path, document), 1):
        if isinstance(entry, dict):
            yield place, around | flat(entry), ""
        else:
            yield place, None, "not an object; expected one with the fields of a row"


def _first_line(path: str, limits: ReadLimits) -> Record | None:
    """The object in the first line of a text that has one in every line; None for any other JSON."""
    with open_checked(path, limits) as stream:
        head = stream.read(limits.max_line_bytes).removeprefix(UTF8_MARK).lstrip()
    line, newline, rest = head.partition(b"\n")
    try:
        entry = json_of(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and newline and rest.lstrip().startswith(b"{") else None


def _line_record(place: int, line: str) -> tuple[int, Record | None, str]:
    try:
        entry = json_of(line)
    except ValueError as error:
        return place, None, f"malformed JSON ({error})"
    return (place, flat(entry), "") if isinstance(entry, dict) else (place, None, "not an object")


def _document(path: str, limits: ReadLimits) -> Any:
    parts, n_bytes = [], 0
    with open_checked(path, limits) as stream:
        while block := stream.read(BLOCK_BYTES):
            parts.append(block)
            n_bytes += len(block)
            if n_bytes > DOCUMENT_BYTES:
                fix = "export it in parts, or as one object a line"
                raise BadInput(path, f"a JSON document of more than {DOCUMENT_BYTES:,} bytes", "a smaller one", fix)
    try:
        return json_of(b"".join(parts).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(path, "not UTF-8 text", "JSON in UTF-8", "convert it to UTF-8") from error
    except ValueError as error:
        problem = f"the JSON is damaged or cut off ({error})"
        raise BadInput(path, problem, "one whole export a file", "export it again, or split the file") from error


def _entries(path: str, document: Any) -> Iterator[tuple[Any, Record]]:
    """The entries of the longest list of objects in a document, and of all that are called as it is.

    Each comes with what stands around its list."""
    lists = list(_lists(document, "", {}, 0))
    if not lists and isinstance(document, dict):
        lists = [("", [document], {})]
    if not lists:
        expected = "a list of rows, or an object around one"
        raise BadInput(path, "JSON without a list of objects", expected, "export it again")
    called = max(lists, key=lambda named: sum(isinstance(entry, dict) for entry in named[1]))[0]
    for name, entries, around in lists:
        for entry in entries if name == called else ():
            key = next((key for key in INSIDE if isinstance(entry, dict) and isinstance(entry.get(key), list)), "")
            if key and all(isinstance(inner, dict) for inner in entry[key]):
                outer = {name: value for name, value in entry.items() if not isinstance(value, list | dict)}
                named = around | {f"{AROUND}{name}": _text(value) for name, value in outer.items()}
                yield from ((inner, named) for inner in entry[key])
            else:
                yield entry, around


def _lists(value: Any, name: str, around: Record, depth: int) -> Iterator[tuple[str, list[Any], Record]]:
    if isinstance(value, list) and (not value or any(isinstance(inner, dict) for inner in value)):
        yield name, value, around
    elif isinstance(value, dict) and depth < MOST_NESTED:
        outer = {key: inner for key, inner in value.items() if not any(True for _ in _lists(inner, key, {}, depth + 1))}
        named = around | {f"{AROUND}{key}": inner for key, inner in flat(outer).items()}
        for key, inner in value.items():
            yield from _lists(inner, key, named, depth + 1)


def flat(record: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Record:
    """The values of an object as texts (None: missing) by dotted names; a list of one text is that text."""
    values: Record = {}
    for name, value in record.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and depth < MOST_NESTED:
            values |= flat(value, f"{key}.", depth + 1)
        elif isinstance(value, list) and value and isinstance(value[0], dict) and depth < MOST_NESTED:
            values |= flat(value[0], f"{key}.0.", depth + 1)
            if isinstance(value[-1], dict):
                values |= flat(value[-1], f"{key}.-1.", depth + 1)
            true = [
                element
                for element in value
                if isinstance(element, dict) and element.get("status") == "True" and "type" in element
            ]
            if true:
                values |= {
                    f"{key}.type": _text(true[-1]["type"]),
                    f"{key}.at": _text(true[-1].get("lastTransitionTime")),
                }
        else:
            is_text = isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)
            values[key] = _text(value[0] if is_text else value)
    return values


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None else encodable(value)
    return (
        str(value).lower() if isinstance(value, bool) else encodable(json.dumps(value, ensure_ascii=False, default=str))
    )


def _json(path: str, limits: ReadLimits, choose: Choice, row: str) -> Iterator[RowBatch]:
    entries, names, n_rows = json_records(path, limits), None, 0
    while part := list(islice(entries, RECORDS)):
        records = [(place, record) for place, record, _ in part if record is not None]
        bad = refused_rows([(place, why, "") for place, record, why in part if record is None])
        if names is None:
            keys = list(dict.fromkeys(key for _, record in records for key in record))
            table = _table_of([record for _, record in records], keys)
            wanted = choose(table)
            names = keys if wanted is None else list(wanted)
        table = _table_of([record for _, record in records], names)
        places = np.array([place for place, _ in records], dtype=np.int64)
        n_rows += len(part)
        yield RowBatch(places, table, bad, partial(row_text, table))
    if not n_rows:
        raise no_row(path, row)


def _table_of(records: Sequence[Record], names: Sequence[str]) -> pa.Table:
    columns = [pa.array([record.get(name) for record in records], pa.string()) for name in names]
    return pa.Table.from_arrays(columns, names=list(names))
