"""The steps of fingerprints: keys in, keys out. Only the first and the last touch the warehouse.

What one step hands to the next are paths in the landing folder, so that the step between may run on any machine that
reaches it. A run is done again only where its key has changed: its samples, or how they are cut.

    part-<hash>.parquet      some runs with the same counters, with all that decides their phases
    phases-<hash>.parquet    what was made of it, as workloads.phases has it; counter missing: phases of the workload

The hash is that of the keys of the runs, and a key that of a run's samples and of how it is cut. So a part whose phases
are there is not cut again."""

import hashlib
import io
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput, NotFound
from tasks.storage import storage_of
from tasks.warehouse.connection import fetch, reading, transaction, writing
from tasks.warehouse.landing import put_whole
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version
from tasks.workloads.identify.counters import columns_of, giveaway_of
from tasks.workloads.intake import fetch_runs
from tasks.workloads.models import WORD
from tasks.workloads.params import FanOutParams
from tasks.workloads.telemetry import Counter, Telemetry

logger = logging.getLogger(__name__)
PARTS = "fingerprints"  # folder beside those of the words
FOLDER_CHARS = 12
LEFT_OVER_S = 7 * 86_400  # a killed run may still be continued for a week
VERSION = 2  # raise it when the same samples give other phases
KEY_CHARS = 16
HOW = b"whorl.how"
KEYS = "SELECT DISTINCT run_id, key FROM workloads.run_phases WHERE source = $source ORDER BY run_id"
GONE = "run_id NOT IN (SELECT run_id FROM workloads.runs WHERE source = $source)"
REPLACED = f"source = $source AND (list_contains($run_ids, run_id) OR {GONE})"


class Plan(TypedDict):
    """What is to be done. parts: paths; n_runs: of the source; n_done: that have the phases of these parameters."""

    parts: list[str]
    n_runs: int
    n_done: int
    data_version: str


def plan_fingerprints(warehouse: Warehouse, source: str, fan_out: FanOutParams) -> Plan:
    """Find the runs of a source whose phases are missing or old, and write them into part files.

    A run is cut on all of its counters but the give-aways. Raises NotFound for a source without runs."""
    with reading(warehouse) as connection:
        version = data_version(connection, WORD, source)
    runs = fetch_runs(warehouse, source)
    if not runs:
        raise NotFound(no_runs(warehouse, source))
    kept = fetch(warehouse, KEYS, {"source": source})
    known, folder = dict(zip(kept["run_id"], kept["key"], strict=True)), _folder(warehouse, source)
    _remove_kept(folder, set(known.values()))
    waiting: dict[tuple[Counter, ...], list[tuple[str, Telemetry]]] = {}
    for run in runs:
        counters = tuple(counter for counter in run.counters if not giveaway_of(counter))
        if not counters:
            logger.warning("run %s has no counter but give-aways: no fingerprint", run.run_id)
        elif known.get(run.run_id) != (key := key_of(run, counters)):
            waiting.setdefault(counters, []).append((key, run))
    size = fan_out.runs_per_part
    parts = [
        _write_part(folder, some[first : first + size], counters)
        for counters, some in waiting.items()
        for first in range(0, len(some), size)
    ]
    n_waiting = sum(map(len, waiting.values()))
    logger.info("%d of %d runs of source %s have no fingerprint yet", n_waiting, len(runs), source)
    return Plan(parts=parts, n_runs=len(runs), n_done=len(runs) - n_waiting, data_version=version)


def cut_phases(part: str) -> str:
    """Find and summarise the phases of the runs of a part; returns the path of the file that holds them.

    Needs no warehouse; phases that are there already are not found again. Raises BadInput for a part that is gone or
    damaged."""
    started = time.perf_counter()
    target = phases_path(part)
    fs, there = storage_of(target)
    if not fs.exists(there):
        table = read_part_file(part)
        counters = tuple(Counter(**fields) for fields in json.loads(table.schema.metadata[HOW])["counters"])
        rows: list[dict[str, Any]] = []
        for row in range(table.num_rows):
            run_id, key = table["run_id"][row].as_py(), table["key"][row].as_py()
            samples = table["values"][row].values.to_numpy(zero_copy_only=False).reshape(-1, len(counters))
            run = Telemetry(run_id, counters, np.arange(float(len(samples))), samples)
            rows += [{"run_id": run_id, "key": key, **phase} for phase in phases_of(run, counters)]
        _write(target, pa.Table.from_pylist(rows, schema=phases_schema()))
    logger.info("cut %s in %.1f s", part.rpartition("/")[2], time.perf_counter() - started)
    return target


