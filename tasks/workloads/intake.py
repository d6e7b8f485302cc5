"""Telemetry on its way: from files to a landed batch or straight into memory, and from the warehouse into memory."""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import BadInput, quoting_nothing, report_progress
from tasks.intake import readers
from tasks.intake.files import Chunk, Preview, input_faults, preview_of
from tasks.intake.labels import absolute, manifest
from tasks.intake.pseudonyms import (
    HOST,
    ID_BYTES,
    PSEUDONYM_BYTES,
    hidden_options,
    hidden_path,
    load_key,
    pseudonym,
    replaced,
    without_reasons,
)
from tasks.intake.readers import REMOTE, files_below, origin_of, reader_called, sha256_of_all
from tasks.storage import storage_of
from tasks.warehouse import landing
from tasks.warehouse.connection import Connection, fetch_arrow
from tasks.warehouse.place import Warehouse
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import (
    COUNTERS_SCHEMA,
    EXPECTED,
    RUNS_SCHEMA,
    FileLabels,
    FileRun,
    PreparedRun,
    Reading,
    file_labels,
    prepare,
)
from tasks.workloads.readers import READERS, Reader, detect
from tasks.workloads.readers.sadf import run_path, section_files
from tasks.workloads.telemetry import Conditions, Counter, FloatArray, Telemetry

logger = logging.getLogger(__name__)
WORD = "workloads"
SMALL_BYTES = 2**20  # read in about a second whatever its format
PREPARING_VERSION = 1  # raise it when the same samples give other runs
FLAGGED = re.compile(r"(^|/)flagged-\d+\.parquet$")  # our recorder's parts of disturbed runs
PLAIN_ENDINGS = ("", ".txt", ".log", ".out", ".json")
HEAD_BYTES = 1 << 16
NAMES = {"run_id": ("run_id", ID_BYTES), "machine": (HOST, PSEUDONYM_BYTES)}  # columns that pseudonyms replace
DESCRIBED = ("counter", "unit", "kind", "is_rate", "scope")
DONE = ("n_rows", "n_missed", "n_resets", "is_resampled", "is_simulated", "place")  # of a PreparedRun
KEYS = ("run_id", "n_samples", "workload", "input", "round", "machine", "started_at", "interval_s")
CHOSEN = "source = $source AND ($run_ids IS NULL OR list_contains($run_ids, run_id))"
RUNS = f"SELECT {', '.join(KEYS)}, at_s, processes, conditions FROM workloads.runs WHERE {CHOSEN} ORDER BY run_id"
COUNTERS = (
    f"SELECT run_id, {', '.join(DESCRIBED)}, samples FROM workloads.counters WHERE {CHOSEN} ORDER BY run_id, counter"
)
NO_OPTION = ("limits", "prometheus", "manifest")  # whether and how a file is read, not what its runs are


Intake = readers.Intake[ReadParams]


def find_files(paths: list[str], manifest_file: str = "") -> list[str]:
    """The files behind the paths: a folder stands for the files in it that some reader knows, in order.

    A run whose sections lie in several files of sadf stands for all of them by the first.
    Disturbed runs of a recording (flagged-NNNN.parquet) are read where they are named, or stand alone.

    Without paths, those of the manifest. Raises BadInput for a path that does not exist and for a folder without a
    readable file."""
    if not paths and manifest_file:
        paths = [entry["path"] for entry in manifest(manifest_file, EXPECTED)]
    files: list[str] = []
    for path in paths:
        files += [path] if path.startswith(REMOTE) else _files_in(path, absolute(manifest_file))
    return list(dict.fromkeys(path if path.startswith(REMOTE) else section_files(path)[0] for path in files))


