"""The data dictionary: every table and column of the schema, with type and meaning."""

import duckdb
import pytest

from tasks.warehouse.dictionary import data_dictionary, described_tables
from tasks.warehouse.migrations import migrate


def test_every_table_and_column_stands_in_it_with_its_comment():
    text = data_dictionary()
    with duckdb.connect(":memory:") as connection:
        migrate(connection)
        columns = connection.execute(
            "SELECT schema_name || '.' || table_name, column_name, data_type, comment FROM duckdb_columns() "
            "WHERE NOT internal"
        ).fetchall()
    for table, name, kind, meaning in columns:
        section = text.split(f"\n## {table}\n")[1].split("\n## ")[0]
        assert f"| `{name}` | {kind}" in section
        assert f"| {meaning} |" in section


def test_columns_that_are_never_missing_are_marked():
    assert "| `run_id` | VARCHAR, never missing | native id of the run within its source |" in data_dictionary()


@pytest.mark.slow
def test_programs_get_the_same_tables_as_people():
    found = described_tables()
    assert [f"\n## {name}\n" in data_dictionary() for name in found] == [True] * len(found)
    column = found["jobs.runs"].columns["run_id"]
    assert (column.type, column.is_nullable) == ("VARCHAR", False)
    assert column.meaning == "native id of the run within its source"
