"""Rows that hold an answer, with what it rests on: written as a whole in the place of those before, and read back."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from tasks.warehouse.connection import Connection, fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version


def key_of(*rests_on: object) -> str:
    """A key of what an answer rests on, this code included: the same key, the same answer."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{rests_on}{code_version()}").hex


def now() -> datetime:
    """UTC, without a time zone, as tables have times."""
    return datetime.now(UTC).replace(tzinfo=None)


def read_row(warehouse: Warehouse, table: str, source: str) -> dict[str, Any] | None:
    """The row of a source in a table (`word.name`) that has one a source; None where there is none."""
    found = fetch(warehouse, f"SELECT * FROM {table} WHERE source = $source", {"source": source})
    return {str(key): value for key, value in found.iloc[0].items()} if len(found) else None


def replace_rows(
    warehouse: Warehouse,
    word: str,
    about: Mapping[str, Any],
    frames: Mapping[str, pd.DataFrame],
    within: Sequence[str] = ("source",),
) -> None:
    """Put rows into tables of a word in the place of those before, all tables or none.

    frames: by table. about: columns of all rows, beside their own; rows that have the same of `within` are replaced."""
    same, of = " AND ".join(f"{name} = ${name}" for name in within), {name: about[name] for name in within}
    with writing(warehouse) as connection, transaction(connection):
        for name, frame in frames.items():
            connection.execute(f"DELETE FROM {word}.{name} WHERE {same}", of).fetchall()
            insert_rows(connection, f"{word}.{name}", frame, about)


def insert_rows(connection: Connection, table: str, rows: pd.DataFrame | pa.Table, about: Mapping[str, Any]) -> None:
    """Append rows to a table, each with the columns of `about` beside its own; none is nothing to do.

    A machine_type of which nobody knows anything ("") becomes NULL."""
    if not len(rows):
        return
    if isinstance(rows, pd.DataFrame):
        if "machine_type" in rows:
            rows = rows.assign(machine_type=rows["machine_type"].replace("", None))
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    connection.register("new_rows", rows)
    columns = ", ".join(f"${name} AS {name}" for name in about)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT {columns}, * FROM new_rows", dict(about)).fetchall()
    connection.unregister("new_rows")
