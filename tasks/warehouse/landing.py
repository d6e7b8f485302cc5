"""Landing files: immutable Parquet named by content hash, and a manifest that makes a batch of them exist.

    landing/<word>/runs-<sha256>.parquet  quarantine-<sha256>.parquet  <batch id>.json

The manifest is written last, so a killed reader leaves files that nothing names, and no half batch. Times in the
manifests only ever grow, also where this machine's clock goes back: they say which file came after which."""

import hashlib
import json
import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, ValidationError

from tasks.errors import BadInput
from tasks.intake.files import Chunk, Tally, input_faults, open_plain
from tasks.params import Params, first_fault
from tasks.storage import narrow, private, storage_of
from tasks.warehouse.faults import storage_faults


def present_columns(frame: pd.DataFrame, schema: pa.Schema) -> pa.Schema:
    """The columns that a file has: writing others, missing in every row, would take a third of the time again."""
    return pa.schema([field for field in schema if field.name in frame])


def encodings(schema: pa.Schema) -> dict[str, Any]:
    """How columns are packed: measured on a million job runs, half the time and half the size of the defaults."""
    ids = {field.name: "DELTA_BYTE_ARRAY" for field in schema if field.name.endswith("_id")}
    kinds = {path: kind for field in schema for path, kind in _leaves(field.name, field.type) if path not in ids}
    ordered = [name for name, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_timestamp(kind)]
    return {
        "compression": "zstd",
        "use_dictionary": [name for name, kind in kinds.items() if pa.types.is_string(kind)],
        "column_encoding": ids | dict.fromkeys(ordered, "DELTA_BINARY_PACKED"),
    }


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns as Parquet has them: a list of structs is one for each field."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, kind


