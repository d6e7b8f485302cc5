"""The engine under test: vertices and their merge, locks, spilling, cold input, and errors as results."""

import fcntl
import json
import threading
from dataclasses import replace

import duckdb
import pyarrow.parquet as pq
import pytest

from tasks.jobs.record import engine
from tasks.jobs.record.engine import read_plan
from tasks.jobs.record.templates import Order, PlannerEstimate

SUMS = Order("v", "SELECT region, sum(total) AS total FROM {input} GROUP BY region", "orders", (62, 4), "parquet", ())


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    made = engine.connect(tmp_path_factory.mktemp("spilled"))
    yield made
    made.close()


def test_data_are_the_same_for_the_same_seed_and_others_for_another(data_folder, tmp_path):
    connection, data_set = duckdb.connect(), engine.DATA_SETS["orders"]
    (tmp_path / data_set.name).mkdir()
    for seed, is_same in ((7, True), (8, False)):
        connection.execute(engine.MACROS.format(seed=seed))
        engine.write_part(connection, data_set, tmp_path, 63, 50)
        made, kept = (pq.read_table(folder / data_set.path(63)) for folder in (tmp_path, data_folder))
        assert made.equals(kept) == is_same


@pytest.mark.slow
def test_data_sets_are_made_once_and_anew_for_another_size_or_seed(tmp_path):
    def made():
        return (tmp_path / "complete").stat().st_mtime_ns, pq.read_table(tmp_path / "orders/part-0063.parquet")

    engine.build_data(tmp_path, 0.0002, 7)
    at, rows = made()
    engine.build_data(tmp_path, 0.0002, 7)
    assert made() == (at, rows)
    engine.build_data(tmp_path, 0.0004, 7)
    assert made()[1].num_rows == 2 * rows.num_rows
    engine.build_data(tmp_path, 0.0002, 8)
    assert not made()[1].equals(rows)


def test_a_vertex_reads_its_own_parts_and_wraps_around_at_the_last(connection, data_folder, tmp_path):
    counted = replace(SUMS, sql="SELECT list_sort(list(DISTINCT part)) AS parts, count(*) AS n FROM {input}")
    measured = engine.run_vertex(connection, replace(counted, result=str(tmp_path / "r")), data_folder)
    assert pq.read_table(tmp_path / "r").to_pylist() == [{"parts": [0, 1, 62, 63], "n": 200}]
    assert (measured.error, measured.input_rows) == ("", 200)


def test_vertices_and_their_merge_give_what_the_whole_query_gives(connection, data_folder, tmp_path):
    halves = [replace(SUMS, parts=(first, 2), result=str(tmp_path / f"{first}")) for first in (10, 12)]
    for half in halves:
        assert engine.run_vertex(connection, half, data_folder).error == ""
    merge = Order(
        "m", "SELECT region, round(sum(total), 2) AS total FROM {partials} GROUP BY region ORDER BY region", "orders",
        None, "parquet", (), partials=tuple(half.result for half in halves), result=str(tmp_path / "merged"),
    )  # fmt: skip
    assert engine.run_vertex(connection, merge, data_folder).error == ""
    whole = replace(
        SUMS,
        parts=(10, 4),
        sql="SELECT region, round(sum(total), 2) AS total FROM {input} GROUP BY region ORDER BY region",
        result=str(tmp_path / "whole"),
    )
    assert engine.run_vertex(connection, whole, data_folder).error == ""
    assert pq.read_table(tmp_path / "merged").equals(pq.read_table(tmp_path / "whole"))


def test_a_table_is_read_by_its_range_of_parts_and_a_csv_by_its_files(connection, data_folder, tmp_path):
    count = "SELECT count(*) AS n FROM {input}"
    table = Order("t", count, "orders", (3, 2), "table", ("sales",), result=str(tmp_path / "t"))
    csv = Order("c", count, "weblog", (3, 2), "csv", (), result=str(tmp_path / "c"))
    for order, n in ((table, 100), (csv, 30)):
        assert engine.run_vertex(connection, order, data_folder).error == ""
        assert pq.read_table(order.result).to_pylist() == [{"n": n}]


