"""The databases of Perona's operator (Scheinert et al. 2022): SQLite with benchmarks, their metrics and node metrics.

A row of `benchmarks` is an execution. Its node is what stands before @@@ in node_id; chaos_applied is the label (not
chaos_desired). A metric with the unit (error), or without a text, was not found: missing, never the 0.0 beside it.
node_metrics within a minute of an execution is its telemetry. Node ids say nothing beyond their database. The rows of
this format are those of `benchmarks`; faults of the other tables stand behind them, or at their execution. A database
is opened so that nothing of it changes."""

import sqlite3
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import BadInput, quoted
from tasks.intake.cells import flags, times
from tasks.intake.files import Chunk, all_refusals, no_refusals, open_plain, refusals, refused_rows
from tasks.nodes.execution import Execution, MetricValue, SampledMetric, as_chunk
from tasks.nodes.params import ReadParams
from tasks.nodes.readers.labels import read_manifest
from tasks.nodes.readers.vetting import (
    Check,
    aspect_of,
    completed_times,
    first_reasons,
    hash_of,
    metric_name,
    slug,
    vet,
)
from tasks.params import ReadLimits
from tasks.storage import ADDRESS

ENDINGS = (".db", ".sqlite", ".sqlite3")
MAGIC = b"SQLite format 3\x00"
BLOCK_BYTES = 4 * 2**20
METRICS, SAMPLES = "benchmark_metrics_2", "node_metrics"
NOT_FOUND = "(error)"
PLAIN = "scalar"  # how they write a number without a unit
VERSION = "version"  # theirs to be a metric like others; here it is the version of the tool
SAMPLE_COLUMNS = ("node_name", "metric", "timestamp", "value")
BEFORE_S, AFTER_S = 60.0, 70.0  # their windows: 50 s before the start, 70 s after the end
PERCENT = ("util", "busy", "errors")
Floats = NDArray[np.float64]
NEEDED = {
    "benchmarks": ("id", "type", "node_id", "started", "finished", "chaos_applied"),
    METRICS: ("benchmark_id", "name", "text_value", "value", "unit"),
}
BENCHMARK_COLUMNS = (*NEEDED["benchmarks"], "chaos_desired", "image", "options", "logs")
WHAT = "the tables benchmarks and benchmark_metrics_2 of Perona's operator"
WHICH = "check that it is the right database"
SERVER_MARK = "@@@"


Metrics = dict[
    str, tuple[list[MetricValue], list[str], str]
]  # of each benchmark: metrics, lacking ones, tool's version
Samples = dict[str, dict[str, tuple[Floats, Floats]]]  # of each node and metric: Unix seconds, rising, and samples


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """Any SQLite file."""
    return head.startswith(MAGIC)


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """As Reader.read says. Raises BadInput for what is no database, is damaged, or has other tables."""
    with _opened(path, params.limits) as connection:
        _check_tables(connection, path)
        benchmarks = _rows_of(connection, "benchmarks", BENCHMARK_COLUMNS)
        ids = [_text(benchmark_id) for benchmark_id in benchmarks["id"]]
        place_of = {
            benchmark_id: place for place, benchmark_id in reversed(list(enumerate(ids, 1)))
        }  # of a repeated one the first
        metrics, bad_metrics, n_metrics = _read_metrics(connection, place_of, len(ids))
        samples, bad_samples = _read_samples(connection, params.time_zone, len(ids) + n_metrics)
    rows, faults = _vetted(benchmarks, params)
    by_node, other = read_manifest(params).machine_types(path)
    executions = [
        _execution(row, metrics.get(row["execution_id"], ([], [], "")), samples, by_node.get(row["node"], other))
        for row in rows[faults == ""].to_dict("records")
    ]
    bad = np.flatnonzero(faults != "")
    bad_rows = benchmarks.drop(columns="logs").iloc[bad].to_dict("records")
    raws = [", ".join(f"{name}={value}" for name, value in row.items() if value is not None) for row in bad_rows]
    refused = [refusals(bad + 1, faults[bad].tolist(), raws), bad_metrics, bad_samples]
    yield as_chunk(executions, all_refusals(refused))


