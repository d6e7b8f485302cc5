"""Questions in SQL: answered read-only, refused in one line, and out of reach of files and settings."""

import os
import signal
import subprocess
import sys
import threading
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import psutil
import pytest

from tasks.errors import BadInput, NoWarehouse
from tasks.settings import Settings
from tasks.warehouse.connection import fetch, writing
from tasks.warehouse.lock import holders_of as lock_holders
from tasks.warehouse.query import BATCH_ROWS, ask, rows_of

ROWS = [{"run_id": str(i), "runtime_s": float(i)} for i in range(5)]


@pytest.fixture
def filled(warehouse, put_in):
    put_in(warehouse, ROWS)
    return warehouse


def test_a_question_is_answered_with_its_rows_and_a_limit_cuts_and_says_so(filled):
    for limit, n_rows, is_cut in ((0, 0, True), (4, 4, True), (5, 5, False)):
        answer = ask(filled, "SELECT run_id, runtime_s FROM jobs.runs ORDER BY run_id", limit=limit)
        assert (answer.rows.to_pylist(), answer.is_cut) == (ROWS[:n_rows], is_cut)


REFUSED = {
    "DELETE FROM jobs.runs": "query: DELETE is no question",
    "SELECT 1; SELECT 2": "query: 2 statements",
    "": "query: 0 statements",
    "SELECT nothing FROM jobs.runs": "query: Binder Error",
    "SELEC 1": "query: Parser Error",
    "SELECT * FROM read_text('/etc/passwd')": "query: Permission Error",
    "COPY (SELECT 1) TO '/tmp/out.csv'": "query: COPY is no question",
    "ATTACH '/tmp/other.duckdb'": "query: ATTACH is no question",
    "EXPLAIN ANALYZE DELETE FROM jobs.runs": "query: ",
    "SELECT * FROM query('DELETE FROM jobs.runs')": "query: ",
    "SELECT * FROM batches": "query: Catalog Error",  # no variable of the program is a table
}


def test_what_is_no_question_is_refused_in_one_line_and_changes_nothing(filled):
    for sql, told in REFUSED.items():
        with pytest.raises(BadInput) as error:
            ask(filled, sql)
        assert str(error.value).startswith(told)
        assert "expected one SELECT over the tables of the warehouse" in str(error.value)
        assert "\n" not in str(error.value)
    assert len(fetch(filled, "SELECT * FROM jobs.runs")) == 5


def test_there_is_nothing_to_ask_before_somebody_fills_the_warehouse(bare):
    with pytest.raises(NoWarehouse):
        ask(bare, "SELECT 1")


