"""From files of telemetry to a landed batch, or straight into memory."""

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasks.errors import quoting_nothing
from tasks.intake.files import Chunk, input_faults
from tasks.intake.labels import absolute, manifest
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
from tasks.intake.readers import REMOTE, Landing, files_below, reader_called, sha256_of_all
from tasks.intake.tally import Preview, preview_of
from tasks.progress import report_progress
from tasks.storage import storage_of
from tasks.warehouse import landing
from tasks.warehouse.place import Warehouse
from tasks.workloads.landed import as_chunk
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import (
    COUNTERS_SCHEMA,
    EXPECTED,
    RUNS_SCHEMA,
    FileLabels,
    Prepared,
    Reading,
    file_labels,
    prepare,
)
from tasks.workloads.readers import READERS, Reader, detect
from tasks.workloads.readers.sadf import run_path, section_files
from tasks.workloads.telemetry import Telemetry

logger = logging.getLogger(__name__)
WORD = "workloads"
SMALL_BYTES = 2**20  # read in about a second whatever its format
PREPARING_VERSION = 1  # raise it when the same samples give other runs
FLAGGED = re.compile(r"(^|/)flagged-\d+\.parquet$")  # our recorder's parts of disturbed runs
NAMES = {"run_id": ("run_id", ID_BYTES), "machine": (HOST, PSEUDONYM_BYTES)}  # columns that pseudonyms replace
NO_OPTION = ("limits", "prometheus", "manifest")  # whether and how a file is read, not what its runs are


@dataclass(frozen=True)
class Intake:
    """How telemetry is to be read. reader: a name from READERS, or empty to find it out."""

    source: str
    reader: str
    read: ReadParams


def find_files(paths: list[str], manifest_file: str = "") -> list[str]:
    """The files behind the paths: a folder stands for the files in it that some reader knows, in order.

    A run whose sections lie in several files of sadf stands for all of them by the first.
    Disturbed runs of a recording (flagged-NNNN.parquet) are read where they are named, or stand alone.

    Without paths, those of the manifest. Raises BadInput for a path that does not exist and for a folder without a
    readable file."""
    if not paths and manifest_file:
        paths = [entry["path"] for entry in manifest(manifest_file, EXPECTED)]
    found: list[str] = []
    for path in paths:
        found += [path] if path.startswith(REMOTE) else _files_in(path, absolute(manifest_file))
    return list(dict.fromkeys(path if path.startswith(REMOTE) else section_files(path)[0] for path in found))


def _files_in(path: str, apart_from: str) -> list[str]:
    endings = tuple(ending for reader in READERS.values() for ending in reader.endings)

    def telemetry(names: list[str]) -> list[str]:
        files = [name for name in names if name.lower().endswith(endings) and absolute(name) != apart_from]
        undisturbed = [name for name in files if not FLAGGED.search(name)]
        if undisturbed and len(undisturbed) < len(files):
            logger.info("%s: left out %d files of disturbed runs (flagged-…)", path, len(files) - len(undisturbed))
        return undisturbed or files

    return files_below(path, "telemetry", telemetry, ", ".join(endings))


def read_telemetry(paths: Sequence[str], params: ReadParams, reader: str = "") -> list[Telemetry]:
    """All runs of the files, in memory and in the order of the paths; what was refused is only counted.

    A run id that two files give is told apart by the path. Raises BadInput for a file that is wrong as a whole."""
    runs: list[Telemetry] = []
    taken: set[str] = set()
    for path in find_files(list(paths), params.manifest):
        prepared, _ = read_file(path, params, reader)
        for one in (run.telemetry for run in prepared):
            run_id = one.run_id if one.run_id not in taken else f"{absolute(path)}/{one.run_id}"
            taken.add(run_id)
            runs.append(replace(one, run_id=run_id))
    return runs


def read_file(path: str, params: ReadParams, reader: str = "") -> tuple[list[Prepared], Any]:
    """The runs of one file, and the frame of its refused rows (place, reason, raw)."""
    labels = labels_of(path, params)
    with input_faults(path):
        return prepare(_reader(path, reader, params).read(path, params), labels, params.regular)


def labels_of(path: str, params: ReadParams) -> FileLabels:
    """What is known of the runs of a file; of a run in several, by what their names share and by the manifest."""
    files = [path] if path.startswith(REMOTE) else section_files(path)
    if len(files) == 1:
        return file_labels(path, params)
    about, told = file_labels(run_path(files), params), params.model_copy(update={"label_from": ""})
    listed = [file_labels(file, told) for file in files]
    labels = {key: value for one in listed for key, value in one.labels.items()}
    by_run = {key: value for one in listed for key, value in one.by_run.items()}
    return FileLabels(about.run_id, about.labels | labels, by_run)


