"""Migrations: each once, in whole, unchanged, and in agreement with the code that fills the tables."""

import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tasks.errors import WarehouseBroken
from tasks.jobs.columns import ALL_COLUMNS, LIST_COLUMNS
from tasks.warehouse import migrations as schema
from tasks.warehouse.connection import fetch, opened, reading, writing
from tasks.warehouse.migrations import data_dictionary, described_tables

DUCKDB_TYPES = {"string": "VARCHAR", "timestamp[us]": "TIMESTAMP", "double": "DOUBLE", "bool": "BOOLEAN"}
DUCKDB_TYPES["int32"] = "INTEGER"
ADDED_BY_INGEST = {"source", "batch_id"}
VIEWS = {"vertices": "vertices", "skylines": "skyline", "run_skus": "skus"}


def duckdb_type(kind):
    if pa.types.is_list(kind):
        fields = ", ".join(f"{field.name} {duckdb_type(field.type)}" for field in kind.value_type)
        return f"STRUCT({fields})[]"
    return DUCKDB_TYPES[str(kind)]


@pytest.fixture
def connection():
    with duckdb.connect(":memory:") as connection:
        yield connection


def tables_of(connection):
    return {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_first.sql").write_text("CREATE TABLE first (a INTEGER);")
    return folder


def test_each_migration_is_recorded_with_its_hash_and_applied_once(connection):
    names = schema.migrate(connection)
    assert names == [migration.name for migration in schema.shipped()]
    ledger = schema.applied(connection)
    assert ledger == {one.version: (one.name, one.sha256) for one in schema.shipped()}
    assert schema.migrate(connection) == []


def test_a_failing_migration_leaves_nothing_of_itself_and_all_of_those_before(connection, folder):
    (folder / "0002_bad.sql").write_text("CREATE TABLE half (a INTEGER); INSERT INTO nowhere VALUES (1);")
    with pytest.raises(
        WarehouseBroken, match=r"memory: migration 0002_bad.sql failed \(Catalog Error: .*nowhere.*; mend"
    ):
        schema.migrate(connection, folder)
    assert tables_of(connection) == {"migrations", "first"}
    assert set(schema.applied(connection)) == {1}
    (folder / "0002_bad.sql").write_text("CREATE TABLE half (a INTEGER);")
    assert schema.migrate(connection, folder) == ["0002_bad.sql"]


def test_an_interrupted_migration_leaves_nothing_of_itself(connection, folder):
    class Interrupted:
        """A connection on which the ledger cannot be written: Ctrl-C arrives."""

        def execute(self, sql, *values):
            if "INSERT INTO ops.migrations" in sql:
                raise KeyboardInterrupt
            return connection.execute(sql, *values)

    with pytest.raises(KeyboardInterrupt):
        schema.migrate(Interrupted(), folder)
    assert tables_of(connection) == set()


def test_a_changed_migration_is_refused(connection, folder):
    schema.migrate(connection, folder)
    (folder / "0001_first.sql").write_text("CREATE TABLE first (a BIGINT);")
    with pytest.raises(WarehouseBroken, match=r"migration 0001_first.sql has changed since it was applied .*add a new"):
        schema.pending(connection, folder)


def test_a_newer_schema_is_refused(connection, folder):
    (folder / "0002_second.sql").write_text("CREATE TABLE second (a INTEGER);")
    schema.migrate(connection, folder)
    (folder / "0002_second.sql").unlink()
    with pytest.raises(
        WarehouseBroken, match=r"has migration 0002_second.sql, which this version .* use the newer whorl"
    ):
        schema.migrate(connection, folder)


def test_the_refusal_names_the_file(warehouse):
    with writing(warehouse) as connection:
        connection.execute("INSERT INTO ops.migrations VALUES (99, '0099_future.sql', 'abc', now()::TIMESTAMP)")
    with pytest.raises(WarehouseBroken, match=rf"^{warehouse.file}: has migration 0099_future.sql"):
        fetch(warehouse, "SELECT 1")


def test_an_older_warehouse_is_migrated_on_read_and_keeps_its_rows(bare, tmp_path):
    only_first = tmp_path / "old"
    only_first.mkdir()
    shutil.copy(schema.FOLDER / "0001_ops.sql", only_first)
    bare.home.mkdir()
    with opened(bare, bare.file, read_only=False) as connection:
        schema.migrate(connection, only_first)
        connection.execute("INSERT INTO ops.machines VALUES ('log', 'node-1', 'big')")
    with reading(bare) as connection:
        assert schema.pending(connection) == []
        assert connection.execute("SELECT node FROM ops.machines").fetchall() == [("node-1",)]
        assert connection.execute("SELECT count(*) FROM jobs.runs").fetchall() == [(0,)]


def test_a_duckdb_file_of_somebody_else_is_refused_where_names_clash(bare):
    bare.home.mkdir()
    with duckdb.connect(str(bare.file)) as connection:
        connection.execute("CREATE SCHEMA jobs; CREATE TABLE jobs.runs (mine TEXT)")
    with pytest.raises(WarehouseBroken, match=r"migration 0002_jobs.sql failed .*no whorl warehouse out of the way"):
        fetch(bare, "SELECT 1")


@pytest.fixture
def shipped(migrated):
    """A connection to an empty warehouse."""
    with duckdb.connect(str(migrated), read_only=True) as connection:
        yield connection


def test_the_columns_of_jobs_runs_are_those_that_readers_land(shipped):
    found = shipped.execute(
        "SELECT column_name, data_type, comment FROM duckdb_columns() "
        "WHERE schema_name = 'jobs' AND table_name = 'runs'"
    ).fetchall()
    made = {name: (kind, comment) for name, kind, comment in found if name not in ADDED_BY_INGEST}
    assert made == {name: (duckdb_type(kind), comment) for name, (kind, comment) in ALL_COLUMNS.items()}


def test_each_list_has_a_view_with_its_fields_behind_source_and_run(shipped):
    assert set(VIEWS.values()) == set(LIST_COLUMNS)
    for view, column in VIEWS.items():
        found = shipped.execute(f"SELECT column_name, column_type FROM (DESCRIBE jobs.{view})").fetchall()
        fields = [(field.name, duckdb_type(field.type)) for field in ALL_COLUMNS[column][0].value_type]
        assert found == [("source", "VARCHAR"), ("run_id", "VARCHAR"), *fields]


def test_every_column_of_every_table_has_a_comment(shipped):
    bare_columns = shipped.execute(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND NOT internal"
    ).fetchall()
    assert bare_columns == []


def test_migrations_are_read_as_utf_8_whatever_the_locale(tmp_path):
    (tmp_path / "0001_µ.sql").write_bytes("-- 5 µs\nSELECT 1".encode())
    assert "µs" in schema.shipped(Path(tmp_path))[0].sql


@pytest.fixture(scope="module")
def dictionary():
    return data_dictionary()


def test_every_table_and_column_stands_in_it_with_its_comment(dictionary, shipped):
    columns = shipped.execute(
        "SELECT schema_name || '.' || table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE NOT internal"
    ).fetchall()
    for table, name, kind, meaning in columns:
        section = dictionary.split(f"\n## {table}\n")[1].split("\n## ")[0]
        assert f"| `{name}` | {kind}" in section
        assert f"| {meaning} |" in section


def test_programs_get_the_same_tables_as_people(dictionary):
    found = described_tables()
    assert [f"\n## {name}\n" in dictionary for name in found] == [True] * len(found)
    column = found["jobs.runs"].columns["run_id"]
    assert (column.type, column.is_nullable) == ("VARCHAR", False)
    assert column.meaning == "native id of the run within its source"
    assert f"| `run_id` | VARCHAR, never missing | {column.meaning} |" in dictionary
