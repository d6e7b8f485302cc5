"""Part files: runs that wait for their phases, and the phases that were found; a part can be cut on any machine.

    part-<hash>.parquet      some runs with the same counters, with all that decides their phases
    phases-<hash>.parquet    what was made of it, as workloads.phases has it; counter missing: phases of the workload

The hash is that of the keys of the runs, and a key that of a run's samples and of how it is cut. So a part whose phases
are there is not cut again."""

import hashlib
import io
import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput
from tasks.storage import storage_of
from tasks.warehouse.landing import is_local
from tasks.workloads.changepoints.finding import find_changepoints
from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.identify.fingerprinting import FingerprintMaker, fingerprints_of
from tasks.workloads.identify.params import FingerprintParams
from tasks.workloads.normalisation import Scale, columns_of, logarithm_of_rates, normalise
from tasks.workloads.phases import ADF, STATISTICS, UNDETERMINED, Bounds
from tasks.workloads.telemetry import Counter, Telemetry

VERSION = 1  # raise it when the same samples give other phases
KEY_CHARS = 16
HOW = b"whorl.how"
PHASES_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()), ("key", pa.string()), ("counter", pa.string()), ("phase", pa.int32()),
        ("start_sample", pa.int64()), ("end_sample", pa.int64()), ("probability", pa.float64()),
        *((name, pa.float64()) for name in STATISTICS),
    ]
)  # fmt: skip


def narrowed(how: FingerprintMaker, names: Sequence[str]) -> FingerprintMaker:
    """The same on those of its counters that are among the names."""
    there = set(names)
    places = [at for at, name in enumerate(how.names) if name in there]
    if len(places) == len(how.counters):
        return how
    counters, scale = tuple(how.counters[at] for at in places), how.scale
    if scale is not None:
        logged = tuple(scale.logged[at] for at in places)
        scale = Scale(tuple(one.name for one in counters), logged, scale.centre[places], scale.spread[places])
    return FingerprintMaker(counters, how.params, scale)


def as_json(how: FingerprintMaker) -> str:
    """All that decides the phases of a run beside its samples; floats come back as they were."""
    scale = how.scale and {key: np.asarray(value).tolist() for key, value in asdict(how.scale).items()}
    params, counters = how.params.model_dump(mode="json"), [asdict(one) for one in how.counters]
    return json.dumps({"version": VERSION, "params": params, "counters": counters, "scale": scale})


def from_json(text: bytes) -> FingerprintMaker:
    """What as_json wrote."""
    told = json.loads(text)
    counters, scale = tuple(Counter(**one) for one in told["counters"]), told["scale"]
    if scale is not None:
        centre, spread = np.array(scale["centre"]), np.array(scale["spread"])
        scale = Scale(tuple(scale["counters"]), tuple(scale["logged"]), centre, spread)
    return FingerprintMaker(counters, FingerprintParams.model_validate(told["params"]), scale)


def key_of(run: Telemetry, how: FingerprintMaker, told: str = "") -> str:
    """Hash of the samples of a run and of how it is cut: what its phases depend on. told: as_json(how), where known."""
    digest = hashlib.sha256((told or as_json(how)).encode())
    digest.update(np.ascontiguousarray(columns_of(run, how.names)).tobytes())
    return digest.hexdigest()[:KEY_CHARS]


def write_part(folder: str, runs: Sequence[tuple[str, Telemetry]], how: FingerprintMaker) -> str:
    """Write runs that have the counters of `how`, with their keys; returns the path. Twice is the same as once."""
    keys = [key for key, _ in runs]
    path = f"{folder}/part-{hashlib.sha256(','.join(keys).encode()).hexdigest()[:KEY_CHARS]}.parquet"
    fs, name = storage_of(path)
    if not fs.exists(name):
        table = pa.table(
            {
                "run_id": pa.array([run.run_id for _, run in runs], pa.string()),
                "key": pa.array(keys, pa.string()),
                "values": [columns_of(run, how.names).ravel() for _, run in runs],
            }
        )
        _write(path, table.replace_schema_metadata({HOW: as_json(how).encode()}))
    return path


