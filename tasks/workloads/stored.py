"""Runs from the warehouse into memory."""

from collections.abc import Sequence

from tasks.warehouse.connection import fetch_arrow
from tasks.warehouse.place import Warehouse
from tasks.workloads.landed import as_telemetry
from tasks.workloads.telemetry import Telemetry

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