def keep_phases(warehouse: Warehouse, source: str, path: str) -> int:
    """Write the phases of a part to the warehouse, in the place of those that the runs had; returns how many runs.

    Phases of runs that the source does not have any more go as well."""
    rows = read_part_file(path)
    run_ids = sorted(set(rows["run_id"].to_pylist()))
    about = {"source": source, "run_ids": run_ids}
    with writing(warehouse) as connection, transaction(connection):
        connection.register("new_rows", rows)
        for table, columns, rows_of in (
            ("phases", "*", "counter IS NOT NULL ORDER BY run_id, counter, phase"),
            ("run_phases", "run_id, key, phase, start_sample, end_sample", "counter IS NULL ORDER BY run_id, phase"),
        ):
            connection.execute(f"DELETE FROM workloads.{table} WHERE {REPLACED}", about).fetchall()
            kept = f"SELECT $source AS source, {columns} FROM new_rows WHERE {rows_of}"
            connection.execute(f"INSERT INTO workloads.{table} BY NAME {kept}", {"source": source}).fetchall()
        connection.unregister("new_rows")
    logger.info("the phases of %d runs of source %s are in the warehouse", len(run_ids), source)
    return len(run_ids)


def clear_parts(parts: Sequence[str]) -> int:
    """Remove part files whose phases are in the warehouse; returns how many files went."""
    n_removed = 0
    for part in parts:
        for path in (part, phases_path(part)):
            fs, there = storage_of(path)
            if fs.exists(there):
                fs.rm(there)
                n_removed += 1
    return n_removed


def no_runs(warehouse: Warehouse, source: str) -> str:
    """The line for a source without runs of workloads."""
    rows = fetch(warehouse, "SELECT DISTINCT source FROM workloads.runs ORDER BY source")
    some = ", ".join(repr(str(name)) for name in rows["source"]) or "none; fill one with 'whorl workloads ingest FILE'"
    return f"source {source!r} has no runs of workloads; sources that have some: {some}"


def phases_path(part: str) -> str:
    """The file of the phases that are made of a part."""
    folder, _, name = part.rpartition("/")
    return f"{folder}/{name.replace('part-', 'phases-', 1)}"


def key_of(run: Telemetry, counters: Sequence[Counter]) -> str:
    """Hash of the samples of a run and of how it is cut: what its phases depend on."""
    digest = hashlib.sha256(_as_json(counters).encode())
    digest.update(np.ascontiguousarray(columns_of(run, [counter.name for counter in counters])).tobytes())
    return digest.hexdigest()[:KEY_CHARS]


def phases_of(run: Telemetry, counters: Sequence[Counter]) -> list[dict[str, Any]]:
    """The phases of a run, those of its counters and those of the workload: rows without run and key.

    probability: of the change that begins a phase, by the method of change points; none for the first."""
    from tasks.workloads.changepoints.finding import find_changepoints
    from tasks.workloads.identify.phases import (
        ADF,
        OF_PHASES,
        STATISTICS,
        UNDETERMINED,
        fingerprints_of,
        logarithm_of_rates,
    )

    [made] = fingerprints_of([run], counters)
    values = logarithm_of_rates(
        columns_of(run, [counter.name for counter in counters]), [counter.is_rate for counter in counters]
    )
    rows = []
    for counter, bounds, summaries, column in zip(made.counters, made.bounds, made.summaries, values.T, strict=True):
        places: dict[int, float] = {}
        if len(bounds) > 2:
            changes = find_changepoints(column[:, None], OF_PHASES)
            places = dict(zip(changes.indices.tolist(), changes.probabilities.tolist(), strict=True))
        for phase, summary in zip(_phases(bounds), summaries.tolist(), strict=True):
            figures = dict(zip(STATISTICS, summary, strict=True))
            figures["adf"] = None if summary[ADF] == UNDETERMINED else summary[ADF]
            probability = places.get(phase["start_sample"], np.nan)
            figures["probability"] = None if np.isnan(probability) else probability
            rows.append(phase | {"counter": counter, **figures})
    return [*rows, *_phases(made.workload_bounds)]