PAIRS = [
    ("TIMESTAMP '12000-01-01'", "12000-01-01 00:00:00"),
    ("TIMESTAMP_S '12000-01-01'", "12000-01-01 00:00:00"),
    ("TIMESTAMPTZ '12000-01-01 00:00:00+00'", "12000-01-01 00:00:00+00"),
    ("'infinity'::TIMESTAMP", "infinity"),
    ("'-infinity'::TIMESTAMP", "-infinity"),
    ("'infinity'::TIMESTAMPTZ", "infinity"),
    ("DATE '12000-01-01'", "12000-01-01"),
    ("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)"),
    ("'infinity'::DATE", "infinity"),
    ("INTERVAL '3 months 2 days'", "3 months 2 days"),
    ("INTERVAL '100000000 days'", "100000000 days"),
    ("170141183460469231731687303715884105727::HUGEINT", Decimal("170141183460469231731687303715884105727")),
    ("340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455"),
    ("'1' || repeat('0', 60)", "1" + "0" * 60),
    ("('1' || repeat('0', 60))::BIGNUM", "1" + "0" * 60),
    ("'infinity'::DOUBLE", "inf"),
    ("'-infinity'::FLOAT", "-inf"),
    ("'101'::BIT", "101"),
    ("TIME '24:00:00'", "24:00:00"),
    ("'12:00:00+05'::TIMETZ", "12:00:00+05"),
    ("[TIMESTAMP '12000-01-01']", "['12000-01-01 00:00:00']"),
    ("{'x': DATE '12000-01-01'}", "{'x': 12000-01-01}"),
    ("[INTERVAL 1 DAY]", "[1 day]"),
    ("[INTERVAL 1 DAY]::INTERVAL[1]", "[1 day]"),
    ("MAP {1: TIME '12:00:00'}", "{1='12:00:00'}"),
    ("union_value(k := INTERVAL 1 DAY)", "1 day"),
    ("TIMESTAMP '2026-01-01'", datetime(2026, 1, 1)),
    ("DATE '9999-12-31'", date(9999, 12, 31)),
    ("1.5::DOUBLE", 1.5),
    ("[1, 2]", [1, 2]),
    ("NULL", None),
    ("['infinity'::DOUBLE, 1.5, NULL]", ["inf", 1.5, None]),
    ("{'a': ['-infinity'::FLOAT], 'b': 1}", {"a": ["-inf"], "b": 1}),
    ("['infinity'::DOUBLE, 2.0]::DOUBLE[2]", ["inf", 2.0]),
    ("MAP {'k': 'infinity'::DOUBLE}", [("k", "inf")]),
]


def shown(warehouse, values):
    """Each value as it is shown, all asked for at once."""
    (row,) = rows_of(ask(warehouse, f"SELECT {', '.join(f'{sql} AS a{at}' for at, sql in enumerate(values))}").rows)
    return dict(zip(values, row.values(), strict=True))


def test_a_value_is_shown_in_full_alone_and_beside_others(warehouse):
    assert shown(warehouse, dict(PAIRS)) == dict(PAIRS)
    sql, value = PAIRS[0]
    assert shown(warehouse, [sql]) == {sql: value}


def test_values_that_python_knows_stay_what_they_are_beside_those_that_it_does_not(warehouse):
    sql = "SELECT unnest([TIMESTAMP '12000-01-01', TIMESTAMP '2026-01-01', NULL]) AS t, unnest([1.5, 'inf', NULL]) AS x"
    rows = list(rows_of(ask(warehouse, sql.replace("1.5, 'inf'", "1.5::DOUBLE, 'inf'::DOUBLE")).rows))
    assert [row["t"] for row in rows] == ["12000-01-01 00:00:00", datetime(2026, 1, 1), None]
    assert [row["x"] for row in rows] == [1.5, "inf", None]


def test_the_order_of_a_question_stays_where_a_column_becomes_text(warehouse):
    sql = "SELECT range AS a, INTERVAL 1 DAY AS i FROM range(50000) ORDER BY hash(range)"
    odd = 'SELECT INTERVAL 1 DAY AS "a ""b""", 2 AS c, INTERVAL 3 DAY AS c'  # and so do columns of odd and equal names
    assert list(rows_of(ask(warehouse, odd).rows)) == [{'a "b"': "1 day", "c": 2, "c_2": "3 days"}]
    shown = [row["a"] for row in rows_of(ask(warehouse, sql).rows)]
    assert shown == [row["a"] for row in rows_of(ask(warehouse, sql.replace("INTERVAL 1 DAY", "1")).rows)]
    assert len(shown) > BATCH_ROWS


@pytest.mark.parametrize(
    "sql", ["EXPLAIN SELECT INTERVAL 1 DAY", "PIVOT (SELECT 1 AS a, INTERVAL 1 DAY AS c) ON a USING first(c)"]
)
def test_questions_that_are_no_plain_select_are_shown_too(warehouse, sql):
    assert list(rows_of(ask(warehouse, sql).rows))


ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range, b.range) = 1"
MANY_ROWS = "SELECT a.range FROM range(1000000000) a, range(1000000000) b"


