"""What a reader finds in a file, for the tests of all readers."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tasks.intake.files import all_refusals
from tasks.nodes.execution import SCHEMAS, tabled
from tasks.nodes.intake import chunks_of, reader_of
from tasks.nodes.params import ReadParams

BENCHMARKS = (
    "CREATE TABLE benchmarks (id TEXT, type TEXT, chaos_desired BOOLEAN, chaos_applied BOOLEAN, chaos_id TEXT, "
    "node_id TEXT, pod_id TEXT, started DATETIME, finished DATETIME, metric_collection_status TEXT, image TEXT, "
    "options TEXT, logs TEXT)"
)
METRICS = "CREATE TABLE benchmark_metrics_2 (benchmark_id TEXT, name TEXT, text_value TEXT, value REAL, unit TEXT)"
SAMPLES = "CREATE TABLE node_metrics (node_name TEXT, metric TEXT, timestamp REAL, value REAL)"
NAMES = ("id", "type", "chaos_desired", "chaos_applied", "node_id", "started", "finished", "image", "options", "logs")


@dataclass(frozen=True)
class Found:
    """What came out of a file."""

    executions: pd.DataFrame
    metrics: pd.DataFrame
    telemetry: pd.DataFrame
    logs: pd.DataFrame
    refused: pd.DataFrame

    @property
    def n_read(self) -> int:
        """Rows of the file: behind an execution, or refused; not single values of rows that are kept."""
        refused = set(self.refused["place"]) - set(self.executions["place"])
        return int(self.executions["n_rows"].sum()) + len(refused)

    @property
    def reasons(self) -> list[str]:
        return self.refused["reason"].to_list()

    def column(self, name: str) -> list[Any]:
        """A column of the executions; missing values are None."""
        return [None if one is pd.NaT or one is pd.NA or one != one else one for one in self.executions[name].to_list()]

    def told(self, execution_id: str) -> dict[str, tuple[float, str]]:
        """Value and unit of each metric of an execution."""
        own = self.metrics[self.metrics["execution_id"] == execution_id]
        return {row.metric: (row.value, row.unit) for row in own.itertuples()}


def found_in_path(path: str, params: ReadParams, reader: str = "") -> Found:
    chunks = list(chunks_of(path, reader_of(path, reader, params), params))
    frames: dict[str, list[pa.Table]] = {name: [schema.empty_table()] for name, schema in SCHEMAS.items()}
    for chunk in chunks:
        for name, frame in {"executions": chunk.rows, **chunk.tables}.items():
            frames[name].append(tabled(frame, SCHEMAS[name]))
    tables = {name: pa.concat_tables(parts).to_pandas() for name, parts in frames.items()}
    return Found(**tables, refused=all_refusals([chunk.refused for chunk in chunks]))


@pytest.fixture
def found_in(tmp_path: Path) -> Callable[..., Found]:
    """A function that reads a path, or a text or table as a file of that name, with parameters of ReadParams."""

    def read(source: Path | str | bytes | pa.Table, name: str = "set/results.csv", **params: Any) -> Found:
        path = source
        if not isinstance(source, Path):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, pa.Table):
                import pyarrow.parquet as pq

                pq.write_table(source, path)
            else:
                path.write_bytes(source.encode() if isinstance(source, str) else source)
        reader = params.pop("reader", "")
        return found_in_path(str(path), ReadParams(**params), reader)

    return read


@pytest.fixture
def database(tmp_path: Path) -> Callable[..., Path]:
    """A function that makes a database of Perona's operator and returns its path.

    benchmarks: rows as dicts of NAMES; metrics: (benchmark, name, text, value, unit); samples: (node, metric, time,
    value). statements: SQL that is run at the end."""

    def make(
        benchmarks: Sequence[Mapping[str, Any]] = (),
        metrics: Sequence[tuple[Any, ...]] = (),
        samples: Sequence[tuple[Any, ...]] = (),
        *,
        name: str = "run.db",
        statements: Sequence[str] = (),
    ) -> Path:
        path = tmp_path / name
        with closing(sqlite3.connect(path)) as connection:
            for statement in (BENCHMARKS, METRICS, SAMPLES):
                connection.execute(statement)
            marks = ", ".join("?" for _ in NAMES)
            rows = [[{**_benchmark(), **one}[key] for key in NAMES] for one in benchmarks]
            connection.executemany(f"INSERT INTO benchmarks ({', '.join(NAMES)}) VALUES ({marks})", rows)
            connection.executemany("INSERT INTO benchmark_metrics_2 VALUES (?, ?, ?, ?, ?)", metrics)
            connection.executemany("INSERT INTO node_metrics VALUES (?, ?, ?, ?)", samples)
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        return path

    return make


def _benchmark() -> dict[str, Any]:
    return {
        "id": "cpu-sysbench-a", "type": "cpu-sysbench", "chaos_desired": 0, "chaos_applied": 0,
        "node_id": "worker-2@@@supporter", "started": "2022-06-14 12:00:00.000000",
        "finished": "2022-06-14 12:00:31.000000", "image": "sysbench:1", "options": "--threads=16",
        "logs": "sysbench 1\n",
    }  # fmt: skip
