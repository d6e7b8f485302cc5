"""From files of benchmark results to a landed batch: find what is to be read, read it, write it down once.

The folder of a recording is read without the parts of disturbed executions (flagged-NNNN.parquet); their names read
them. Nodes and ids of files whose names say nothing beyond them begin with the name of the file."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput, quoting_nothing, report_progress
from tasks.intake import readers
from tasks.intake.files import Chunk, Preview, guarded, preview_of, read_head
from tasks.intake.labels import absolute
from tasks.intake.pseudonyms import (
    HOST,
    ID_BYTES,
    PSEUDONYM_BYTES,
    hidden_options,
    hidden_path,
    load_key,
    replaced,
    without_reasons,
)
from tasks.intake.readers import Folder, origin_of, reader_called
from tasks.nodes.execution import SCHEMAS
from tasks.nodes.params import ReadParams
from tasks.nodes.readers import READERS, Reader, detect
from tasks.nodes.readers.labels import labelled, node_of, read_manifest, short_names
from tasks.nodes.readers.logs import ENDINGS as LOG_ENDINGS
from tasks.nodes.readers.logs import log_names
from tasks.params import ReadLimits
from tasks.storage import storage_of
from tasks.warehouse import landing
from tasks.warehouse.faults import storage_faults
from tasks.warehouse.landing import Batch
from tasks.warehouse.place import Warehouse

FLAGGED = re.compile(r"(^|/)flagged-\d+\.parquet$")  # our recorder's parts of executions that were to be repeated
UNDISTURBED = re.compile(r"(^|/)executions-\d+\.parquet$")
NODES_OF = "nodes_of"  # option of a batch: what its names begin with
LOCAL = ("node", "execution_id")
logger = logging.getLogger(__name__)
WORD = "nodes"
VETTING_VERSION = 1  # raise it when the same rows give other executions whatever the reader
NAMED_BY_PATH = ("logs", "sparecores")  # readers that call executions after folders and files
PARTS_THAT_NAME = 3
NAMES = {"node": (HOST, PSEUDONYM_BYTES), "execution_id": ("execution_id", ID_BYTES)}  # that pseudonyms replace
NO_OPTION = ("limits", "manifest")  # whether and how a file is read, not what its executions are


Intake = readers.Intake[ReadParams]


def find_files(paths: list[str], manifest_file: str = "") -> list[str]:
    """What is to be read, one after the other: files, and folders that are one thing (SpareCores, or full of logs).

    Any other folder stands for the tables and databases in it, in order, and itself where logs are among them. Without
    paths, the files of the manifest. Parts of disturbed executions of a recording (flagged-NNNN.parquet) are read where
    they are named, or stand alone. Raises BadInput for a path that does not exist and for a folder without a file
    that can be read."""
    if not paths and manifest_file:
        paths = list(read_manifest(ReadParams(manifest=manifest_file)).entries)
    files: list[str] = []
    for path in paths:
        files += _files_in(path, absolute(manifest_file) if manifest_file else "")
    return list(dict.fromkeys(files))


def left_out_line(paths: Sequence[str]) -> str:
    """The line for parts that are left out of folders among the paths; empty for none. A path need not be there."""
    n_files = sum(len(names) - len(without_disturbed(names)) for names in (Folder(path).names() for path in paths))
    parts = "1 part" if n_files == 1 else f"{n_files:,} parts"
    return f"left out {parts} of disturbed executions (flagged-…); name them to read them" if n_files else ""


def without_disturbed(files: Sequence[str]) -> list[str]:
    """The files without flagged-NNNN.parquet where parts executions-NNNN.parquet lie in the same folder."""
    recordings = {file.rpartition("/")[0] for file in files if UNDISTURBED.search(file)}
    return [file for file in files if not (FLAGGED.search(file) and file.rpartition("/")[0] in recordings)]


def land_executions(
    warehouse: Warehouse, path: str, intake: Intake, known: list[landing.Batch] | None = None
) -> landing.Batch:
    """Read one file or folder into the landing folder; what was read before in the same way is found there.

    known: the batches that are there, for callers that land many files. Nodes and ids of a file whose names say nothing
    beyond it begin with its name.
    Raises BadInput for a file that is wrong as a whole; single bad rows go to the quarantine."""
    with quoting_nothing(intake.read.pseudonymise):
        key = load_key(warehouse.home) if intake.read.pseudonymise else None
        reader = reader_of(path, intake.reader, intake.read)
        sha256 = sha256_of(path, intake.read)
        options, chunks = _options(path, reader, intake.read), chunks_of(path, reader, intake.read)
        options, shown = (hidden_options(options, key), hidden_path(absolute(path), key)) if key else (options, path)
        with storage_faults(warehouse.landing_folder):
            there = landing.batches(warehouse.landing_folder, WORD) if known is None else known
        if reader.has_local_nodes and (name := name_in_source(there, intake.source, shown, sha256)):
            options, chunks = options | {NODES_OF: name}, prefixed(chunks, name)
        chunks = _without_names(chunks, key) if key else chunks
        origin = origin_of(WORD, intake.source, reader, VETTING_VERSION, options, shown, sha256)
        most, folder = intake.read.limits.max_refused_share, warehouse.landing_folder
        return landing.land(folder, origin, SCHEMAS, chunks, path=path, max_refused_share=most, known=there)


def preview_executions(home: Path, path: str, intake: Intake) -> Preview:
    """Read one file or folder as an ingest would, and count. Raises BadInput for one that is wrong as a whole."""
    with quoting_nothing(intake.read.pseudonymise):
        key = load_key(home, is_kept=False) if intake.read.pseudonymise else None
        reader = reader_of(path, intake.reader, intake.read)
        chunks = chunks_of(path, reader, intake.read)
        return preview_of(WORD, path, reader.name, _without_names(chunks, key) if key else chunks)


def begin_executions(path: str, intake: Intake) -> tuple[str, ...]:
    """What was understood of a file or folder, by its first executions. Raises BadInput for one that is wrong."""
    with quoting_nothing(intake.read.pseudonymise):
        chunk = next(chunks_of(path, reader_of(path, intake.reader, intake.read), intake.read), None)
    return chunk.understood if chunk and not intake.read.pseudonymise else ()


def chunks_of(path: str, reader: Reader, params: ReadParams) -> Iterator[Chunk]:
    """What a reader finds in a file or folder, part by part."""
    n_rows, chunks, manifest = 0, reader.read(path, params), read_manifest(params)
    if reader.name != "logs" and manifest.entries:  # a log is told by nothing but the manifest: its reader asks it
        chunks = labelled(chunks, path, manifest)
    for chunk in guarded(path, chunks):
        n_rows += len(chunk.rows) + len(chunk.refused)
        report_progress(f"reading {path}", n_rows)
        yield chunk


def reader_of(path: str, name: str, params: ReadParams) -> Reader:
    """The reader of this name, or the one that the path is for. Raises BadInput if there is none."""
    return reader_called(path, name, READERS, lambda: detect(path, params.limits, params.columns))


def sha256_of(path: str, params: ReadParams) -> str:
    """Hash of a file's bytes; of a folder, over names and contents of the files that are read."""
    folder = Folder(path)
    if not folder.is_folder:
        return landing.sha256_of(path)
    is_tree = READERS["sparecores"].sniff(b"", path)
    return folder.sha256(folder.names() if is_tree else log_names(folder, params))


