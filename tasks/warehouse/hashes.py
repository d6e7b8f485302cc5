"""A hash of each table: whether two warehouses, or one before and after, hold the same rows.

Hashing reads every row, so it is also how a damaged file shows: DuckDB checks each block that it reads."""

from dataclasses import dataclass
from pathlib import Path

from tasks.errors import WarehouseBroken
from tasks.warehouse.connection import Connection, opened, reading
from tasks.warehouse.place import Warehouse


@dataclass(frozen=True)
class TableHash:
    """One table: its rows and a hash over them that does not depend on their order."""

    table: str
    n_rows: int
    hash: str


def hash_tables(warehouse: Warehouse) -> list[TableHash]:
    """The hash of every table, by name. It is the sum of 128-bit hashes of the rows, so a doubled row shows.

    Raises WarehouseBroken for a damaged file."""
    with reading(warehouse) as connection:
        return hashes_of(connection)


def hashes_of(connection: Connection) -> list[TableHash]:
    """The same of the file of an open connection."""
    return [_hash(connection, name) for name in _names(connection)]


def damaged_tables(warehouse: Warehouse, file: Path) -> list[str]:
    """The tables of a file that cannot be read in whole; the caller holds the lock.

    Raises WarehouseBroken if not even their names can be read."""
    with opened(warehouse, file, read_only=True) as connection:
        names = _names(connection)
    damaged: list[str] = []
    while names:
        try:
            with opened(warehouse, file, read_only=True) as connection:  # anew after each: DuckDB may have given up
                while names:
                    _hash(connection, names[0])
                    names.pop(0)
        except WarehouseBroken:
            damaged.append(names.pop(0))
    return damaged


def _names(connection: Connection) -> list[str]:
    found = connection.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL"
    ).fetchall()
    return [str(name) for (name,) in found]


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
