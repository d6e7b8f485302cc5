"""workloads.phases and workloads.run_phases: written run by run, and which runs have theirs."""

from collections.abc import Sequence

import pyarrow as pa

from tasks.warehouse.connection import Connection, fetch, transaction, writing
from tasks.warehouse.place import Warehouse

TABLES = ("workloads.phases", "workloads.run_phases")
GONE = "run_id NOT IN (SELECT run_id FROM workloads.runs WHERE source = $source)"


def known_keys(warehouse: Warehouse, source: str) -> dict[str, str]:
    """By run of a source the key of the phases that it has."""
    found = fetch(
        warehouse,
        "SELECT DISTINCT run_id, key FROM workloads.run_phases WHERE source = $source ORDER BY run_id",
        {"source": source},
    )
    return dict(zip(found["run_id"], found["key"], strict=True))


def write_phases(warehouse: Warehouse, source: str, rows: pa.Table) -> int:
    """Put the phases of some runs in the place of those that they had, in one transaction; returns how many runs.

    rows: as phase_parts.PHASES_SCHEMA. Phases of runs that the source does not have any more go as well."""
    run_ids = sorted(set(rows["run_id"].to_pylist()))
    with writing(warehouse) as connection, transaction(connection):
        _forget(connection, source, run_ids)
        connection.register("new_rows", rows)
        connection.execute(
            "INSERT INTO workloads.phases BY NAME SELECT $source AS source, * FROM new_rows "
            "WHERE counter IS NOT NULL ORDER BY run_id, counter, phase",
            {"source": source},
        ).fetchall()
        connection.execute(
            "INSERT INTO workloads.run_phases BY NAME "
            "SELECT $source AS source, run_id, key, phase, start_sample, end_sample FROM new_rows "
            "WHERE counter IS NULL ORDER BY run_id, phase",
            {"source": source},
        ).fetchall()
        connection.unregister("new_rows")
    return len(run_ids)


def _forget(connection: Connection, source: str, run_ids: Sequence[str]) -> None:
    for table in TABLES:
        connection.execute(
            f"DELETE FROM {table} WHERE source = $source AND (list_contains($run_ids, run_id) OR {GONE})",
            {"source": source, "run_ids": list(run_ids)},
        ).fetchall()