def name_in_source(batches: Sequence[Batch], source: str, path: str, sha256: str) -> str:
    """What the names of a file begin with in a source.

    batches: that are landed, in their order. The same bytes, and the same path with other bytes (a later export), keep
    the name that they had. Another file gets the shortest end of its path that no other file of the source has."""
    known = [batch for batch in batches if batch.origin.source == source]
    same = [batch for batch in known if batch.origin.sha256 == sha256]
    same = same or [batch for batch in known if absolute(batch.origin.path) == absolute(path)]
    if same:
        return str(same[-1].origin.options.get(NODES_OF, ""))
    used = {name for batch in known for name in short_names(batch.origin.path)}
    names = short_names(path)
    return next((name for name in names if name not in used), names[-1])


def prefixed(chunks: Iterator[Chunk], name: str) -> Iterator[Chunk]:
    """The chunks with nodes and execution ids that begin with a name."""
    for chunk in chunks:
        tables = {table: _named(rows, name) for table, rows in chunk.tables.items()}
        yield replace(chunk, rows=_named(chunk.rows, name), tables=tables)


def _named(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    columns = {}
    for column in LOCAL:
        if column in rows:
            named = pa.array([f"{name}/{text}" for text in rows[column]], pa.string())
            columns[column] = pd.arrays.ArrowExtensionArray(pa.chunked_array([named]))
    return rows.assign(**columns) if columns else rows


def _files_in(path: str, apart_from: str) -> list[str]:
    fs, root = storage_of(path)
    if not fs.exists(root):
        raise BadInput(path, "no such file or folder", "results of benchmarks", "check the path")
    if not fs.isdir(root):
        return [path]
    folder = Folder(path)
    if READERS["sparecores"].sniff(b"", path):
        return [path]
    names = [name for name in folder.names() if absolute(folder.address(name)) != apart_from]
    endings = tuple(ending for reader in READERS.values() for ending in reader.endings if ending not in LOG_ENDINGS)
    tables = [folder.address(name) for name in names if name.lower().endswith(endings)]
    files = without_disturbed(tables)
    if len(files) < len(tables):
        logger.info("%s: left out %d parts of disturbed executions (flagged-…)", path, len(tables) - len(files))
    for name in names:
        with suppress(BadInput):
            is_named = name.lower().endswith(LOG_ENDINGS)
            if is_named and READERS["logs"].sniff(read_head(folder.address(name), ReadLimits()), name):
                files.append(path)
                break
    if not files:
        expected = f"files that end in {', '.join(sorted({*endings, *LOG_ENDINGS}))}"
        raise BadInput(path, f"{len(names)} files, none with results of benchmarks", expected, "name one")
    return files


def _without_names(chunks: Iterator[Chunk], key: bytes) -> Iterator[Chunk]:
    """The chunks with pseudonyms, and without what tools printed and how they were called: both may hold names."""
    for chunk in chunks:
        rows = replaced(chunk.rows, NAMES, key)
        tables = {name: replaced(table, NAMES, key) for name, table in chunk.tables.items() if name != "logs"}
        yield Chunk(rows.drop(columns="template", errors="ignore"), without_reasons(chunk.refused), tables)


def _options(path: str, reader: Reader, read: ReadParams) -> dict[str, Any]:
    """What changes the executions that a file gives: parameters as far as they differ, and what the manifest says."""
    options: dict[str, Any] = read.model_dump(exclude=set(NO_OPTION), exclude_defaults=True)
    if node := node_of(path, read):
        options["node"] = node
    manifest = read_manifest(read)
    whole = absolute(path).rstrip("/")
    file_entries = {
        name.removeprefix(whole): [{key: value for key, value in entry.items() if key != "path"} for entry in entries]
        for name, entries in manifest.entries.items()
        if name == whole or name.startswith(f"{whole}/")
    }
    options |= {"manifest": file_entries} if file_entries else {}
    if reader.name in NAMED_BY_PATH:
        options["path"] = "/".join(whole.split("/")[-PARTS_THAT_NAME:])
    return options
