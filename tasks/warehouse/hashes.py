"""A hash of each table: whether two warehouses, or one before and after, hold the same rows."""

from dataclasses import dataclass

from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse


@dataclass(frozen=True)
class TableHash:
    """One table: its rows and a hash over them that does not depend on their order."""

    table: str
    n_rows: int
    hash: str


def hash_tables(warehouse: Warehouse) -> list[TableHash]:
    """The hash of every table, by name. It is the sum of 128-bit hashes of the rows, so a doubled row shows."""
    with reading(warehouse) as connection:
        names = connection.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL"
        ).fetchall()
        return [_hash(connection, name) for (name,) in names]


def _hash(connection: Connection, name: str) -> TableHash:
    found = connection.execute(
        f"""WITH texts AS (SELECT rows::VARCHAR AS line FROM {name} AS rows),
        final AS (
            SELECT count(*) AS n_rows,
                coalesce(sum(md5_number_upper(line)::HUGEINT), 0) AS upper,
                coalesce(sum(md5_number_lower(line)::HUGEINT), 0) AS lower
            FROM texts
        )
        SELECT n_rows, left(sha256(concat_ws(' ', n_rows, upper, lower)), 16) FROM final"""
    ).fetchone()
    n_rows, digest = found or (0, "")
    return TableHash(name, int(n_rows), str(digest))
