"""Chunks on disk while the hash of all of them is still unknown: an address gives its rows once, and only in order."""

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput
from tasks.reading import Chunk

LENGTH_BYTES = 8


class Spool:
    """A file that has no name, so that a killed process leaves nothing, and is gone when the block ends.

    A chunk is its frames as Arrow streams: rows, refused, then tables with their names, closed by an empty name."""

    def __init__(self, folder: Path, where: str, *, max_bytes: int) -> None:
        """folder: on the disk that has the room; where: what an error names; max_bytes: of all chunks together."""
        self.folder, self.where, self.max_bytes = folder, where, max_bytes
        self.digest = hashlib.sha256()

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=self.folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    @property
    def sha256(self) -> str:
        """Hash of the rows and refused lines so far, as JSON: it does not depend on the version of a library."""
        return self.digest.hexdigest()

    def write(self, chunk: Chunk) -> None:
        """Add a chunk. Raises BadInput if all of them are larger than max_bytes."""
        self.digest.update(chunk.rows.to_json(orient="values", date_format="iso").encode())
        self.digest.update(chunk.refused.to_json(orient="values").encode())
        for name, frame in (("rows", chunk.rows), ("refused", chunk.refused), *chunk.tables.items()):
            self._put(name.encode())
            self._put(_packed(frame))
        self._put(b"")
        if self.file.tell() > self.max_bytes:
            raise BadInput(
                self.where,
                f"more than {self.max_bytes:,} bytes of rows",
                "a shorter history",
                "raise read.limits.max_bytes",
            )

    def read(self) -> Iterator[Chunk]:
        """The chunks in the order in which they were written, one in memory at a time."""
        self.file.seek(0)
        frames: dict[str, pd.DataFrame] = {}
        while length := self.file.read(LENGTH_BYTES):
            if name := self.file.read(int.from_bytes(length)).decode():
                frames[name] = _unpacked(self.file.read(int.from_bytes(self.file.read(LENGTH_BYTES))))
            else:
                rows, refused, tables, frames = frames.pop("rows"), frames.pop("refused"), frames, {}
                yield Chunk(rows, refused, tables)

    def _put(self, part: bytes) -> None:
        self.file.write(len(part).to_bytes(LENGTH_BYTES) + part)


def _packed(frame: pd.DataFrame) -> bytes:
    table, sink = pa.Table.from_pandas(frame, preserve_index=False), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes) -> pd.DataFrame:
    with pa.ipc.open_stream(packed) as stream:
        # pandas cannot read its own metadata of lists
        frame: pd.DataFrame = stream.read_all().to_pandas(ignore_metadata=True, types_mapper=_list_type)
        return frame


def _list_type(kind: pa.DataType) -> pd.ArrowDtype | None:
    return pd.ArrowDtype(kind) if pa.types.is_list(kind) else None