def sha256_of(path: str) -> str:
    """Hash of a file; of a run in several, of all of them."""
    return sha256_of_all(section_files(path))


def begin_telemetry(path: str, intake: Intake) -> tuple[str, ...]:
    """What was understood of a small file, read as an ingest would; a large one is read in its turn.

    Raises BadInput for a file that is wrong as a whole."""
    with quoting_nothing(intake.read.pseudonymise):
        reader = _reader(path, intake.reader, intake.read)
        fs, place = storage_of(path)
        if (fs.size(place) or 0) <= SMALL_BYTES:
            labels = labels_of(path, intake.read)
            with input_faults(path):
                reading = reader.read(path, intake.read)
                prepare(reading, labels, intake.read.regular)
            return () if intake.read.pseudonymise else reading.understood
    return ()


def land_telemetry(warehouse: Warehouse, path: str, intake: Intake) -> landing.Batch:
    """Read one file into the landing folder; the same file read in the same way is found there and not read again.

    Raises BadInput for a file that is wrong as a whole; single bad rows go to the quarantine."""
    with quoting_nothing(intake.read.pseudonymise):
        key = load_key(warehouse.home) if intake.read.pseudonymise else None
        reader = _reader(path, intake.reader, intake.read)
        if path.startswith(REMOTE):
            with input_faults(path):
                reading = reader.read(path, intake.read)
            sha256, chunks = _sha256_of(reading), _chunks(path, intake.read, lambda: reading, key)
        else:
            sha256 = sha256_of(path)
            chunks = _chunks(path, intake.read, lambda: reader.read(path, intake.read), key)
        options, shown = _options(path, intake.read), path.partition("?")[0] if path.startswith(REMOTE) else path
        options, shown = (hidden_options(options, key), hidden_path(absolute(path), key)) if key else (options, shown)
        schemas, most = {"runs": RUNS_SCHEMA, "counters": COUNTERS_SCHEMA}, intake.read.limits.max_refused_share
        found = Landing(WORD, intake.source, reader, PREPARING_VERSION, options, shown, sha256, chunks)
        return found.land(warehouse, schemas, path, most)


def preview_telemetry(home: Path, path: str, intake: Intake) -> Preview:
    """Read one file as an ingest would, and count. Raises BadInput for a file that is wrong as a whole."""
    with quoting_nothing(intake.read.pseudonymise):
        key = load_key(home, is_kept=False) if intake.read.pseudonymise else None
        reader = _reader(path, intake.reader, intake.read)
        return preview_of(
            WORD, path, reader.name, _chunks(path, intake.read, lambda: reader.read(path, intake.read), key)
        )


def _chunks(path: str, read: ReadParams, reading: Callable[[], Reading], key: bytes | None) -> Iterator[Chunk]:
    labels = labels_of(path, read)
    with input_faults(path):
        found = reading()
        runs, refused = prepare(found, labels, read.regular)
    report_progress(f"reading {path}", sum(run.n_rows for run in runs) + len(refused))
    chunk = as_chunk(runs, refused)
    if not key:
        yield replace(chunk, understood=found.understood)
        return
    rows = replaced(chunk.rows, NAMES, key)
    if len(rows):  # what is said of columns that are no counters names them
        none: list[Any] = [[] for _ in range(len(rows))]
        rows = rows.assign(refused_columns=none)
    counters = {name: replaced(table, NAMES, key) for name, table in chunk.tables.items()}
    yield Chunk(rows, without_reasons(chunk.refused), counters)


def _options(path: str, read: ReadParams) -> dict[str, Any]:
    """What changes the runs that a file gives: parameters as far as they differ, its name, and its labels."""
    about = labels_of(path, read)
    told = {"run_id": about.run_id, "labels": about.labels, "by_run": about.by_run}
    return {**read.model_dump(exclude=set(NO_OPTION), exclude_defaults=True), **{k: v for k, v in told.items() if v}}


def _reader(path: str, name: str, params: ReadParams) -> Reader:
    return reader_called(path, name, READERS, lambda: detect(path, params.limits))


def _sha256_of(reading: Reading) -> str:
    """Hash of what an address gave: it has no bytes of its own."""
    digest = hashlib.sha256()
    for run in reading.runs:
        digest.update(repr((run.part, run.labels, run.started_at, run.counters)).encode())
        digest.update(run.at_s.tobytes() + run.values.tobytes())
    return digest.hexdigest()