def _phases(bounds: "np.ndarray[Any, Any]") -> list[dict[str, Any]]:
    edges = pairwise(bounds.tolist())
    return [{"phase": at, "start_sample": start, "end_sample": end} for at, (start, end) in enumerate(edges, 1)]


def phases_schema() -> pa.Schema:
    """The columns of a file of phases."""
    from tasks.workloads.identify.phases import STATISTICS

    return pa.schema(
        [
            ("run_id", pa.string()), ("key", pa.string()), ("counter", pa.string()), ("phase", pa.int32()),
            ("start_sample", pa.int64()), ("end_sample", pa.int64()), ("probability", pa.float64()),
            *((name, pa.float64()) for name in STATISTICS),
        ]
    )  # fmt: skip


def read_part_file(path: str) -> pa.Table:
    """One file of either kind. Raises BadInput if it is not there, or damaged."""
    fs, name = storage_of(path)
    try:
        with fs.open(name, "rb") as stream:
            return pq.read_table(pa.BufferReader(stream.read()))
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise BadInput(path, f"cannot be read ({error})", "a part of this run", "run it anew, not continued") from error


def _as_json(counters: Sequence[Counter]) -> str:
    """All that decides the phases of a run beside its samples."""
    described = [asdict(counter) for counter in counters]
    return json.dumps({"version": VERSION, "counters": described})


def _write_part(folder: str, runs: Sequence[tuple[str, Telemetry]], counters: Sequence[Counter]) -> str:
    """Write runs that have these counters, with their keys; returns the path. Twice is the same as once."""
    keys = [key for key, _ in runs]
    path = f"{folder}/part-{hashlib.sha256(','.join(keys).encode()).hexdigest()[:KEY_CHARS]}.parquet"
    fs, name = storage_of(path)
    if not fs.exists(name):
        names = [counter.name for counter in counters]
        table = pa.table(
            {
                "run_id": pa.array([run.run_id for _, run in runs], pa.string()),
                "key": pa.array(keys, pa.string()),
                "values": [columns_of(run, names).ravel() for _, run in runs],
            }
        )
        _write(path, table.replace_schema_metadata({HOW: _as_json(counters).encode()}))
    return path


def _write(path: str, table: pa.Table) -> None:
    """A file that appears whole or not at all."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    fs, name = storage_of(path)
    fs.makedirs(name.rpartition("/")[0], exist_ok=True)
    put_whole(fs, name, buffer.getvalue())


def _folder(warehouse: Warehouse, source: str) -> str:
    """The folder of the parts of a source; its name may hold anything."""
    name = hashlib.sha256(source.encode()).hexdigest()[:FOLDER_CHARS]
    return f"{warehouse.landing_folder}/{PARTS}/{name}"


def _remove_kept(folder: str, keys: set[str]) -> None:
    """Parts whose phases are in the warehouse, of runs that were killed before they cleared up; and very old ones."""
    fs, root = storage_of(folder)
    if not fs.exists(root):
        return
    for entry in fs.ls(root, detail=True):
        path = fs.unstrip_protocol(entry["name"]).removeprefix("file://")
        changed = entry.get("mtime") or entry.get("created")
        seconds = changed.timestamp() if isinstance(changed, datetime) else changed
        is_old = seconds is not None and datetime.now(UTC).timestamp() - float(seconds) > LEFT_OVER_S
        if not is_old and path.endswith(".parquet"):
            try:
                is_old = set(read_part_file(path)["key"].to_pylist()) <= keys
            except (BadInput, KeyError):  # a damaged one goes
                is_old = True
        if is_old:
            fs.rm(entry["name"])
