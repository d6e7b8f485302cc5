"""The schema, one numbered SQL file after the other, each applied once, in a transaction of its own; its dictionary."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tasks.errors import WarehouseBroken
from tasks.warehouse.faults import first_line, of_duckdb

FOLDER = Path(__file__).parent / "migrations"
LEDGER = """
    CREATE SCHEMA IF NOT EXISTS ops;
    CREATE TABLE IF NOT EXISTS ops.migrations (
        version INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, applied_at TIMESTAMP NOT NULL
    );
    COMMENT ON COLUMN ops.migrations.version IS 'number of the migration, from 1 without gaps';
    COMMENT ON COLUMN ops.migrations.name IS 'file name in tasks/warehouse/migrations';
    COMMENT ON COLUMN ops.migrations.sha256 IS 'hash of the file when it was applied';
    COMMENT ON COLUMN ops.migrations.applied_at IS 'when it was applied, UTC';
"""


@dataclass(frozen=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Hash of its text: a migration that was applied may never change."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped(folder: Path = FOLDER) -> list[Migration]:
    """The migrations of this version of whorl, in order."""
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return [Migration(int(file.name[:4]), file.name, file.read_text(encoding="utf-8")) for file in files]


def applied(connection: duckdb.DuckDBPyConnection) -> dict[int, tuple[str, str]]:
    """Version to (name, hash) of what this warehouse has; empty for a new one."""
    try:
        rows = connection.execute("SELECT version, name, sha256 FROM ops.migrations").fetchall()
    except duckdb.CatalogException:  # asking duckdb_tables() first would cost every open 20 ms
        return {}
    return {version: (name, sha256) for version, name, sha256 in rows}


def pending(connection: duckdb.DuckDBPyConnection, folder: Path = FOLDER) -> list[Migration]:
    """What has still to be applied.

    Raises WarehouseBroken if an applied migration has changed, or is newer than this version of whorl."""
    done, ours = applied(connection), shipped(folder)
    for version, (name, sha256) in done.items():
        match = next((migration for migration in ours if migration.version == version), None)
        if match is None:
            raise WarehouseBroken(
                f"{_file_of(connection)}: has migration {name}, which this version of whorl does not know; "
                "use the newer whorl that wrote it, or rebuild the warehouse with 'whorl warehouse rebuild'"
            )
        if match.sha256 != sha256:
            raise WarehouseBroken(
                f"{_file_of(connection)}: migration {match.name} has changed since it was applied "
                f"(sha256 {sha256[:12]} then, {match.sha256[:12]} now); restore the file and add a new one instead"
            )
    return [migration for migration in ours if migration.version not in done]


def migrate(connection: duckdb.DuckDBPyConnection, folder: Path = FOLDER) -> list[str]:
    """Apply what is pending, each migration with its ledger row in one transaction; returns their names.

    Raises WarehouseBroken, naming the migration, if one fails: nothing of that one stays."""
    todo = pending(connection, folder)
    file = _file_of(connection) if todo else ""
    for migration in todo:
        try:
            with transaction(connection):
                connection.execute(LEDGER)
                connection.execute(migration.sql)
                connection.execute(
                    "INSERT INTO ops.migrations VALUES (?, ?, ?, now()::TIMESTAMPTZ AT TIME ZONE 'UTC')",
                    [migration.version, migration.name, migration.sha256],
                )
        except duckdb.Error as error:
            raise of_duckdb(file, error) or WarehouseBroken(
                f"{file}: migration {migration.name} failed ({first_line(error)}); nothing of it "
                "stays; mend it, or move a file that is no whorl warehouse out of the way"
            ) from error
    return [migration.name for migration in todo]


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All of the block or nothing of it."""
    connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        with suppress(duckdb.Error):  # DuckDB may have rolled back by itself; the first error is the one to tell
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _file_of(connection: duckdb.DuckDBPyConnection) -> str:
    cursor = connection.execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()")
    path, *_ = cursor.fetchone() or ("",)
    return str(path or "warehouse in memory")


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
        f"| `{column}` | {about.type}{'' if about.is_nullable else ', never missing'} | {about.meaning} |"
        for column, about in table.columns.items()
    ]
    head = [f"\n## {name}\n", f"{table.meaning}\n", "| column | type | meaning |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"
