"""The machines of a source, as its executions name them."""

from tasks.warehouse.connection import Connection
from tasks.warehouse.tables import LandedTable

UNKNOWN = "unknown"  # the type of a machine of which nobody says it


def register_machines(connection: Connection, table: LandedTable, source: str) -> None:
    """Bring ops.machines into line with the rows of a source: one row a node, with the type that it had last.

    table: where the column `node` stands. The caller holds the transaction."""
    values = {"source": source, "unknown": UNKNOWN}
    connection.execute(
        f"DELETE FROM ops.machines WHERE source = $source "
        f"AND node NOT IN (SELECT node FROM {table.qualified} WHERE source = $source)",
        {"source": source},
    )
    connection.execute(
        f"""INSERT INTO ops.machines
        WITH told AS (
            SELECT node, coalesce(
                arg_max(machine_type, (started_at, execution_id)) FILTER (machine_type IS NOT NULL), $unknown
            ) AS machine_type
            FROM {table.qualified} WHERE source = $source GROUP BY node
        ),
        final AS (
            SELECT $source AS source, told.node, told.machine_type
            FROM told LEFT JOIN ops.machines AS known ON known.source = $source AND known.node = told.node
            WHERE known.machine_type IS DISTINCT FROM told.machine_type
        )
        SELECT * FROM final ORDER BY node
        ON CONFLICT (source, node) DO UPDATE SET machine_type = excluded.machine_type""",
        values,
    )
