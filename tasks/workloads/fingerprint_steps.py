"""The steps of fingerprints: keys in, keys out. Only the first and the last touch the warehouse.

What one step hands to the next are paths in the landing folder, so that the step between may run on any machine that
reaches it. A run is done again only where its key has changed: its samples, or how they are cut."""

import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

from tasks.errors import BadInput, NotFound
from tasks.storage import storage_of
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion
from tasks.warehouse.versions import data_version
from tasks.workloads.champions import KIND, WORD, champion_of
from tasks.workloads.fan_out_params import FanOutParams
from tasks.workloads.identify.params import FingerprintParams
from tasks.workloads.stored import fetch_runs
from tasks.workloads.telemetry import Telemetry

if TYPE_CHECKING:
    from tasks.workloads.identify.fingerprinting import FingerprintMaker

logger = logging.getLogger(__name__)
PARTS = "fingerprints"  # folder beside those of the words
FOLDER_CHARS = 12
LEFT_OVER_S = 7 * 86_400  # a killed run may still be continued for a week


class Plan(TypedDict):
    """What is to be done. parts: paths; n_runs: of the source; n_done: that have the phases of these parameters.

    scale: model whose scale and counters are used, or empty where they were learned from the runs of the source."""

    parts: list[str]
    n_runs: int
    n_done: int
    data_version: str
    scale: str


def plan_fingerprints(warehouse: Warehouse, source: str, fingerprint: FingerprintParams, fan_out: FanOutParams) -> Plan:
    """Find the runs of a source whose phases are missing or old, and write them into part files.

    Raises NotFound for a source without runs, BadInput where the runs have no counter in common."""
    from tasks.workloads.phase_parts import as_json, key_of, narrowed, write_part
    from tasks.workloads.phase_rows import known_keys

    with reading(warehouse) as connection:
        version = data_version(connection, WORD, source)
    runs = fetch_runs(warehouse, source)
    if not runs:
        raise NotFound(no_runs(warehouse, source))
    how, scale = _maker(warehouse, source, fingerprint, runs)
    known = known_keys(warehouse, source)
    folder = _folder(warehouse, source)
    _remove_kept(folder, set(known.values()))
    waiting: dict[tuple[str, ...], list[tuple[str, Telemetry]]] = {}
    told: dict[tuple[str, ...], str] = {}  # runs of one campaign have the same counters
    for run in runs:
        its_own = narrowed(how, run.names)
        if not its_own.counters:
            logger.warning("run %s has none of the counters that the others share: no fingerprint", run.run_id)
            continue
        if its_own.names not in told:
            told[its_own.names] = as_json(its_own)
        key = key_of(run, its_own, told[its_own.names])
        if known.get(run.run_id) != key:
            waiting.setdefault(its_own.names, []).append((key, run))
    parts = [
        write_part(folder, some, narrowed(how, names))
        for names, all_of_them in waiting.items()
        for some in _in_parts(all_of_them, fan_out.runs_per_part)
    ]
    n_waiting = sum(map(len, waiting.values()))
    logger.info("%d of %d runs of source %s have no fingerprint yet", n_waiting, len(runs), source)
    return Plan(parts=parts, n_runs=len(runs), n_done=len(runs) - n_waiting, data_version=version, scale=scale)


def cut_phases(part: str) -> str:
    """Find the phases of the runs of a part; returns the path of the file with them. Needs no warehouse."""
    from tasks.workloads.phase_parts import cut_part

    started = time.perf_counter()
    path = cut_part(part)
    logger.info("cut %s in %.1f s", part.rpartition("/")[2], time.perf_counter() - started)
    return path


def keep_phases(warehouse: Warehouse, source: str, path: str) -> int:
    """Write the phases of a part to the warehouse; returns how many runs they are of."""
    from tasks.workloads.phase_parts import read_part_file
    from tasks.workloads.phase_rows import write_phases

    n_runs = write_phases(warehouse, source, read_part_file(path))
    logger.info("the phases of %d runs of source %s are in the warehouse", n_runs, source)
    return n_runs


def clear_parts(parts: Sequence[str]) -> int:
    """Remove part files whose phases are in the warehouse; returns how many files went."""
    n_removed = 0
    for part in parts:
        folder, _, name = part.rpartition("/")
        for path in (part, f"{folder}/{name.replace('part-', 'phases-', 1)}"):
            fs, there = storage_of(path)
            if fs.exists(there):
                fs.rm(there)
                n_removed += 1
    return n_removed


def no_runs(warehouse: Warehouse, source: str) -> str:
    """The line for a source without runs of workloads."""
    found = fetch(warehouse, "SELECT DISTINCT source FROM workloads.runs ORDER BY source")
    some = ", ".join(repr(str(name)) for name in found["source"]) or "none; fill one with 'whorl workloads ingest FILE'"
    return f"source {source!r} has no runs of workloads; sources that have some: {some}"


def _maker(
    warehouse: Warehouse, source: str, params: FingerprintParams, runs: Sequence[Telemetry]
) -> "tuple[FingerprintMaker, str]":
    """How runs are cut: as the model in use does it, or, without one of these parameters, as all runs together say.

    Phases that are summarised on a learned scale: with a model it stays while runs come; without one each new run
    changes it, and all are done again."""
    how, model_id = _maker_of(warehouse, source, params, runs)
    return (how if params.normalisation.normalisation == "training" else replace(how, scale=None)), model_id


def _maker_of(
    warehouse: Warehouse, source: str, params: FingerprintParams, runs: Sequence[Telemetry]
) -> "tuple[FingerprintMaker, str]":
    card = champion(warehouse.models, WORD, source, KIND)
    if card and card.parameters.get("identify", {}).get("fingerprint") == params.model_dump(mode="json"):
        try:
            found = champion_of(warehouse, source)
        except BadInput as error:  # it says: train again
            logger.warning("the model in use cannot be read: %s", error)
            found = None
        if found:
            return found[1].maker, card.model_id
    from tasks.workloads.identify.fingerprinting import learn_fingerprinting

    labelled = [run for run in runs if run.workload is not None]
    return learn_fingerprinting(labelled or runs, params), ""


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
        is_whole = path.endswith(".parquet")
        if is_old or (is_whole and _keys_in(path) <= keys):
            fs.rm(entry["name"])


def _keys_in(path: str) -> set[str]:
    """The keys of the runs of a part file; none of a damaged one, which goes."""
    from tasks.workloads.phase_parts import read_part_file

    try:
        return set(read_part_file(path)["key"].to_pylist())
    except (BadInput, KeyError):
        return set()


def _in_parts(runs: list[tuple[str, Telemetry]], runs_per_part: int) -> Iterator[list[tuple[str, Telemetry]]]:
    for first in range(0, len(runs), runs_per_part):
        yield runs[first : first + runs_per_part]
