"""The tables of Azure's VM noise study (Freischuetz et al., TUNA, EuroSys 2025): a row is one value of one test.

Columns: test_suite, test_name, lifespan, region, sku, unit, vm_id, started_at, runtime_s, value; any SKUs, regions and
tests. A node is lifespan-region-sku-vm_id, its type the SKU. Rows of one node, test and start are one execution: fio
writes IOPS, MiB/s and latency in rows of their own, told apart by the unit. A metric that stands twice in an execution
counts as in its last row."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.nodes.cells import times
from tasks.nodes.readers.azure_names import name_rows
from tasks.nodes.readers.azure_rows import Values, chunk_of
from tasks.nodes.readers.table_file import TableFile, choose_columns, column_names, read_table_file
from tasks.nodes.reading_params import ReadParams
from tasks.nodes.vetting import Check, Reasons, first_reasons, span_checks, time_checks
from tasks.reading import Chunk, all_refusals, no_refusals, refusals
from tasks.workloads.readers.tables import Numbers, as_numbers

NAMES = ("test_suite", "test_name", "lifespan", "region", "sku", "vm_id")
COLUMNS = (*NAMES, "unit", "started_at", "runtime_s", "value")
NEEDED = tuple((name,) for name in (*NAMES, "started_at", "value"))
OWN_COLUMNS = {"test_suite", "test_name", "sku", "vm_id", "value"}
CHUNK_EXECUTIONS = 250_000
MOST_RAW = 10_000  # refused rows whose text is kept: it is made one by one


@dataclass(frozen=True)
class AzureReader:
    """Reads tables in the layout of vm-noise-data."""

    name: str = "azure-vm-noise"
    version: int = 2
    title: str = "tables of Azure's VM noise study (.parquet, .csv)"
    endings: tuple[str, ...] = (".parquet", ".csv")
    has_local_nodes: bool = False

    def sniff(self, head: bytes, path: str) -> bool:
        """A header or footer with the columns that name test and machine."""
        return set(column_names(head, path)) >= OWN_COLUMNS

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """See Reader.read. Raises BadInput for a table without a column that is needed."""
        table = read_table_file(path, params.limits, as_codes=(*NAMES, "unit"))
        columns = choose_columns(table, COLUMNS, NEEDED, params.columns)
        n_rows = len(table.places)
        started, value = times(columns["started_at"], params.time_zone), as_numbers(columns["value"])
        nothing = Numbers(np.full(n_rows, np.nan), np.zeros(n_rows, dtype=bool))
        runtime = as_numbers(columns["runtime_s"]) if "runtime_s" in columns else nothing
        values = Values(
            named=name_rows(columns, n_rows),
            started_at=started.values,
            runtime_s=runtime.values,
            value=value.values,
            places=table.places,
            is_simulated=table.is_simulated,
        )
        yield from _chunks(table, values, _reasons(values, runtime.is_bad.astype(bool), params))


def _reasons(values: Values, has_odd_runtime: NDArray[np.bool_], params: ReadParams) -> Reasons:
    """Why each row cannot be used; empty where it can."""
    now, started, named = datetime.now(UTC).replace(tzinfo=None), values.started_at, values.named
    ended = np.full(len(started), np.datetime64("NaT", "us"))
    checks: list[Check] = [
        (named.node < 0, "no node; expected lifespan, region, sku and vm_id"),
        (named.test < 0, "no benchmark; expected test_suite and test_name"),
        (np.isnat(started), "started_at is no time; expected ISO 8601 or Unix time, in UTC"),
        (np.isnan(values.value), "value is no finite number; expected one"),
        *time_checks("started_at", started, now, params.future_slack_s),
        (has_odd_runtime, "runtime_s is no finite number; expected seconds"),
    ]
    spans = span_checks(started, ended, values.runtime_s)
    checks += [(is_bad, reason.replace("duration_s", "runtime_s")) for is_bad, reason in spans]
    reasons = first_reasons(len(started), checks)
    good = np.flatnonzero(reasons == "")
    keys = pd.DataFrame({"node": named.node, "test": named.test, "started": started, "metric": named.metric}).iloc[good]
    twice = good[keys.duplicated(keep="last").to_numpy()]
    reasons[twice] = "the metric stands again in a later row of this node, test and start, which counts"
    return reasons


def _chunks(table: TableFile, values: Values, reasons: Reasons) -> Iterator[Chunk]:
    bad = np.flatnonzero(reasons != "")
    raws = [table.raw(int(row)) for row in bad[:MOST_RAW]] + [""] * max(len(bad) - MOST_RAW, 0)
    refused = all_refusals([table.refused, refusals(table.places[bad], reasons[bad].tolist(), raws)])
    rows, heads = _executions(values, np.flatnonzero(reasons == ""))
    if not len(heads):
        yield Chunk(pd.DataFrame(), refused, {})
    edges = [*heads.tolist(), len(rows)]
    for first in range(0, len(heads), CHUNK_EXECUTIONS):
        last = min(first + CHUNK_EXECUTIONS, len(heads))
        own = rows[edges[first] : edges[last]]
        chunk = chunk_of(values, own, heads[first:last] - edges[first])
        yield Chunk(chunk.rows, refused if first == 0 else no_refusals(), chunk.tables)


def _executions(values: Values, good: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The usable rows by node, test and start, in their order within an execution; and where each execution begins."""
    test = values.named.node[good] * len(values.named.benchmarks) + values.named.test[good]
    started = values.started_at[good]
    order = np.lexsort((started, test))
    is_head = np.ones(len(order), dtype=bool)
    is_head[1:] = (np.diff(test[order]) != 0) | (started[order][1:] != started[order][:-1])
    return good[order], np.flatnonzero(is_head)