def _files_in(path: str, apart_from: str) -> list[str]:
    endings = tuple(ending for reader in READERS.values() for ending in reader.endings)

    def telemetry(names: list[str]) -> list[str]:
        files = [name for name in names if name.lower().endswith(endings) or _is_plainly_ours(name)]
        files = [name for name in files if absolute(name) != apart_from]
        undisturbed = [name for name in files if not FLAGGED.search(name)]
        if undisturbed and len(undisturbed) < len(files):
            logger.info("%s: left out %d files of disturbed runs (flagged-…)", path, len(files) - len(undisturbed))
        return undisturbed or files

    return files_below(path, "telemetry", telemetry, ", ".join(endings))


def _is_plainly_ours(name: str) -> bool:
    """Whether a file whose name says little holds what only telemetry begins with, such as sar's own sar26."""
    path = Path(name)
    if path.suffix.lower() not in PLAIN_ENDINGS or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return any(reader.sniff(head, name) for reader in READERS.values() if reader.name != "wide")


@dataclass(frozen=True)
class TelemetryRead:
    """runs: in the order of the files. n_rows, n_refused: rows of the files behind runs, and those that no run could be
    made of. data_sha256: of the files' contents, in order."""

    runs: list[Telemetry]
    n_rows: int
    n_refused: int
    data_sha256: str


def read_telemetry(paths: Sequence[str], params: ReadParams, reader: str = "") -> TelemetryRead:
    """All runs of the files, in memory; a run id that two files give is told apart by the path.

    Raises BadInput for a file that is wrong as a whole, and where no run can be used."""
    files = find_files(list(paths), params.manifest)
    runs: list[Telemetry] = []
    taken: set[str] = set()
    reasons: list[str] = []
    n_rows = n_refused = 0
    digest = hashlib.sha256()
    for done, path in enumerate(files):
        report_progress("reading telemetry", done, len(files))
        prepared, refused = read_file(path, params, reader)
        reasons += refused["reason"].head(1).to_list()
        of_file = [telemetry.telemetry for telemetry in prepared]
        n_rows, n_refused = n_rows + sum(telemetry.n_rows for telemetry in prepared), n_refused + len(refused)
        by_id = {run.run_id: run for run in of_file}
        digest.update((_sha256_of(by_id) if path.startswith(REMOTE) else sha256_of(path)).encode())
        for run in of_file:
            run_id = run.run_id if run.run_id not in taken else f"{absolute(path)}/{run.run_id}"
            taken.add(run_id)
            runs.append(replace(run, run_id=run_id))
    if not runs:
        why = f": {reasons[0]}" if reasons else ""
        where = ", ".join(paths) or params.manifest
        raise BadInput(where, f"no run in it that can be used{why}", "telemetry", "read.regular says what is too short")
    logger.info("read %d runs of %d files, %d rows refused", len(runs), len(files), n_refused)
    return TelemetryRead(runs, n_rows, n_refused, digest.hexdigest())


def read_file(path: str, params: ReadParams, reader: str = "") -> tuple[list[PreparedRun], Any]:
    """The runs of one file, and the frame of its refused rows (place, reason, raw)."""
    labels = labels_of(path, params)
    with input_faults(path):
        return prepare(_reader(path, reader, params).read(path, params), labels, params.regular)


