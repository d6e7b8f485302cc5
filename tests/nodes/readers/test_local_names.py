"""Names of a database hold in it alone: a table with the same ones never becomes the same machine or execution."""

import pytest

from tasks.errors import BadInput
from tasks.nodes import intake, steps
from tasks.nodes.reading_params import ReadParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.hashes import hash_tables
from tasks.warehouse.place import Warehouse

HEADER = "execution_id,node,benchmark,started_at,metric,value\n"
SHARED = "{} is in this source already, of .*run.db, whose names say nothing beyond it; expected another {}; read it"


@pytest.fixture
def warehouse(tmp_path):
    return Warehouse(home=tmp_path / "home", memory_mb=256, threads=1)


@pytest.fixture
def run_db(tmp_path, database):
    """set/run.db: execution 1 on worker-2, execution 2 on worker-3."""
    (tmp_path / "set").mkdir()
    rows = [{"id": "1", "node_id": "worker-2"}, {"id": "2", "node_id": "worker-3"}]
    return database(rows, [("1", "m", "1", 1.0, "s"), ("2", "m", "2", 2.0, "s")], name="set/run.db")


@pytest.fixture
def table(run_db):
    """A function that writes a table beside the database."""

    def write(name, *rows):
        path = run_db.with_name(name)
        path.write_text(HEADER + "".join(f"{execution},{node},x,2026-01-31,m,9\n" for execution, node in rows))
        return path

    return write


def put(warehouse, *paths, source="log"):
    for path in paths:
        steps.ingest_batch(warehouse, steps.land_executions(warehouse, str(path), source, "", ReadParams()))


def held(warehouse):
    sql = "SELECT execution_id, node, value FROM nodes.executions JOIN nodes.metrics USING (source, execution_id) "
    return [tuple(row) for row in fetch(warehouse, f"{sql} ORDER BY ALL").to_numpy().tolist()]


@pytest.mark.parametrize(
    ("rows", "what", "told"),
    [
        ([("a", "worker-2")], "node", "node 'worker-2'"),
        ([("a", "worker-3"), ("b", "n1"), ("c", "worker-2")], "node", r"node 'worker-2' \(and 1 more\)"),
        ([("a", "n1"), ("2", "n1")], "execution id", "execution id '2'"),
    ],
)
def test_a_table_behind_a_database_with_its_names_is_refused_as_a_whole(warehouse, run_db, table, rows, what, told):
    put(warehouse, run_db)
    before = hash_tables(warehouse)
    with pytest.raises(BadInput, match=SHARED.format(told, what)):
        put(warehouse, table("t.csv", *rows))
    assert hash_tables(warehouse) == before
    assert list((warehouse.home / "landing" / "nodes").glob(".reading-*")) == []


def test_a_table_with_names_of_its_own_is_read_behind_a_database_and_read_again(warehouse, run_db, table):
    path = table("t.csv", ("a", "n1"))
    put(warehouse, run_db, path, path, run_db)
    assert held(warehouse) == [("1", "worker-2", 1.0), ("2", "worker-3", 2.0), ("a", "n1", 9.0)]


def test_a_database_of_another_source_is_in_no_ones_way(warehouse, run_db, table):
    put(warehouse, run_db, source="other")
    put(warehouse, table("t.csv", ("1", "worker-2")))
    assert ("1", "worker-2", 9.0) in held(warehouse)


def test_in_one_call_a_database_gives_way_to_a_table(warehouse, run_db, table):
    table("t.csv", ("1", "worker-2"))
    files = steps.find_files([str(run_db.parent)], ReadParams())
    assert [path.rpartition("/")[2] for path in files] == ["t.csv", "run.db"]
    put(warehouse, *files)
    assert held(warehouse) == [("1", "worker-2", 9.0), ("run/1", "run/worker-2", 1.0), ("run/2", "run/worker-3", 2.0)]


def test_a_source_in_which_both_are_one_already_goes_on_as_it_was(warehouse, run_db, table, monkeypatch):
    put(warehouse, run_db)
    earlier = table("t.csv", ("a", "worker-2"))
    with monkeypatch.context() as before:
        before.setattr(intake, "not_shared", lambda chunks, *_: chunks)
        put(warehouse, earlier)
    put(warehouse, earlier, table("u.csv", ("b", "worker-2")))
    assert [row[:2] for row in held(warehouse)][2:] == [("a", "worker-2"), ("b", "worker-2")]
    with pytest.raises(BadInput, match=SHARED.format("node 'worker-3'", "node")):
        put(warehouse, table("v.csv", ("c", "worker-3")))
