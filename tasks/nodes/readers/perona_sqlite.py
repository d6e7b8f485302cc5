"""The databases of Perona's operator (Scheinert et al. 2022): benchmarks, benchmark_metrics_2, node_metrics in SQLite.

A row of `benchmarks` is an execution. Its node is what stands before @@@ in node_id; chaos_applied is the label (not
chaos_desired). A metric with the unit (error), or without a text, was not found: missing, never the 0.0 beside it.
node_metrics within a minute of an execution is its telemetry. Node ids say nothing beyond their database. The rows of
this format are those of `benchmarks`; faults of the other tables stand behind them, or at their execution."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.nodes.benchmark_names import aspect_of, slug
from tasks.nodes.cells import flags, times
from tasks.nodes.execution import Execution
from tasks.nodes.labels import read_manifest
from tasks.nodes.landed import as_chunk
from tasks.nodes.readers.perona_metrics import Found, found_metrics
from tasks.nodes.readers.perona_telemetry import NodeSamples, node_samples
from tasks.nodes.readers.sqlite_file import MAGIC, check_tables, opened, rows_of
from tasks.nodes.reading_params import ReadParams
from tasks.nodes.vetting import Check, completed_times, first_reasons, vet
from tasks.reading import Chunk, all_refusals, refusals

NEEDED = {
    "benchmarks": ("id", "type", "node_id", "started", "finished", "chaos_applied"),
    "benchmark_metrics_2": ("benchmark_id", "name", "text_value", "value", "unit"),
}
COLUMNS = (*NEEDED["benchmarks"], "chaos_desired", "image", "options", "logs")
WHAT = "the tables benchmarks and benchmark_metrics_2 of Perona's operator"
SERVER_MARK = "@@@"


@dataclass(frozen=True)
class PeronaReader:
    """Reads Perona's databases."""

    name: str = "perona-sqlite"
    version: int = 2
    title: str = "databases of Perona's operator (.db, .sqlite, .sqlite3)"
    endings: tuple[str, ...] = (".db", ".sqlite", ".sqlite3")
    has_local_nodes: bool = True

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """Any SQLite file."""
        return head.startswith(MAGIC)

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """See Reader.read. Raises BadInput for what is no database, is damaged, or has other tables."""
        with opened(path, params.limits) as connection:
            check_tables(connection, path, NEEDED, WHAT)
            benchmarks = rows_of(connection, "benchmarks", COLUMNS)
            ids = [_text(one) for one in benchmarks["id"]]
            place_of = {one: place for place, one in reversed(list(enumerate(ids, 1)))}  # of a repeated one the first
            metrics = found_metrics(connection, place_of, len(ids))
            samples = node_samples(connection, params.time_zone, len(ids) + metrics.n_rows)
        rows, faults = _vetted(benchmarks, params)
        by_node, other = read_manifest(params).machine_types(path)
        executions = [
            _execution(rows, at, metrics, samples, by_node.get(rows["node"][at], other))
            for at in np.flatnonzero(faults == "").tolist()
        ]
        bad = np.flatnonzero(faults != "")
        raws = [_raw(benchmarks, row) for row in bad.tolist()]
        refused = [refusals(bad + 1, faults[bad].tolist(), raws), metrics.refused, samples.refused]
        yield as_chunk(executions, all_refusals(refused))


def _vetted(benchmarks: pd.DataFrame, params: ReadParams) -> tuple[dict[str, Any], Any]:
    """The columns of `benchmarks` in our types, and why each row cannot be used."""
    started, finished = (times(_column(benchmarks[name]), params.time_zone) for name in ("started", "finished"))
    applied, desired = (flags(_column(benchmarks[name])) for name in ("chaos_applied", "chaos_desired"))
    nothing = np.full(len(benchmarks), np.nan)
    ended, duration_s = completed_times(started.values, finished.values, nothing)
    rows = {
        "execution_id": _texts(benchmarks["id"]),
        "node": np.array([text.partition(SERVER_MARK)[0].strip() for text in _texts(benchmarks["node_id"])], object),
        "benchmark": np.array([slug(text) for text in _texts(benchmarks["type"])], dtype=object),
        "started_at": started.values,  # noqa: PD011
        "ended_at": ended,
        "duration_s": duration_s,
        "is_stressed": applied.values,  # noqa: PD011
        "stress_wanted": desired.values,  # noqa: PD011
        **{name: _texts(benchmarks[name]) for name in ("image", "options", "logs")},
    }
    checks: list[Check] = [
        (started.is_bad | np.isnat(started.values), "started is no time; expected ISO 8601 or Unix time"),
        (finished.is_bad, "finished is no time; expected ISO 8601 or Unix time"),
        (applied.is_bad, "chaos_applied is neither true nor false; expected the label"),
        (desired.is_bad, "chaos_desired is neither true nor false; expected what was planned"),
        (benchmarks["id"].duplicated().to_numpy(), "the id stands there twice; the first counts"),
    ]
    reasons = first_reasons(len(benchmarks), checks)
    now = datetime.now(UTC).replace(tzinfo=None)
    return rows, np.where(reasons == "", vet(rows, now, params.future_slack_s), reasons)


def _execution(rows: dict[str, Any], at: int, metrics: Found, samples: NodeSamples, machine_type: str) -> Execution:
    execution_id, node, benchmark = (str(rows[name][at]) for name in ("execution_id", "node", "benchmark"))
    measured, missing, version = metrics.of(execution_id)
    called = "\n".join(part for part in (rows["image"][at], rows["options"][at]) if part)
    is_over = not np.isnat(rows["ended_at"][at])
    aspect, is_stressed = aspect_of(benchmark), rows["is_stressed"][at]
    facts = {
        "execution_id": execution_id,
        "node": node,
        "machine_type": machine_type or None,
        "benchmark": benchmark,
        "aspect": aspect,
        "template": called or None,
        "template_hash": hashlib.sha256(called.encode()).hexdigest() if called else None,
        "tool_version": version or None,
        "started_at": _moment(rows["started_at"][at]),
        "ended_at": _moment(rows["ended_at"][at]),
        "duration_s": float(rows["duration_s"][at]) if is_over else None,
        "status": "completed" if is_over and measured else "failed",
        "is_stressed": is_stressed,
        "stress_wanted": rows["stress_wanted"][at],
        "dose": None if is_stressed is None else f"{aspect}-chaos" if is_stressed else "",
    }
    series = samples.around(node, rows["started_at"][at], facts["duration_s"] or 0.0)
    tool = benchmark.rpartition("-")[2]
    return Execution(facts, measured, missing, series, tool, str(rows["logs"][at] or ""), at + 1)


def _column(values: pd.Series) -> pa.Array:
    """What SQLite holds (any type in any row) as numbers where all are, else as texts."""
    if all(one is None or (isinstance(one, int | float) and not isinstance(one, bool)) for one in values):
        return pa.array([None if one is None else float(one) for one in values], pa.float64())
    return pa.array([None if one is None else _text(one) for one in values], pa.string())


def _texts(values: pd.Series) -> Any:
    return np.array([_text(one) for one in values], dtype=object)


def _text(value: object) -> str:
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _moment(time: np.datetime64) -> datetime | None:
    return None if np.isnat(time) else time.astype("datetime64[us]").item()


def _raw(benchmarks: pd.DataFrame, row: int) -> str:
    told = benchmarks.iloc[row].drop("logs").items()
    return ", ".join(f"{name}={value}" for name, value in told if value is not None)
