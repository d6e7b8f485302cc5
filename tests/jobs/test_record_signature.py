"""Plan signatures: equal for equal operators, whatever the literals and parameters."""

import json

import duckdb
import pytest

from tasks.jobs.record.engine import Plan, read_plan


@pytest.fixture(scope="module")
def explain():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS a, i % 7 AS b, 'x' || i AS c FROM range(1000) AS r(i)")

    def plan_of(sql: str) -> Plan:
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


def test_join_types_tell_two_plans_of_the_same_operators_apart(explain):
    inner = explain("SELECT count(*) FROM t JOIN t AS u ON t.a = u.b")
    outer = explain("SELECT count(*) FROM t LEFT JOIN t AS u ON t.a = u.b")
    assert inner.signature != outer.signature


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


def test_a_text_that_is_no_plan_is_refused():
    with pytest.raises(ValueError, match="expected the JSON list"):
        read_plan('{"name": "SEQ_SCAN"}')