def _vetted(benchmarks: pd.DataFrame, params: ReadParams) -> tuple[pd.DataFrame, Any]:
    """The columns of `benchmarks` in our types, with the place of each row, and why each cannot be used."""
    started, finished = (times(_column(benchmarks[name]), params.time_zone) for name in ("started", "finished"))
    applied, desired = (flags(_column(benchmarks[name])) for name in ("chaos_applied", "chaos_desired"))
    ended, duration_s = completed_times(started.values, finished.values, np.full(len(benchmarks), np.nan))
    texts = benchmarks[["id", "node_id", "type", "image", "options", "logs"]].map(_text).astype(object)
    rows = pd.DataFrame(
        {
            "execution_id": texts["id"],
            "node": [text.partition(SERVER_MARK)[0].strip() for text in texts["node_id"]],
            "benchmark": [slug(text) for text in texts["type"]],
            "started_at": started.values,  # noqa: PD011
            "ended_at": ended,
            "duration_s": duration_s,
            "is_stressed": applied.values,  # noqa: PD011
            "stress_wanted": desired.values,  # noqa: PD011
            "template": ["\n".join(filter(None, pair)) for pair in zip(texts["image"], texts["options"], strict=True)],
            "logs": texts["logs"],
            "place": np.arange(1, len(benchmarks) + 1),
        }
    )
    checks: list[Check] = [
        (started.is_bad | np.isnat(started.values), "started is no time; expected ISO 8601 or Unix time"),
        (finished.is_bad, "finished is no time; expected ISO 8601 or Unix time"),
        (applied.is_bad, "chaos_applied is neither true nor false; expected the label"),
        (desired.is_bad, "chaos_desired is neither true nor false; expected what was planned"),
        (benchmarks["id"].duplicated().to_numpy(), "the id stands there twice; the first counts"),
    ]
    reasons = first_reasons(len(benchmarks), checks)
    return rows, np.where(reasons == "", vet({str(name): rows[name].to_numpy() for name in rows}), reasons)


def _execution(
    row: dict[Any, Any], results: tuple[list[MetricValue], list[str], str], samples: Samples, machine_type: str
) -> Execution:
    """results: its metrics, lacking ones, and the tool's version."""
    (measured, missing, version), benchmark, template = results, row["benchmark"], row["template"]
    is_over, aspect, is_stressed = not pd.isna(row["ended_at"]), aspect_of(benchmark), row["is_stressed"]
    facts = {name: row[name] for name in ("execution_id", "node", "benchmark", "started_at", "stress_wanted")} | {
        "machine_type": machine_type or None,
        "aspect": aspect,
        "template": template or None,
        "template_hash": hash_of(template) if template else None,
        "tool_version": version or None,
        "ended_at": row["ended_at"] if is_over else None,
        "duration_s": row["duration_s"] if is_over else None,
        "status": "completed" if is_over and measured else "failed",
        "is_stressed": is_stressed,
        "dose": None if is_stressed is None else f"{aspect}-chaos" if is_stressed else "",
    }
    series = _around(samples.get(row["node"], {}), row["started_at"], facts["duration_s"] or 0.0)
    tool = benchmark.rpartition("-")[2]
    return Execution(facts, tuple(measured), tuple(missing), series, tool, row["logs"], row["place"])


