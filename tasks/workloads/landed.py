"""Runs on their way between files, the warehouse and memory."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.intake.files import Chunk
from tasks.warehouse.connection import fetch_arrow
from tasks.warehouse.place import Warehouse
from tasks.workloads.prepared import COUNTERS_SCHEMA, RUNS_SCHEMA, Prepared
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

DESCRIBED = ("counter", "unit", "kind", "is_rate", "scope")
KEYS = ("run_id", "n_samples", "workload", "input", "round", "machine", "started_at", "interval_s")


def as_chunk(runs: Sequence[Prepared], refused: pd.DataFrame) -> Chunk:
    """The rows of workloads.runs and workloads.counters that stand for these runs."""
    if not runs:
        return Chunk(pd.DataFrame(), refused, {})
    return Chunk(_framed(_runs(runs)), refused, {"counters": _framed(_counters(runs))})


def _runs(runs: Sequence[Prepared]) -> pa.Table:
    told = [run.telemetry for run in runs]
    columns = {
        **{name: [getattr(one, name) for one in told] for name in ("run_id", "workload", "input", "round", "machine")},
        "started_at": [one.started_at for one in told],
        "interval_s": [one.interval_s for one in told],
        "n_samples": [one.n_samples for one in told],
        "duration_s": [_duration_s(one) for one in told],
        **{name: [getattr(run, name) for run in runs] for name in ("n_rows", "n_missed", "n_resets", "is_resampled")},
        "refused_columns": [list(run.refused) for run in runs],
        "at_s": _lists([one.at_s for one in told]),
        "is_simulated": [run.is_simulated for run in runs],
        "place": [run.place for run in runs],
    }
    return pa.table({name: columns[name] for name in RUNS_SCHEMA.names}, schema=RUNS_SCHEMA)


def _duration_s(run: Telemetry) -> float | None:
    return float(run.at_s[-1] - run.at_s[0]) + run.interval_s if run.interval_s is not None else None


def _counters(runs: Sequence[Prepared]) -> pa.Table:
    pairs = [(run, at, counter) for run in runs for at, counter in enumerate(run.telemetry.counters)]
    columns = {
        "run_id": [run.telemetry.run_id for run, _, _ in pairs],
        "counter": [counter.name for _, _, counter in pairs],
        **{name: [getattr(one, name) for _, _, one in pairs] for name in ("unit", "kind", "is_rate", "scope")},
        "is_constant": [bool(run.is_constant[at]) for run, at, _ in pairs],
        "running_pct": pa.array([run.running_pct[at] for run, at, _ in pairs], pa.float64(), from_pandas=True),
        "samples": _lists([run.telemetry.values[:, at] for run, at, _ in pairs]),  # noqa: PD011
        "place": [run.place for run, _, _ in pairs],
    }
    return pa.table({name: columns[name] for name in COUNTERS_SCHEMA.names}, schema=COUNTERS_SCHEMA)


def _lists(arrays: Sequence[FloatArray]) -> pa.ListArray:
    """Lists of numbers, NaN as missing."""
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in arrays])]).astype(np.int32)
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
    told = zip(*(runs[key].to_pylist() for key in KEYS), strict=True)
    found, first = [], 0
    for run_id, n_samples, *rest in told:
        start, stop = rows_of[run_id]
        described = tuple(about[start:stop])
        if described not in known:
            known[described] = tuple(Counter(*one) for one in described)
        values = samples[offsets[start] : offsets[stop]].reshape(stop - start, n_samples)
        times = at_s[first : first + n_samples]
        first += n_samples
        found.append(Telemetry(run_id, known[described], times, np.ascontiguousarray(values.T), *rest))
    return found


def _flat(column: pa.ChunkedArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """The values of a column of lists, one after the other (missing ones are NaN), and where each list begins."""
    lists = column.combine_chunks()
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    lengths = np.asarray(lists.value_lengths()) if len(lists) else np.zeros(0, dtype=np.int64)
    return flat, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


CHOSEN = "source = $source AND ($run_ids IS NULL OR list_contains($run_ids, run_id))"


def fetch_runs(warehouse: Warehouse, source: str, run_ids: Sequence[str] | None = None) -> list[Telemetry]:
    """The runs of a source, or those with these ids, ordered by run id, their counters by name.

    The connection is closed before the runs are put together. Raises NoWarehouse, WarehouseBusy."""
    values = {"source": source, "run_ids": None if run_ids is None else list(run_ids)}
    runs, counters = fetch_arrow(
        warehouse,
        [
            "SELECT run_id, n_samples, workload, input, round, machine, started_at, interval_s, at_s "
            f"FROM workloads.runs WHERE {CHOSEN} ORDER BY run_id",
            f"SELECT run_id, counter, unit, kind, is_rate, scope, samples FROM workloads.counters "
            f"WHERE {CHOSEN} ORDER BY run_id, counter",
        ],
        values,
    )
    return as_telemetry(runs, counters)