def labels_of(path: str, params: ReadParams) -> FileLabels:
    """What is known of the runs of a file; of a run in several, by what their names share and by the manifest."""
    files = [path] if path.startswith(REMOTE) else section_files(path)
    if len(files) == 1:
        return file_labels(path, params)
    about, by_manifest = file_labels(run_path(files), params), params.model_copy(update={"label_from": ""})
    listed = [file_labels(file, by_manifest) for file in files]
    labels = {key: value for of_file in listed for key, value in of_file.labels.items()}
    by_run = {key: value for of_file in listed for key, value in of_file.by_run.items()}
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
            sha256 = _sha256_of({repr((run.part, run.labels)): run for run in reading.runs})
            chunks = _chunks(path, intake.read, lambda: reading, key)
        else:
            sha256 = sha256_of(path)
            chunks = _chunks(path, intake.read, lambda: reader.read(path, intake.read), key)
        options, shown = _options(path, intake.read), path.partition("?")[0] if path.startswith(REMOTE) else path
        options, shown = (hidden_options(options, key), hidden_path(absolute(path), key)) if key else (options, shown)
        schemas, most = {"runs": RUNS_SCHEMA, "counters": COUNTERS_SCHEMA}, intake.read.limits.max_refused_share
        origin = origin_of(WORD, intake.source, reader, PREPARING_VERSION, options, shown, sha256)
        return landing.land(warehouse.landing_folder, origin, schemas, chunks, path=path, max_refused_share=most)


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
        parsed = reading()
        runs, refused = prepare(parsed, labels, read.regular)
    report_progress(f"reading {path}", sum(run.n_rows for run in runs) + len(refused))
    chunk = as_chunk(runs, refused)
    if not key:
        yield replace(chunk, understood=parsed.understood)
        return
    rows = replaced(chunk.rows, NAMES, key)

    def nameless(conditions: Any) -> Any:
        if not isinstance(conditions, dict):
            return conditions  # missing
        subject = conditions["subject"] and pseudonym(conditions["subject"], "subject", key)
        return {**conditions, "recording": "", "subject": subject}

    # what is said of columns that are no counters names them; programs and groups are called as one likes
    if len(rows):
        none: list[Any] = [[] for _ in range(len(rows))]
        conditions = list(map(nameless, chunk.rows["conditions"]))
        rows = rows.assign(refused_columns=none, processes=None, conditions=conditions)
    counters = {name: replaced(table, NAMES, key) for name, table in chunk.tables.items()}
    yield Chunk(rows, without_reasons(chunk.refused), counters)


def _options(path: str, read: ReadParams) -> dict[str, Any]:
    """What changes the runs that a file gives: parameters as far as they differ, its name, and its labels."""
    about = labels_of(path, read)
    described = {"run_id": about.run_id, "labels": about.labels, "by_run": about.by_run}
    return {
        **read.model_dump(exclude=set(NO_OPTION), exclude_defaults=True),
        **{k: v for k, v in described.items() if v},
    }


def _reader(path: str, name: str, params: ReadParams) -> Reader:
    return reader_called(path, name, READERS, lambda: detect(path, params.limits))


def _sha256_of(runs: Mapping[str, FileRun | Telemetry]) -> str:
    """Hash of what an address gave, which has no bytes of its own. runs: by what tells them apart."""
    digest = hashlib.sha256()
    for name, run in runs.items():
        digest.update(repr((name, run.started_at, run.counters)).encode())
        digest.update(run.at_s.tobytes() + run.values.tobytes())  # noqa: PD011
    return digest.hexdigest()


def as_chunk(runs: Sequence[PreparedRun], refused: pd.DataFrame) -> Chunk:
    """The rows of workloads.runs and workloads.counters that stand for these runs."""
    if not runs:
        return Chunk(pd.DataFrame(), refused, {})
    return Chunk(_framed(_runs(runs)), refused, {"counters": _framed(_counters(runs))})


def _runs(runs: Sequence[PreparedRun]) -> pa.Table:
    of_runs = [run.telemetry for run in runs]
    columns = {
        **{name: [getattr(telemetry, name) for telemetry in of_runs] for name in KEYS},
        "duration_s": [None if telemetry.interval_s is None else telemetry.duration_s for telemetry in of_runs],
        **{name: [getattr(run, name) for run in runs] for name in DONE},
        "refused_columns": [list(run.refused) for run in runs],
        "at_s": _lists([telemetry.at_s for telemetry in of_runs]),
        "processes": [json.dumps(dict(telemetry.processes)) if telemetry.processes else None for telemetry in of_runs],
        "conditions": [telemetry.conditions and asdict(telemetry.conditions) for telemetry in of_runs],
    }
    return pa.table({name: columns[name] for name in RUNS_SCHEMA.names}, schema=RUNS_SCHEMA)


