"""A file or folder as one thing to read: tables of any columns, folders with a hash of all their files."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.errors import BadInput, headless, quoted
from tasks.intake.files import (
    PARQUET_FAULTS,
    damaged_parquet,
    no_refusals,
    open_plain,
)
from tasks.intake.limits import ReadLimits
from tasks.nodes.execution import record_of
from tasks.storage import ADDRESS, storage_of
from tasks.warehouse.landing import sha256_of
from tasks.workloads.readers.tables import read_csv, split_header

MAGIC = b"PAR1"
UTF8_MARK = b"\xef\xbb\xbf"
EMPTY_CSV = "Empty CSV file"  # what Arrow says of a header line without rows


@dataclass(frozen=True)
class TableFile:
    """columns: by their names in the file; those of a name that stands there twice are in `twice`.

    places: (n,), rows or lines of the file from 1. refused: lines that are no rows. raw: the row at a position, as
    text. is_simulated: the file says so of itself."""

    path: str
    columns: Mapping[str, pa.ChunkedArray]
    twice: frozenset[str]
    places: NDArray[np.int64]
    refused: pd.DataFrame
    raw: Callable[[int], str]
    is_simulated: bool = False


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
    first = next((line for line in head.removeprefix(UTF8_MARK).splitlines() if line.strip()), b"")
    return [] if first.startswith((b"{", b"[", b"<")) else split_header(first.decode("utf-8", "replace"))[0]


def parquet_schema(path: str) -> pa.Schema:
    """The columns of a Parquet file. Raises BadInput for a damaged one."""
    with open_plain(path) as stream:
        try:
            return pq.read_schema(stream)
        except PARQUET_FAULTS as error:
            raise damaged_parquet(path, error) from error


def read_table_file(path: str, limits: ReadLimits, *, as_codes: Sequence[str] = ()) -> TableFile:
    """The whole file. as_codes: columns of few texts, kept as codes where it is Parquet.

    Raises BadInput for a damaged one, one without rows and one that is too large."""
    return _from_parquet(path, limits, as_codes) if is_parquet(path) else _from_csv(path, limits)


def choose_columns(
    table: TableFile, known: Collection[str], needed: Sequence[tuple[str, ...]], renamed: Mapping[str, str]
) -> dict[str, pa.ChunkedArray]:
    """Our columns of a table. known: all that there can be; needed: of each group one. renamed: ours to theirs.

    Raises BadInput if one that is needed is missing or stands there twice, or is renamed from or to nowhere."""
    names = list(table.columns)
    for ours, theirs in renamed.items():
        if ours not in known:
            raise BadInput(table.path, f"cannot map '{theirs}' to '{ours}'", f"one of {', '.join(known)}", "mend --map")
        if theirs not in names:
            problem = f"no column '{theirs}' to read '{ours}' from"
            raise BadInput(table.path, problem, f"one of {quoted(names)}", "mend --map")
    taken = set(renamed.values())
    chosen = {
        name: renamed.get(name, name) for name in known if name in renamed or (name in names and name not in taken)
    }
    for theirs in chosen.values():
        if theirs in table.twice:
            problem = f"the column '{theirs}' stands there twice"
            raise BadInput(table.path, problem, "each column once", "export it again")
    missing = [group for group in needed if not any(name in chosen for name in group)]
    if missing:
        raise BadInput(
            table.path,
            f"no column {' and no '.join(' or '.join(group) for group in missing)} among {quoted(names)}",
            "the columns " + ", ".join(" or ".join(group) for group in needed),
            headless(names) or f"name yours, as in --map {missing[0][0]}=THEIRS",
        )
    return {ours: table.columns[theirs] for ours, theirs in chosen.items()}


def too_large(path: str, limits: ReadLimits) -> BadInput:
    """The error for a file that unpacks to more than it may."""
    problem = f"more than {limits.max_bytes:,} bytes unpacked"
    return BadInput(path, problem, "a smaller file", "split it, or raise read.limits.max_bytes")


def check_size(path: str, metadata: pq.FileMetaData, limits: ReadLimits) -> None:
    """Raises BadInput if a Parquet file unpacks to more than it may, or has no row."""
    if sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups)) > limits.max_bytes:
        raise too_large(path, limits)
    if not metadata.num_rows:
        raise _no_row(path)


def _no_row(path: str) -> BadInput:
    return BadInput(path, "no row in it", "at least one execution", "export it again")


def _from_parquet(path: str, limits: ReadLimits, as_codes: Sequence[str]) -> TableFile:
    with open_plain(path) as stream:
        try:
            there = pq.read_schema(stream).names
            stream.seek(0)
            codes = [name for name in as_codes if name in there]
            file = pq.ParquetFile(stream, pre_buffer=False, read_dictionary=codes)
            check_size(path, file.metadata, limits)
            table = file.read()
            table.validate(full=True)
        except PARQUET_FAULTS as error:
            raise damaged_parquet(path, error) from error

    def raw(row: int) -> str:
        return json.dumps(table.slice(row, 1).to_pylist()[0], default=str)

    columns = _by_name(table.column_names, table.columns)
    places = np.arange(1, table.num_rows + 1)
    is_simulated = record_of(table.schema).get("is_simulated") is True
    return TableFile(path, columns, _twice(table.column_names), places, no_refusals(), raw, is_simulated)


def _from_csv(path: str, limits: ReadLimits) -> TableFile:
    try:
        rows = read_csv(path, limits)
    except BadInput as error:
        raise _no_row(path) if EMPTY_CSV in error.problem else error from error
    columns = _by_name(rows.names, rows.columns)
    return TableFile(path, columns, _twice(rows.names), rows.places, rows.refused, rows.raw)


def _by_name(names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
    """Columns in their order, of those of one name the first."""
    found: dict[str, pa.ChunkedArray] = {}
    for name, column in zip(names, columns, strict=True):
        found.setdefault(name, column)
    return found


def _twice(names: Sequence[str]) -> frozenset[str]:
    return frozenset(name for name in names if names.count(name) > 1)


@dataclass(frozen=True)
class Folder:
    """A folder on this machine or anywhere fsspec reaches; a file is a folder with nothing in it."""

    path: str

    @cached_property
    def _found(self) -> tuple[str, tuple[str, ...]]:
        """The folder's path in its storage, and the names of all files below it, in order."""
        fs, root = storage_of(self.path)
        root = str(root).rstrip("/")
        if not fs.isdir(root):
            return root, ()
        return root, tuple(sorted(str(name).removeprefix(f"{root}/") for name in fs.find(root)))

    @property
    def is_folder(self) -> bool:
        """Whether there is such a folder with files below it."""
        return bool(self._found[1])

    def names(self) -> tuple[str, ...]:
        """Files below it, as paths within it, in order."""
        return self._found[1]

    def holds(self, path: str) -> bool:
        """Whether this path within it is a file."""
        return path in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._found[1])

    def absolute(self, path: str) -> str:
        """The whole path of a path within it, without the address of its storage."""
        return f"{self._found[0]}/{path}"

    def address(self, path: str) -> str:
        """What opens a path within it."""
        fs, _ = storage_of(self.path)
        return str(fs.unstrip_protocol(self.absolute(path))) if ADDRESS in self.path else self.absolute(path)

    def text(self, path: str, most_bytes: int) -> str:
        """The text of a file, what is not UTF-8 replaced. Raises BadInput for one that is larger."""
        with open_plain(self.address(path)) as stream:
            data = stream.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise BadInput(self.absolute(path), f"more than {most_bytes:,} bytes", "a smaller file", "take it out")
        return str(data.decode("utf-8", "replace"))

    def sha256(self, names: tuple[str, ...] = ()) -> str:
        """Hash over names and contents of its files, or of some of them."""
        digest = hashlib.sha256()
        for name in names or self.names():
            digest.update(f"{name}\0{sha256_of(self.address(name))}\n".encode())
        return digest.hexdigest()
