"""The data dictionary: every table and column with its meaning, from the comments in the migrations."""

import duckdb

from tasks.warehouse.migrations import migrate

TITLE = """# Data dictionary

Written by `whorl warehouse dictionary` from the comments of the migrations.
Times are UTC; quantities end in their unit.
"""


def data_dictionary() -> str:
    """All tables of the newest schema as Markdown."""
    with duckdb.connect(":memory:") as connection:
        migrate(connection)
        tables = connection.execute(
            "SELECT schema_name, table_name, comment FROM duckdb_tables() ORDER BY schema_name, table_name"
        ).fetchall()
        return TITLE + "".join(_table(connection, *table) for table in tables)


def _table(connection: duckdb.DuckDBPyConnection, schema: str, table: str, comment: str | None) -> str:
    columns = connection.execute(
        "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() "
        "WHERE schema_name = ? AND table_name = ? ORDER BY column_index",
        [schema, table],
    ).fetchall()
    rows = [
        f"| `{name}` | {kind}{'' if is_nullable else ', never missing'} | {meaning or ''} |"
        for name, kind, is_nullable, meaning in columns
    ]
    head = [f"\n## {schema}.{table}\n", f"{comment or ''}\n", "| column | type | meaning |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"