def test_a_writer_changes_its_database_and_leaves_it_whole_for_the_next_reader(connection, data_folder):
    write = Order(
        "w", "CREATE OR REPLACE TABLE sales.tried AS FROM {input}", "orders", (0, 2), "parquet", (), writes="sales"
    )
    assert engine.run_vertex(connection, write, data_folder).error == ""
    read = Order("r", "SELECT sum(total) FROM sales.tried", "orders", None, "parquet", ("sales",))
    measured = engine.run_vertex(connection, read, data_folder)
    assert (measured.error, measured.input_rows) == ("", 100)
    assert not (data_folder / "sales.duckdb.wal").exists()


def test_a_reader_may_not_write(connection, data_folder):
    order = Order("r", "CREATE TABLE sales.stolen AS SELECT 1", "orders", None, "parquet", ("sales",))
    assert "read-only" in engine.run_vertex(connection, order, data_folder).error


def test_an_error_of_the_engine_is_a_result_and_the_next_vertex_runs(connection, data_folder):
    wrong = engine.run_vertex(connection, replace(SUMS, sql="SELECT nothing FROM {input}"), data_folder)
    assert "nothing" in wrong.error
    assert "\n" not in wrong.error
    assert (wrong.query_s, wrong.input_rows) == (0.0, 0)
    assert engine.run_vertex(connection, SUMS, data_folder).error == ""


def test_an_engine_that_refuses_all_that_follows_ends_its_worker(data_folder):
    class Broken:
        def execute(self, sql):
            raise duckdb.FatalException("database has been invalidated")

    with pytest.raises(duckdb.FatalException):
        engine.run_vertex(Broken(), SUMS, data_folder)


def test_a_query_beyond_its_memory_spills_and_the_spill_is_measured(connection, data_folder):
    many = "SELECT comment || range AS text, count(*) FROM {input} CROSS JOIN range(200) GROUP BY ALL"
    small, enough = (replace(SUMS, sql=many, parts=(0, 40), memory_mb=memory) for memory in (32, 512))
    spilled = engine.run_vertex(connection, small, data_folder)
    assert spilled.error == ""
    assert spilled.temp_bytes > 1_000_000
    assert engine.run_vertex(connection, enough, data_folder).temp_bytes == 0


def test_a_reader_waits_for_a_writers_lock_and_the_wait_is_measured(connection, data_folder, monkeypatch):
    order = Order("r", "SELECT 1", "orders", None, "parquet", ("sales",))
    taken, flock = threading.Event(), fcntl.flock
    with (data_folder / "sales.lock").open("rb") as held:
        flock(held, fcntl.LOCK_EX)

        def free_when_asked(handle, how):
            taken.set()
            flock(handle, how)

        def let_go():
            taken.wait(10)
            flock(held, fcntl.LOCK_UN)

        monkeypatch.setattr(engine.fcntl, "flock", free_when_asked)
        other = threading.Thread(target=let_go)
        other.start()
        measured = engine.run_vertex(connection, order, data_folder)
        other.join()
    assert measured.error == ""
    assert measured.lock_wait_s > 0
    assert measured.lock_wait_s + measured.query_s <= measured.runtime_s


@pytest.mark.parametrize(("writes", "others_may_read"), [("sales", False), (None, True)])
def test_a_writer_holds_its_database_alone_and_readers_share_it(data_folder, writes, others_may_read):
    order = Order("r", "SELECT 1", "orders", None, "parquet", ("dims", "sales"), writes=writes)
    with engine._locked(order, data_folder), (data_folder / "sales.lock").open("rb") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            was_free = True
        except BlockingIOError:
            was_free = False
    assert was_free == others_may_read


def test_locks_are_taken_in_one_order_so_that_nobody_waits_in_a_circle(data_folder, monkeypatch):
    seen = []
    monkeypatch.setattr(engine.fcntl, "flock", lambda handle, how: seen.append((handle.name.rpartition("/")[2], how)))
    order = Order("r", "SELECT 1", "orders", None, "parquet", ("web", "dims"), writes="sales")
    with engine._locked(order, data_folder):
        assert seen == [
            ("dims.lock", fcntl.LOCK_SH), ("sales.lock", fcntl.LOCK_EX), ("web.lock", fcntl.LOCK_SH)
        ]  # fmt: skip