def cut_part(path: str) -> str:
    """Find and summarise the phases of the runs of a part; returns the path of the file that holds them.

    Phases that are there already are not found again. Raises BadInput for a part that is gone or damaged."""
    folder, _, name = path.rpartition("/")
    target = f"{folder}/{name.replace('part-', 'phases-', 1)}"
    fs, there = storage_of(target)
    if fs.exists(there):
        return target
    table = read_part_file(path)
    how = from_json(table.schema.metadata[HOW])
    rows: list[dict[str, Any]] = []
    for row in range(table.num_rows):
        run_id, key = table["run_id"][row].as_py(), table["key"][row].as_py()
        samples = table["values"][row].values.to_numpy(zero_copy_only=False).reshape(-1, len(how.counters))
        run = Telemetry(run_id, how.counters, np.arange(float(len(samples))), samples)
        rows += [{"run_id": run_id, "key": key, **row} for row in phases_of(run, how)]
    _write(target, pa.Table.from_pylist(rows, schema=PHASES_SCHEMA))
    return target


def phases_of(run: Telemetry, how: FingerprintMaker) -> list[dict[str, Any]]:
    """The phases of a run, those of its counters and those of the workload: rows without run and key."""
    [made] = fingerprints_of([run], how)
    return [*_of_counters(made, probabilities_of(run, made.bounds, how)), *_of_workload(made)]


def probabilities_of(run: Telemetry, bounds: Sequence[Bounds], how: FingerprintMaker) -> list[list[float | None]]:
    """Of each counter the probability of the change that begins each of its phases; none for the first."""
    values, params = columns_of(run, how.names), how.params
    if params.normalisation.normalisation == "training":  # as identify.cutting looks for them
        values = logarithm_of_rates(values, [one.is_rate for one in how.counters])
    else:
        values = normalise(values, params.normalisation)
    shared = find_changepoints(values, params.changepoints) if params.phases.mode == "shared" else None
    found = []
    for own, column in zip(bounds, values.T, strict=True):
        places: dict[int, float] = {}
        if len(own) > 2:
            changes = shared or find_changepoints(column[:, None], params.changepoints)
            places = dict(zip(changes.indices.tolist(), changes.probabilities.tolist(), strict=True))
        found.append([None if np.isnan(p := places.get(start, np.nan)) else p for start in own[:-1].tolist()])
    return found


def read_part_file(path: str) -> pa.Table:
    """One file of either kind. Raises BadInput if it is not there, or damaged."""
    fs, name = storage_of(path)
    try:
        with fs.open(name, "rb") as stream:
            return pq.read_table(pa.BufferReader(stream.read()))
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise BadInput(path, f"cannot be read ({error})", "a part of this run", "run it anew, not continued") from error


def _of_counters(made: Fingerprint, probabilities: Sequence[Sequence[float | None]]) -> list[dict[str, Any]]:
    rows = []
    for counter, bounds, summaries, changes in zip(
        made.counters, made.bounds, made.summaries, probabilities, strict=True
    ):
        for at, summary in enumerate(summaries.tolist()):
            told = dict(zip(STATISTICS, summary, strict=True))
            told["adf"] = None if summary[ADF] == UNDETERMINED else summary[ADF]
            rows.append(_phase(at, bounds) | {"counter": counter, "probability": changes[at], **told})
    return rows


def _of_workload(made: Fingerprint) -> list[dict[str, Any]]:
    return [_phase(at, made.workload_bounds) for at in range(len(made.workload_bounds) - 1)]


def _phase(at: int, bounds: Bounds) -> dict[str, Any]:
    return {"phase": at + 1, "start_sample": int(bounds[at]), "end_sample": int(bounds[at + 1])}


def _write(path: str, table: pa.Table) -> None:
    """A file that appears whole or not at all."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    fs, name = storage_of(path)
    fs.makedirs(name.rpartition("/")[0], exist_ok=True)
    if not is_local(fs):
        fs.pipe_file(name, buffer.getvalue())
        return
    draft = Path(f"{name}.{uuid.uuid4().hex}.tmp")
    with draft.open("wb") as handle:
        handle.write(buffer.getvalue())
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(name)
