"""Values that neither Arrow nor Python can hold: shown as DuckDB writes them, beside those that they can."""

from datetime import date, datetime
from decimal import Decimal

import pytest

from tasks.warehouse.query import ask
from tasks.warehouse.values import BATCH_ROWS, rows_of

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
]


@pytest.mark.parametrize(("sql", "value"), PAIRS)
def test_a_value_is_shown_in_full(warehouse, sql, value):
    (row,) = rows_of(ask(warehouse, f"SELECT {sql} AS a, 1 AS b").rows)
    assert row == {"a": value, "b": 1}


def test_values_that_python_knows_stay_what_they_are_beside_those_that_it_does_not(warehouse):
    sql = "SELECT unnest([TIMESTAMP '12000-01-01', TIMESTAMP '2026-01-01', NULL]) AS t, unnest([1.5, 'inf', NULL]) AS x"
    rows = list(rows_of(ask(warehouse, sql.replace("1.5, 'inf'", "1.5::DOUBLE, 'inf'::DOUBLE")).rows))
    assert [row["t"] for row in rows] == ["12000-01-01 00:00:00", datetime(2026, 1, 1), None]
    assert [row["x"] for row in rows] == [1.5, "inf", None]


def test_the_order_of_a_question_stays_where_a_column_becomes_text(warehouse):
    sql = "SELECT range AS a, INTERVAL 1 DAY AS i FROM range(50000) ORDER BY hash(range)"
    shown = [row["a"] for row in rows_of(ask(warehouse, sql).rows)]
    assert shown == [row["a"] for row in rows_of(ask(warehouse, sql.replace("INTERVAL 1 DAY", "1")).rows)]
    assert len(shown) > BATCH_ROWS


def test_columns_of_odd_and_of_equal_names_keep_them(warehouse):
    sql = 'SELECT INTERVAL 1 DAY AS "a ""b""", 2 AS c, INTERVAL 3 DAY AS c'
    assert list(rows_of(ask(warehouse, sql).rows)) == [{'a "b"': "1 day", "c": 2, "c_2": "3 days"}]


@pytest.mark.parametrize(
    "sql", ["EXPLAIN SELECT INTERVAL 1 DAY", "PIVOT (SELECT 1 AS a, INTERVAL 1 DAY AS c) ON a USING first(c)"]
)
def test_questions_that_are_no_plain_select_are_shown_too(warehouse, sql):
    assert list(rows_of(ask(warehouse, sql).rows))


NESTED_INFINITIES = [
    ("['infinity'::DOUBLE, 1.5, NULL]", ["inf", 1.5, None]),
    ("{'a': ['-infinity'::FLOAT], 'b': 1}", {"a": ["-inf"], "b": 1}),
    ("['infinity'::DOUBLE, 2.0]::DOUBLE[2]", ["inf", 2.0]),
    ("MAP {'k': 'infinity'::DOUBLE}", [("k", "inf")]),
]


@pytest.mark.parametrize(("sql", "value"), NESTED_INFINITIES)
def test_an_infinite_number_inside_a_value_is_shown_as_text(warehouse, sql, value):
    (row,) = rows_of(ask(warehouse, f"SELECT {sql} AS a").rows)
    assert row == {"a": value}
