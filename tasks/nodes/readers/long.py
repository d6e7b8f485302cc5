"""Long tables, CSV or Parquet, one row a metric: node, machine_type, benchmark, started_at, metric, value, unit.

Needed: node (or --label-from), benchmark, metric, value, and started_at or execution_id. Rows of one execution_id are
one execution; without it those of the same node, benchmark and started_at are. All other columns of nodes.executions
may be there (template, is_stressed, dose, duration_s, aspect, campaign, …); unknown ones are ignored and logged. A
value that is empty is a metric that the tool did not give. A dose without is_stressed says that stress was applied."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.nodes.cells import Cells, are_none, flags, texts, times
from tasks.nodes.labels import label_column, node_of
from tasks.nodes.readers.long_rows import grouped
from tasks.nodes.readers.table_file import TableFile, choose_columns, column_names, read_table_file
from tasks.nodes.reading_params import ReadParams
from tasks.nodes.vetting import Check, completed_times, first_reasons, vet
from tasks.reading import Chunk
from tasks.workloads.readers.tables import as_numbers

logger = logging.getLogger(__name__)
TEXTS = (
    "execution_id", "node", "machine_type", "benchmark", "aspect", "template", "template_hash", "tool_version",
    "status", "dose", "campaign", "region", "metric", "unit",
)  # fmt: skip
TIMES = ("started_at", "ended_at")
FLAGS = ("is_stressed", "stress_wanted", "is_contaminated", "is_emulated", "is_simulated")
NUMBERS = ("duration_s", "dose_level", "foreign_cores", "steal_cores", "load_1m", "value")
KNOWN = (*TEXTS, *TIMES, *FLAGS, *NUMBERS)
NEEDED = (("node",), ("benchmark",), ("metric",), ("value",), ("started_at", "execution_id"))
OWN_NAMES = {"benchmark", "metric", "value"}
MEANINGS = {
    **dict.fromkeys(TEXTS, "text"),
    **dict.fromkeys(TIMES, "a time; expected ISO 8601 or Unix time"),
    **dict.fromkeys(FLAGS, "true or false"),
    **dict.fromkeys(NUMBERS, "a finite number; expected one, or nothing"),
}
Rows = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class LongReader:
    """Reads long tables."""

    name: str = "long"
    version: int = 1
    title: str = "long tables, a row a metric (.csv, .csv.gz, .parquet)"
    endings: tuple[str, ...] = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
    has_local_nodes: bool = False

    def sniff(self, head: bytes, path: str) -> bool:
        """A header or footer with benchmark, metric and value."""
        return set(column_names(head, path)) >= OWN_NAMES

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """See Reader.read. Raises BadInput for a table without a column that is needed."""
        table = read_table_file(path, params.limits)
        rows, faults = _rows(table, _columns(table, params), params)
        yield grouped(table, rows, faults)


def _columns(table: TableFile, params: ReadParams) -> dict[str, pa.ChunkedArray]:
    renamed, node = dict(params.columns), node_of(table.path, params)
    if label_column(params):
        renamed["node"] = label_column(params)
    needed = [group for group in NEEDED if group != ("node",) or not node]
    try:
        chosen = choose_columns(table, KNOWN, needed, renamed)
    except BadInput as error:
        if error.fix == "name yours, as in --map node=THEIRS":
            fix = f"{error.fix}, or --label-from stem|parent"
            raise BadInput(error.where, error.problem, error.expected, fix) from error
        raise
    unknown = [name for name in table.columns if name not in {*chosen, *renamed.values()}]
    if unknown:
        logger.info("%s: %d unknown columns are ignored: %s", table.path, len(unknown), ", ".join(unknown)[:500])
    return chosen


def _rows(
    table: TableFile, columns: dict[str, pa.ChunkedArray], params: ReadParams
) -> tuple[Rows, NDArray[np.object_]]:
    """All columns of KNOWN in our types, and why each row cannot be used."""
    n_rows, now = len(table.places), datetime.now(UTC).replace(tzinfo=None)
    cells = {name: _cells(name, column, params.time_zone) for name, column in columns.items()}
    rows: Rows = {name: cells[name].values if name in cells else _missing(name, n_rows) for name in KNOWN}
    if node := node_of(table.path, params):
        rows["node"] = np.where(are_none(rows["node"]), node, rows["node"])
    rows["ended_at"], rows["duration_s"] = completed_times(rows["started_at"], rows["ended_at"], rows["duration_s"])
    if "is_stressed" not in columns and "dose" in columns:
        rows["is_stressed"] = np.array([bool(one) for one in rows["dose"]], dtype=object)
    if "execution_id" not in columns:
        rows["execution_id"] = _ids(rows)
    checks: list[Check] = [(cells[name].is_bad, f"{name} is not {MEANINGS[name]}") for name in KNOWN if name in cells]
    checks.append((are_none(rows["metric"]), "no metric; expected its name"))
    if "execution_id" not in columns:
        checks.append((np.isnat(rows["started_at"]), "no started_at; expected the time at which the execution began"))
    reasons = first_reasons(n_rows, checks)
    return rows, np.where(reasons == "", vet(rows, now, params.future_slack_s), reasons)


def _cells(name: str, column: pa.ChunkedArray, zone: str) -> Cells:
    if name in TIMES:
        return times(column, zone)
    if name in FLAGS:
        return flags(column)
    if name in TEXTS:
        return texts(column)
    found = as_numbers(column)
    return Cells(found.values, found.is_bad.astype(bool))


def _missing(name: str, n_rows: int) -> NDArray[Any]:
    if name in TIMES:
        return np.full(n_rows, np.datetime64("NaT", "us"))
    return np.full(n_rows, np.nan) if name in NUMBERS else np.full(n_rows, None, dtype=object)


def _ids(rows: Rows) -> NDArray[np.object_]:
    """node/benchmark/start: what makes rows without an id one execution."""
    moments = rows["started_at"].astype("datetime64[us]").astype(str)
    told = zip(rows["node"], rows["benchmark"], moments, strict=True)
    return np.array([f"{node}/{benchmark}/{_short(moment)}" for node, benchmark, moment in told], dtype=object)


def _short(moment: str) -> str:
    return moment.removesuffix(".000000")
