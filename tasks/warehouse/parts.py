"""The rows that belong to a row of a main table, such as the counters of a run: they come and go with it."""

from collections.abc import Sequence
from contextlib import ExitStack

from tasks.warehouse import landing
from tasks.warehouse.connection import Connection
from tasks.warehouse.landing import Batch
from tasks.warehouse.literals import as_text, parquet
from tasks.warehouse.tables import LandedTable


def forget_parts(connection: Connection, table: LandedTable, keys: str, source: str) -> None:
    """Remove the parts of rows of a source; keys: a query for the keys of these rows."""
    for part in table.qualified_parts:
        connection.execute(f"DELETE FROM {part} WHERE source = ? AND {table.key} IN ({keys})", [source])


def put_parts(
    connection: Connection, table: LandedTable, folder: str, source: str, batches: Sequence[Batch], chosen: str
) -> None:
    """Insert the parts of rows that were put into the main table.

    chosen: a query for batch_id and place of these rows; their parts stand in the landing files of the batches."""
    for part, target in zip(table.parts, table.qualified_parts, strict=True):
        for batch in batches:
            with ExitStack() as stack:
                path = stack.enter_context(landing.local_file(folder, batch, part))
                connection.execute(
                    f"""INSERT INTO {target} BY NAME
                    SELECT * EXCLUDE (place), ? AS source, {as_text(batch.batch_id)} AS batch_id
                    FROM {parquet(str(path))} WHERE place IN (SELECT place FROM ({chosen}) WHERE batch_id = ?)""",
                    [source, batch.batch_id],
                )
