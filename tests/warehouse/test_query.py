"""Questions in SQL: answered read-only, refused in one line, and out of reach of files and settings."""

import pytest

from tasks.errors import BadInput, NoWarehouse
from tasks.warehouse.connection import fetch
from tasks.warehouse.query import ask

ROWS = [{"run_id": str(i), "runtime_s": float(i)} for i in range(5)]


@pytest.fixture
def filled(warehouse, put_in):
    put_in(warehouse, ROWS)
    return warehouse


def test_a_question_is_answered_with_its_rows(filled):
    answer = ask(filled, "SELECT run_id, runtime_s FROM jobs.runs ORDER BY run_id")
    assert answer.rows.to_pylist() == ROWS
    assert not answer.is_cut


@pytest.mark.parametrize(("limit", "n_rows", "is_cut"), [(0, 0, True), (4, 4, True), (5, 5, False), (9, 5, False)])
def test_a_limit_cuts_and_says_so(filled, limit, n_rows, is_cut):
    answer = ask(filled, "SELECT run_id FROM jobs.runs", limit=limit)
    assert (answer.rows.num_rows, answer.is_cut) == (n_rows, is_cut)


def test_columns_of_one_name_get_a_number(filled):
    assert ask(filled, "SELECT 1 AS a, 2 AS a, 3 AS a").rows.column_names == ["a", "a_2", "a_3"]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("DELETE FROM jobs.runs", "query: DELETE is no question"),
        ("DROP TABLE jobs.runs", "query: DROP is no question"),
        ("SET memory_limit = '9GB'", "query: SET is no question"),
        ("SELECT 1; SELECT 2", "query: 2 statements"),
        ("", "query: 0 statements"),
        ("SELECT nothing FROM jobs.runs", "query: Binder Error"),
        ("SELEC 1", "query: Parser Error"),
        ("SELECT * FROM read_text('/etc/passwd')", "query: Permission Error"),
    ],
)
def test_what_is_no_question_is_refused_in_one_line_and_changes_nothing(filled, sql, told):
    with pytest.raises(BadInput) as error:
        ask(filled, sql)
    assert str(error.value).startswith(told)
    assert "expected one SELECT over the tables of the warehouse" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(fetch(filled, "SELECT * FROM jobs.runs")) == 5


def test_there_is_nothing_to_ask_before_somebody_fills_the_warehouse(bare):
    with pytest.raises(NoWarehouse):
        ask(bare, "SELECT 1")