def test_a_cold_run_drops_its_own_input_and_no_other(connection, data_folder, monkeypatch):
    dropped = []
    monkeypatch.setattr(engine.os, "posix_fadvise", lambda handle, first, size, how: dropped.append(how))
    engine.run_vertex(connection, SUMS, data_folder)
    assert dropped == []
    engine.run_vertex(connection, replace(SUMS, is_cold=True), data_folder)
    assert dropped == [engine.os.POSIX_FADV_DONTNEED] * 4
    table = Order("t", "SELECT 1", "orders", (3, 2), "table", ("sales", "dims"))
    assert engine.input_files(table, data_folder) == [data_folder / "sales.duckdb"]


def test_planning_waits_for_no_writer(connection, data_folder):
    order = Order(
        "p", "SELECT count(*) FROM {input} JOIN dims.customers USING (customer_id)", "orders", (0, 8), "table",
        ("sales", "dims"), is_explain=True,
    )  # fmt: skip
    with engine._locked(replace(order, writes="sales"), data_folder):
        planner = engine.connect(data_folder / "temp")
        planned = engine.explain(planner, order, data_folder)
        planner.close()
    assert planned.error == ""
    assert sum(count for name, count in planned.operators.items() if "JOIN" in name) == 1
    assert planned.estimated_cost >= planned.estimated_rows > 0


def test_a_plan_of_nonsense_is_an_error_and_no_exception(connection, data_folder):
    planner = engine.connect(data_folder / "temp")
    planned = engine.explain(planner, replace(SUMS, sql="SELECT nothing FROM {input}"), data_folder)
    planner.close()
    assert "nothing" in planned.error
    assert planned.signature is None


@pytest.fixture(scope="module")
def explain():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS a, i % 7 AS b, 'x' || i AS c FROM range(1000) AS r(i)")

    def plan_of(sql: str) -> PlannerEstimate:
        return read_plan(connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[0][1])

    yield plan_of
    connection.close()


def test_literals_do_not_change_the_signature(explain):
    one = explain("SELECT b, sum(a) FROM t WHERE a > 5 AND c LIKE 'x1%' GROUP BY b ORDER BY b")
    other = explain("SELECT b, sum(a) FROM t WHERE a > 77 AND c LIKE 'x9%' GROUP BY b ORDER BY b")
    assert one.signature == other.signature


@pytest.mark.parametrize(
    "changed",
    [
        "SELECT b, sum(a) FROM t WHERE a > 5 GROUP BY b ORDER BY b",
        "SELECT b, max(a) FROM t WHERE a > 5 GROUP BY b",
        "SELECT b, sum(a) FROM t WHERE a > 5 GROUP BY b LIMIT 3",
        "SELECT t.b, sum(t.a) FROM t JOIN t AS u ON t.a = u.b WHERE t.a > 5 GROUP BY t.b",
        "SELECT t.b, sum(t.a) FROM t LEFT JOIN t AS u ON t.a = u.b WHERE t.a > 5 GROUP BY t.b",
    ],
)
def test_operators_join_types_and_aggregates_change_the_signature(explain, changed):
    assert explain(changed).signature != explain("SELECT b, sum(a) FROM t WHERE a > 5 GROUP BY b").signature


def _node(name, *children, **info):
    return {"name": name, "children": list(children), "extra_info": info}


def test_operators_are_counted_and_the_cost_is_the_sum_of_all_estimates():
    scan = _node("SEQ_SCAN ", **{"Estimated Cardinality": "100"})
    join = _node("HASH_JOIN", scan, scan, **{"Estimated Cardinality": "40"})
    plan = read_plan(json.dumps([_node("PROJECTION", join)]))
    assert plan.operators == {"HASH_JOIN": 1, "PROJECTION": 1, "SEQ_SCAN": 2}
    assert plan.estimated_rows == 40  # the topmost operator that has an estimate
    assert plan.estimated_cost == 240


def test_a_plan_without_estimates_costs_nothing():
    plan = read_plan(json.dumps([_node("EMPTY_RESULT")]))
    assert (plan.estimated_rows, plan.estimated_cost) == (0.0, 0.0)


def test_a_projection_that_the_optimiser_adds_is_not_another_plan():
    bare = read_plan(json.dumps([_node("ORDER_BY", _node("SEQ_SCAN"))]))
    cast = read_plan(json.dumps([_node("ORDER_BY", _node("PROJECTION", _node("SEQ_SCAN")))]))
    assert bare.signature == cast.signature
    assert bare.operators != cast.operators