def as_arrow(frame: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """The frame in the types of the schema; a column that it lacks is missing in every row."""
    present = present_columns(frame, schema)
    table = pa.Table.from_pandas(frame[present.names], schema=present, preserve_index=False)
    columns = [table[field.name] if field.name in frame else pa.nulls(len(frame), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


QUARANTINE_SCHEMA = pa.schema([("place", pa.int64()), ("reason", pa.string()), ("raw", pa.string())])
ID_CHARS = 16
HASH_BLOCK_BYTES = 4 * 1024 * 1024
TICK = timedelta(microseconds=1)
MANIFESTS_KEPT = 10_000  # in memory, some 2 kB each
SCRATCH = ".reading-"  # prefix of the folder that holds what is being read


class LandedFile(Params):
    """One Parquet file of a batch."""

    name: str = Field(pattern=r"^[a-z_]+-[0-9a-f]{16}\.parquet$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    n_rows: int


class Origin(Params):
    """What was read, by whom and how: the identity of a batch."""

    word: str
    source: str
    reader: str
    reader_version: str
    options: dict[str, Any]
    path: str
    sha256: str

    @property
    def batch_id(self) -> str:
        """Hash of everything but the path: the same bytes read in the same way are the same batch."""
        identity = json.dumps(self.model_dump(exclude={"path"}), sort_keys=True)
        return hashlib.sha256(identity.encode()).hexdigest()[:ID_CHARS]

    @property
    def file_key(self) -> tuple[str, str, str, str]:
        """What stays when reader version or options change: the newest batch of a file replaces the others."""
        return self.word, self.source, self.reader, self.sha256


class Batch(Params):
    """The manifest of one file that was read: its tables and its counts.

    ordered_at: when this file was first read, whatever the version: later files update earlier rows. understood: what
    its columns were taken for, in words."""

    batch_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    origin: Origin
    landed_at: datetime
    ordered_at: datetime
    tables: dict[str, LandedFile]
    understood: list[str] = Field([])

    @property
    def n_quarantined(self) -> int:
        """Rows that the reader refused (repeated ids come on top at ingest)."""
        return self.tables["quarantine"].n_rows


def sha256_of(path: str) -> str:
    """Hash of the bytes of a file, local or anything fsspec reaches. Raises BadInput if it cannot be read."""
    digest = hashlib.sha256()
    with open_plain(path) as stream, input_faults(path):
        while block := stream.read(HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def land(
    folder: str,
    origin: Origin,
    schemas: dict[str, pa.Schema],
    chunks: Iterable[Chunk],
    *,
    path: str = "",
    max_refused_share: float = 1,
    now: datetime | None = None,
    known: Sequence[Batch] | None = None,
) -> Batch:
    """Write the chunks of one file to the landing folder; returns its manifest.

    schemas: the main table first, then those in Chunk.tables; a batch has those columns that its first chunk
    has. known: the batches that are there, for callers that land many files and look only once. Memory stays that of
    one chunk. A batch that is there already is not read again: it is returned as it is, or, if the file was read in
    another way meanwhile, put last, so that this way counts again. path: what
    the user calls the file, if the origin calls it by a pseudonym. Raises BadInput, and keeps nothing, if more than
    max_refused_share of the rows of the file is refused."""
    fs, root = storage_of(f"{folder}/{origin.word}")
    shown = path or origin.path
    with storage_faults(root), private():
        fs.makedirs(root, exist_ok=True)
        if is_local(fs):
            narrow(Path(root))
        known = batches(folder, origin.word) if known is None else known
        same_file = [batch for batch in known if batch.origin.file_key == origin.file_key]
        landed_at = max(
            [(now or datetime.now(UTC)).replace(tzinfo=None), *(earlier.landed_at + TICK for earlier in known)]
        )
        there = next(
            (earlier for earlier in same_file if earlier.batch_id == origin.batch_id and _is_whole(fs, root, earlier)),
            None,
        )
        if there and there.landed_at == max(earlier.landed_at for earlier in same_file):
            return there
        tally = Tally(origin.word)
        vetted = _required(tally, shown, origin.reader, chunks, max_refused_share)
        batch = Batch(
            batch_id=origin.batch_id,
            origin=there.origin if there else origin,
            landed_at=landed_at,
            ordered_at=min([landed_at, *(earlier.ordered_at for earlier in same_file)]),
            tables=there.tables if there else _land_tables(fs, root, shown, schemas, vetted),
            understood=there.understood if there else tally.understood,
        )
        put_whole(fs, f"{root}/{batch.batch_id}.json", batch.model_dump_json(indent=1).encode())
    return batch


def _required(
    tally: Tally, path: str, reader: str, chunks: Iterable[Chunk], max_refused_share: float
) -> Iterator[Chunk]:
    yield from tally.counted(chunks)
    tally.preview(path, reader).require(max_refused_share)


def _is_whole(fs: Any, root: str, batch: Batch) -> bool:
    """Whether the files of a batch are there; on a local disk also whether they are what the manifest says."""
    paths = {f"{root}/{landed.name}": landed.sha256 for landed in batch.tables.values()}
    return all(fs.exists(path) and (not is_local(fs) or sha256_of(path) == digest) for path, digest in paths.items())


def is_local(fs: Any) -> bool:
    """Whether a file system is this machine's own."""
    return "file" in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,))


def _land_tables(
    fs: Any, root: str, path: str, schemas: dict[str, pa.Schema], chunks: Iterable[Chunk]
) -> dict[str, LandedFile]:
    """Write beside the landing files where they are local (/tmp may be memory), and put what is whole in place."""
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=root if is_local(fs) else None) as scratch:
        n_rows = _write_tables(Path(scratch), path, {**schemas, "quarantine": QUARANTINE_SCHEMA}, chunks)
        return {name: _publish(fs, root, name, Path(scratch) / f"{name}.parquet", n) for name, n in n_rows.items()}


def _write_tables(scratch: Path, path: str, schemas: dict[str, pa.Schema], chunks: Iterable[Chunk]) -> dict[str, int]:
    n_rows = dict.fromkeys(schemas, 0)
    main = next(iter(schemas))
    with ExitStack() as stack:
        writers: dict[str, pq.ParquetWriter] = {}

        def open_writer(name: str, schema: pa.Schema) -> None:
            file = scratch / f"{name}.parquet"
            writers[name] = stack.enter_context(pq.ParquetWriter(file, schema, **encodings(schema)))

        for chunk in chunks:
            frames = {main: chunk.rows, "quarantine": chunk.refused, **chunk.tables}
            for name, frame in frames.items():
                if len(frame):
                    present = present_columns(frame, schemas[name])
                    if name not in writers:
                        open_writer(name, present)
                    if late := set(present.names) - set(writers[name].schema.names):
                        raise ValueError(f"{name}: {', '.join(sorted(late))} not in the first chunk of the file")
                    with input_faults(path):
                        table = as_arrow(frame, writers[name].schema)
                    writers[name].write_table(table)
                    n_rows[name] += len(frame)
        for name in schemas:
            if name not in writers:
                open_writer(name, schemas[name])
    return n_rows


def _publish(fs: Any, root: str, table: str, local: Path, n_rows: int) -> LandedFile:
    digest = sha256_of(str(local))
    name = f"{table}-{digest[:ID_CHARS]}.parquet"
    if is_local(fs):
        _move(local, Path(root) / name)
    else:
        fs.put_file(str(local), f"{root}/{name}")
    return LandedFile(name=name, sha256=digest, n_rows=n_rows)


def put_whole(fs: Any, target: str, content: bytes) -> None:
    """Put a file in place in one step; object stores do so by themselves, a local folder by renaming."""
    if not is_local(fs):
        fs.pipe_file(target, content)
        return
    draft = Path(f"{target}.{uuid.uuid4().hex}.part")
    draft.write_bytes(content)
    _move(draft, Path(target))


def _move(draft: Path, target: Path) -> None:
    """Rename a written file; its content is on the disk first."""
    with draft.open("rb") as written:
        os.fsync(written.fileno())
    draft.replace(target)


def batches(folder: str, word: str) -> list[Batch]:
    """All manifests of a word, in the order of their files. Raises BadInput for a manifest that cannot be read."""
    fs, root = storage_of(f"{folder}/{word}")
    fs.invalidate_cache()  # another machine may have landed files meanwhile
    if not fs.exists(root):
        return []
    names = [name for name in fs.ls(root, detail=False) if str(name).endswith(".json")]
    read = _unchanged_manifest if is_local(fs) else _manifest
    manifests = [batch for name in names if (batch := read(fs, str(name))) is not None]
    return sorted(manifests, key=lambda batch: (batch.ordered_at, batch.batch_id))


def _unchanged_manifest(fs: Any, name: str) -> Batch | None:
    """One manifest on a local disk, read again only if it was replaced: each landing looks at all of them."""
    try:
        now = Path(name).stat()
    except FileNotFoundError:
        return None
    return _manifest_of(fs, name, now.st_ino, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=MANIFESTS_KEPT)
def _manifest_of(fs: Any, name: str, inode: int, changed_ns: int, n_bytes: int) -> Batch | None:  # noqa: ARG001
    return _manifest(fs, name)


def _manifest(fs: Any, name: str) -> Batch | None:
    """One manifest; None if it is not there (any more)."""
    fix = "remove it and read its file again"
    try:
        batch = Batch.model_validate_json(fs.cat_file(name))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise BadInput(name, f"not a manifest ({first_fault(error)})", "what whorl wrote there", fix) from error
    *_, word, file = name.split("/")
    if (batch.origin.word, f"{batch.batch_id}.json") != (word, file):
        problem = f"is the manifest of batch {batch.batch_id} of {batch.origin.word!r}"
        raise BadInput(name, problem, "that of the batch whose name it has", fix)
    return batch


def live_batches(folder: str, word: str) -> list[Batch]:
    """The batches that count: of each file the one that was read last."""
    newest: dict[tuple[str, ...], Batch] = {}
    for batch in sorted(batches(folder, word), key=lambda batch: (batch.landed_at, batch.batch_id)):
        newest[batch.origin.file_key] = batch
    return sorted(newest.values(), key=lambda batch: (batch.ordered_at, batch.batch_id))


def find_batch(folder: str, word: str, batch_id: str) -> Batch:
    """One manifest. Raises BadInput if the landing folder has no such batch."""
    fs, root = storage_of(f"{folder}/{word}")
    if (batch := _manifest(fs, f"{root}/{batch_id}.json")) is None:
        raise BadInput(f"{folder}/{word}", f"no batch {batch_id}", "a landed batch", "read the file again")
    return batch


@contextmanager
def local_file(folder: str, batch: Batch, table: str) -> Iterator[Path]:
    """A local path to one Parquet file of a batch, fetched if the landing folder is elsewhere.

    Raises BadInput if the file is missing or is not what the manifest says."""
    landed = batch.tables[table]
    fs, root = storage_of(f"{folder}/{batch.origin.word}")
    path = f"{root}/{landed.name}"
    if not fs.exists(path):
        raise BadInput(
            path, "the landing file is missing", "the file that the manifest names", f"read {batch.origin.path} again"
        )
    with ExitStack() as stack:
        local = Path(path)
        if not is_local(fs):
            local = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="whorl-landing-"))) / landed.name
            fs.get_file(path, str(local))
        if sha256_of(str(local)) != landed.sha256:
            raise BadInput(
                path,
                "the landing file has changed",
                f"sha256 {landed.sha256[:12]}",
                f"remove it and read {batch.origin.path} again",
            )
        yield local
