"""The data dictionary: every table, view and column with its meaning, from the comments in the migrations."""

from dataclasses import dataclass

import duckdb

from tasks.warehouse.migrations import migrate

TITLE = """# Data dictionary

Written by `whorl warehouse dictionary` from the comments of the migrations.
Times are UTC; quantities end in their unit.
"""


@dataclass(frozen=True)
class DescribedColumn:
    """One column, with its type in DuckDB's words."""

    type: str
    is_nullable: bool
    meaning: str


@dataclass(frozen=True)
class DescribedTable:
    """One table or view with its columns in their order."""

    meaning: str
    columns: dict[str, DescribedColumn]


def described_tables() -> dict[str, DescribedTable]:
    """All tables and views of the newest schema, by name with schema, in alphabetical order."""
    with duckdb.connect(":memory:") as connection:
        migrate(connection)
        tables = connection.execute(
            "SELECT schema_name, table_name, comment FROM duckdb_tables() "
            "UNION ALL SELECT schema_name, view_name, 'View. ' || comment FROM duckdb_views() WHERE NOT internal "
            "ORDER BY schema_name, table_name"
        ).fetchall()
        return {f"{schema}.{name}": _described(connection, schema, name, comment) for schema, name, comment in tables}


def _described(connection: duckdb.DuckDBPyConnection, schema: str, table: str, comment: str | None) -> DescribedTable:
    columns = connection.execute(
        "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() "
        "WHERE schema_name = ? AND table_name = ? ORDER BY column_index",
        [schema, table],
    ).fetchall()
    described = {name: DescribedColumn(kind, is_null, meaning or "") for name, kind, is_null, meaning in columns}
    return DescribedTable(comment or "", described)


def data_dictionary() -> str:
    """All tables and views of the newest schema as Markdown."""
    return TITLE + "".join(_section(name, table) for name, table in described_tables().items())


def _section(name: str, table: DescribedTable) -> str:
    rows = [
        f"| `{column}` | {one.type}{'' if one.is_nullable else ', never missing'} | {one.meaning} |"
        for column, one in table.columns.items()
    ]
    head = [f"\n## {name}\n", f"{table.meaning}\n", "| column | type | meaning |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"