def _around(
    series: dict[str, tuple[Floats, Floats]], started: pd.Timestamp, duration_s: float
) -> tuple[SampledMetric, ...]:
    """What was sampled on a node from a minute before an execution to a good minute after it."""
    start_s = (started - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
    sampled = []
    for metric, (at_s, samples) in series.items():
        first = int(np.searchsorted(at_s, start_s - BEFORE_S, side="left"))
        last = int(np.searchsorted(at_s, start_s + duration_s + AFTER_S, side="right"))
        if last > first:
            sampled.append(SampledMetric(metric, _unit_of(metric), at_s[first:last] - start_s, samples[first:last]))
    return tuple(sampled)


def _read_metrics(
    connection: sqlite3.Connection, place_of: Mapping[str, int], n_benchmarks: int
) -> tuple[Metrics, pd.DataFrame, int]:
    """By benchmark; what was refused, at its place or behind all; and the number of rows.

    place_of: of the ids in `benchmarks`, the number of their row; n_benchmarks: of all."""
    by_id: Metrics = {}
    bad: list[tuple[int, str, str]] = []
    seen: set[tuple[str, str]] = set()
    rows = _rows_of(connection, METRICS, NEEDED[METRICS])
    for place, (benchmark_id, name, text, value, unit) in enumerate(rows.itertuples(index=False, name=None), 1):
        key = str(benchmark_id), metric_name(str(name or ""))
        reason = _fault(key, text, value, unit, place_of, seen)
        if reason:
            at = place_of.get(key[0], n_benchmarks + place)
            bad.append((at, f"{METRICS} row {place}: {reason}", f"{benchmark_id}, {name}, {text}, {value}, {unit}"))
            continue
        seen.add(key)
        measured, missing, _ = by_id.setdefault(key[0], ([], [], ""))
        if key[1] == VERSION:
            by_id[key[0]] = measured, missing, str(text or "").strip()
        elif _is_missing(text, unit):
            missing.append(key[1])
        else:
            measured.append(MetricValue(key[1], float(value), "" if unit in (None, PLAIN) else str(unit).strip()))
    return by_id, refused_rows(bad), len(rows)


def _fault(
    key: tuple[str, str], text: Any, value: Any, unit: Any, known_ids: Container[str], seen: set[tuple[str, str]]
) -> str:
    is_value = key[1] != VERSION and not _is_missing(text, unit)
    reasons = {
        f"no benchmark {key[0]!r} in benchmarks": key[0] not in known_ids,
        "no name": not key[1],
        f"{key[1]} of benchmark {key[0]} stands there twice; the first counts": key in seen,
        f"{key[1]} is no finite number": is_value and not (isinstance(value, int | float) and np.isfinite(value)),
    }
    return next((reason for reason, is_so in reasons.items() if is_so), "")


def _is_missing(text: Any, unit: Any) -> bool:
    """Whether the operator did not find a metric: it then writes a 0.0 that is no measurement."""
    return text is None or unit == NOT_FOUND


def _read_samples(connection: sqlite3.Connection, zone: str, n_before: int) -> tuple[Samples, pd.DataFrame]:
    """All samples of a database; none where it has no such table. n_before: rows of the tables before this one."""
    rows = pd.DataFrame()
    if set(SAMPLE_COLUMNS) <= set(_columns_of(connection, SAMPLES)):
        rows = _rows_of(connection, SAMPLES, SAMPLE_COLUMNS)
    if not len(rows):
        return {}, no_refusals()
    at_s = _seconds(rows["timestamp"], zone)
    values = pd.to_numeric(rows["value"], errors="coerce").to_numpy(dtype="float64", na_value=np.nan)
    is_bad = np.isnan(at_s) | ~np.isfinite(values)
    places = np.flatnonzero(is_bad)
    refused = refusals(
        n_before + places + 1,
        [
            f"{SAMPLES} row {at + 1}: {'timestamp is no time' if np.isnan(at_s[at]) else 'value is no number'}"
            for at in places
        ],
        [", ".join(map(str, rows.iloc[at])) for at in places],
    )
    samples = pd.DataFrame({"node": rows["node_name"].astype(str), "metric": rows["metric"].astype(str)})
    samples = samples.assign(at_s=at_s, value=values)[~is_bad]
    samples = samples.sort_values(["node", "metric", "at_s"], kind="stable").drop_duplicates(["node", "metric", "at_s"])
    by_node: Samples = {}
    for (node, metric), group in samples.groupby(["node", "metric"], sort=True):
        series = group["at_s"].to_numpy(), group["value"].to_numpy()
        by_node.setdefault(str(node), {})[metric_name(str(metric))] = series
    return by_node, refused


def _unit_of(metric: str) -> str:
    """The unit of one of their thirteen series: shares are in percent, others are byte rates."""
    if metric.endswith("bytes"):
        return "B/s"
    return "%" if metric.endswith(PERCENT) or metric.startswith("memory") else ""


@contextmanager
def _opened(path: str, limits: ReadLimits) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write. Raises BadInput for what is no database, is damaged, or has unsaved changes."""
    with _local(path, limits) as local:
        beside = local.with_name(f"{local.name}-wal")
        if beside.exists() and beside.stat().st_size:
            fix = "run: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'"
            expected = "a database that is complete in itself"
            raise BadInput(path, "changes stand beside it in its -wal file", expected, fix)
        try:
            uri = f"file:{quote(str(local))}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                yield connection
        except sqlite3.DatabaseError as error:
            problem = f"the database is damaged ({quoted(str(error))})"
            raise BadInput(path, problem, "a whole SQLite file", "copy it again") from error


@contextmanager
def _local(path: str, limits: ReadLimits) -> Iterator[Path]:
    """The file on this machine, fetched if it lies elsewhere."""
    with open_plain(path) as stream, tempfile.TemporaryDirectory(prefix="whorl-sqlite-") as folder:
        if stream.read(len(MAGIC)) != MAGIC:
            expected = "a file that begins with 'SQLite format 3'"
            raise BadInput(path, "not an SQLite database", expected, "check the path")
        local = Path(path).expanduser().resolve()
        if ADDRESS in path:
            local, n_bytes = Path(folder) / "copy.sqlite", stream.seek(0)
            with local.open("wb") as copy:
                while block := stream.read(BLOCK_BYTES):
                    n_bytes += copy.write(block)
                    if n_bytes > limits.max_bytes:
                        problem = f"more than {limits.max_bytes:,} bytes"
                        raise BadInput(path, problem, "a smaller file", "raise read.limits.max_bytes")
        yield local


def _check_tables(connection: sqlite3.Connection, path: str) -> None:
    """Raises BadInput if a table or a column that is needed is missing."""
    names = sorted(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    for table, columns in NEEDED.items():
        if table not in names:
            raise BadInput(path, f"no table '{table}' among {quoted(names)}", WHAT, WHICH)
        there = _columns_of(connection, table)
        if missing := [column for column in columns if column not in there]:
            problem = f"table '{table}' has no column '{missing[0]}' among {quoted(there)}"
            raise BadInput(path, problem, WHAT, WHICH)


def _columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table; none if there is no such table."""
    return [str(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")')]


def _rows_of(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> pd.DataFrame:
    """Some columns of a table, as SQLite holds them (objects), in its order; None for those it lacks."""
    there = set(_columns_of(connection, table))
    selected = ", ".join(f'"{name}"' if name in there else f'NULL AS "{name}"' for name in columns)
    rows = connection.execute(f'SELECT {selected} FROM "{table}"').fetchall()
    return pd.DataFrame(rows, columns=list(columns), dtype=object)


def _seconds(column: pd.Series, zone: str) -> Floats:
    numbers = pd.to_numeric(column, errors="coerce")
    stamps = pa.array(numbers) if numbers.notna().all() else pa.array(column.astype(str), pa.string())
    moments: NDArray[Any] = times(stamps, zone).values  # noqa: PD011
    return np.where(np.isnat(moments), np.nan, moments.astype("int64") / 1e6)


def _column(values: pd.Series) -> pa.Array:
    """What SQLite holds (any type in any row) as numbers where all are, else as texts."""
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