@pytest.mark.parametrize("sql", [ENDLESS, MANY_ROWS])
def test_a_query_beyond_its_limit_is_stopped_with_one_clear_line(warehouse, sql):
    with pytest.raises(BadInput) as error:
        ask(warehouse, sql, limit_s=0.05)
    assert str(error.value) == (
        "query: stopped after 0.05 s, its time limit: whoever wants to write waits for it; expected an answer within "
        "that time; ask for less, or allow more with --limit-s or whorl.query_limit_s (0: no limit)"
    )


def test_without_a_limit_a_query_takes_its_time(warehouse):
    assert ask(warehouse, "SELECT count(*) AS n FROM range(3000000)", limit_s=0).rows.to_pylist() == [{"n": 3_000_000}]


def test_the_shipped_limit_lets_a_writer_wait_for_it(warehouse):
    """Else a writer would give up while a query is still allowed to go on."""
    common = Settings().whorl
    assert 0 < common.query_limit_s < common.lock_wait_s


ONE_CALL = {
    "memory": "SELECT length(repeat('x', 4000000000))",
    "time": "SELECT levenshtein(repeat('ab', 200000), repeat('ba', 200000))",
}


@pytest.mark.parametrize("call", ONE_CALL)
def test_a_limit_binds_inside_one_call_of_a_function(warehouse, call):
    """By its time or by its memory: DuckDB itself looks for neither in there."""
    before = psutil.Process().children()
    with pytest.raises(BadInput, match=r"its time limit|MB that DuckDB may use|too little memory"):
        ask(warehouse, ONE_CALL[call], limit_s=0.5)
    with writing(warehouse.model_copy(update={"lock_wait_s": 0})):
        pass
    assert psutil.Process().children() == before


def test_memory_is_bounded_whatever_a_query_does(warehouse):
    """Rows that have left DuckDB count too."""
    with pytest.raises(BadInput, match="more than the 256 MB that DuckDB may use"):
        ask(warehouse, "SELECT repeat('x', 1000000) AS a, range FROM range(100000)")


ASKING = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts tests behind it ignores Ctrl-C
from tasks.warehouse.place import Warehouse
from tasks.warehouse.query import ask
ask(Warehouse(home=Path(sys.argv[1])), sys.argv[2])
"""


@pytest.fixture
def asking(warehouse):
    """Another program with an endless query at work, and the child that answers it."""
    with subprocess.Popen(
        [sys.executable, "-c", ASKING, str(warehouse.home), ENDLESS], stderr=subprocess.PIPE
    ) as other:
        while not holders_of(warehouse.home / ".lock"):
            assert other.poll() is None
        [child] = psutil.Process(other.pid).children()
        yield other, child
        other.kill()


def holders_of(lock: Path) -> list[int]:
    return lock_holders(lock) if lock.exists() else []


def test_a_query_ends_with_the_program_that_asks(warehouse, asking):
    other, child = asking
    other.kill()
    child.wait(60)
    with writing(warehouse.model_copy(update={"lock_wait_s": 0})):
        pass


def test_control_c_ends_the_query_too(warehouse, asking):
    other, child = asking
    other.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in other.communicate(timeout=60)[1]
    assert not child.is_running()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_query_whose_process_dies_is_one_clear_line(warehouse, how):
    def kill():
        while not holders_of(warehouse.home / ".lock"):
            pass
        [pid] = holders_of(warehouse.home / ".lock")
        os.kill(pid, how)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(BadInput) as error:
        ask(warehouse, ENDLESS)
    killer.join()
    assert str(error.value) == (
        f"query: its process was ended by {how.name}; often that means too little memory; "
        "expected a query that fits; ask for less"
    )


def test_no_module_of_the_working_folder_is_imported(warehouse, tmp_path, monkeypatch):
    (tmp_path / "duckdb.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert ask(warehouse, "SELECT 1 AS a").rows.to_pylist() == [{"a": 1}]