def _counters(runs: Sequence[PreparedRun]) -> pa.Table:
    pairs = [(run, at, counter) for run in runs for at, counter in enumerate(run.telemetry.counters)]
    columns = {
        "run_id": [run.telemetry.run_id for run, _, _ in pairs],
        "counter": [counter.name for _, _, counter in pairs],
        **{name: [getattr(counter, name) for _, _, counter in pairs] for name in DESCRIBED[1:]},
        "is_constant": [bool(run.is_constant[at]) for run, at, _ in pairs],
        "running_pct": pa.array([run.running_pct[at] for run, at, _ in pairs], pa.float64(), from_pandas=True),
        "samples": _lists([run.telemetry.values[:, at] for run, at, _ in pairs]),  # noqa: PD011
        "place": [run.place for run, _, _ in pairs],
    }
    return pa.table({name: columns[name] for name in COUNTERS_SCHEMA.names}, schema=COUNTERS_SCHEMA)


def _lists(arrays: Sequence[FloatArray]) -> pa.ListArray:
    """Lists of numbers, NaN as missing."""
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int32)
    flat = pa.array(np.concatenate(arrays), pa.float64(), from_pandas=True)
    return pa.ListArray.from_arrays(pa.array(offsets), flat)


def _framed(table: pa.Table) -> pd.DataFrame:
    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names})


def as_telemetry(runs: pa.Table, counters: pa.Table) -> list[Telemetry]:
    """Runs from the rows of both tables, in the order of the first; counters must be ordered by run, then name.

    Runs of one campaign have the same counters: their descriptions are made once."""
    at_s, _ = _flat(runs["at_s"])
    samples, offsets = _flat(counters["samples"])
    about = list(zip(*(counters[name].to_pylist() for name in DESCRIBED), strict=True))
    run_of = counters["run_id"].combine_chunks().dictionary_encode()
    names, codes = run_of.dictionary.to_pylist(), np.asarray(run_of.indices)
    edges = np.concatenate([np.flatnonzero(np.diff(codes, prepend=-1)), [len(codes)]]).tolist()
    rows_of = {names[codes[start]]: (start, stop) for start, stop in pairwise(edges)}
    known: dict[tuple[object, ...], tuple[Counter, ...]] = {}
    rows = zip(*(runs[key].to_pylist() for key in ("processes", "conditions", *KEYS)), strict=True)
    telemetry, first = [], 0
    for processes, conditions, run_id, n_samples, *rest in rows:
        start, stop = rows_of[run_id]
        described = tuple(about[start:stop])
        if described not in known:
            known[described] = tuple(Counter(*fields) for fields in described)
        values = samples[offsets[start] : offsets[stop]].reshape(stop - start, n_samples)
        times = at_s[first : first + n_samples]
        first += n_samples
        run = Telemetry(run_id, known[described], times, np.ascontiguousarray(values.T), *rest)
        under = Conditions(**conditions) if conditions else None
        telemetry.append(replace(run, processes=json.loads(processes or "{}"), conditions=under))
    return telemetry


def _flat(column: pa.ChunkedArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """The values of a column of lists, one after the other (missing ones are NaN), and where each list begins."""
    lists = column.combine_chunks()
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    lengths = np.asarray(lists.value_lengths()) if len(lists) else np.zeros(0, dtype=np.int64)
    return flat, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def fetch_runs(warehouse: Warehouse, source: str, run_ids: Sequence[str] | None = None) -> list[Telemetry]:
    """The runs of a source, or those with these ids, ordered by run id, their counters by name.

    The connection is closed before the runs are put together. Raises NoWarehouse, WarehouseBusy."""
    values = {"source": source, "run_ids": None if run_ids is None else list(run_ids)}
    return as_telemetry(*fetch_arrow(warehouse, [RUNS, COUNTERS], values))


def read_runs(connection: Connection, source: str, run_ids: Sequence[str]) -> list[Telemetry]:
    """The same over a connection that is open."""
    parameters = {"source": source, "run_ids": list(run_ids)}
    return as_telemetry(*(connection.sql(sql, params=parameters).to_arrow_table() for sql in (RUNS, COUNTERS)))
