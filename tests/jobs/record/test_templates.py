"""Templates: cut into vertices and merged, a job gives what it gives in one piece; and no two plan alike."""

import json
import math
from collections import Counter
from pathlib import Path
from string import Formatter
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tasks.jobs.record import engine
from tasks.jobs.record.engine import read_plan
from tasks.jobs.record.templates import DATABASES, Order, composite, draw, templates

PARTS = 6
CUT = ((0, 1), (1, 3), (4, 2))
WHOLE = ((0, PARTS),)
NAMES = [template.name for template in templates()]
BY_NAME = {template.name: template for template in templates()}
MERGED = [template.name for template in templates() if template.merge]
LEFT_BY_THE_RECORDER = {"input", "out", "partials"}
COMMITTED = Path(__file__).parents[3] / "data/recorded/jobs/plans.jsonl"


def filled(template, sql):
    """`sql` with parameters of the template drawn in a fixed way; {input}, {partials} and {out} stay."""
    rng = np.random.default_rng(7)  # as the kept plans were drawn
    values = {name: draw(options, rng) for name, options in template.parameters.items()}
    return " ".join(sql.format(**values, input="{input}", out="{out}", partials="{partials}").split())


def whole_order(template, parts):
    """The order that plans the template as one query over the first `parts` parts."""
    return Order(
        vertex_id=template.name,
        sql=filled(template, composite(template.sql, template.merge)),
        data_set=template.data_set,
        parts=(0, parts),
        source=template.source,
        databases=template.databases,
        writes=template.writes,
        is_explain=True,
    )


def explain_templates(folder):
    """Signature, operators and plan of every template at its everyday size, over the data sets in `folder`."""
    lines = []
    with TemporaryDirectory() as temp:
        connection = engine.connect(Path(temp))
        for name in DATABASES:
            connection.execute(f"ATTACH '{folder / engine.REPLICAS / name}.duckdb' AS {name}")
        for template in templates():
            sql = engine.statement(whole_order(template, template.typical_parts), folder)
            told = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[0][1]
            plan = read_plan(told)
            explained = json.loads(told.replace(str(folder), "/data"))  # as the kept ones have it
            lines.append(
                {
                    "template": template.name,
                    "signature": plan.signature,
                    "operators": plan.operators,
                    "explain": explained,
                }
            )
        connection.close()
    return lines


# windows that look from row to row do not see across the border between two vertices
INEXACT = {
    "running_totals", "sessions", "gaps", "spikes", "weather_drift", "searches", "outliers",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("data")
    engine.build_data(made, 0.02, 7)
    return made


@pytest.fixture(scope="module")
def connection(folder, tmp_path_factory):
    opened = engine.connect(tmp_path_factory.mktemp("spilled"))
    for name in DATABASES:
        opened.execute(f"ATTACH '{folder / name}.duckdb' AS {name}")
    yield opened
    opened.close()


def _order(template, sql, **given):
    return Order(template.name, filled(template, sql), template.data_set, source=template.source, databases=(), **given)


def _result(template, vertices, connection, folder, temp):
    """Columns and rows of the job's result when each of `vertices` reads its own parts and a last one merges."""
    partials = []
    for number, parts in enumerate(vertices):
        partials.append(str(temp / f"{len(vertices)}-{number}"))
        connection.execute(engine.statement(_order(template, template.sql, parts=parts, result=partials[-1]), folder))
    merge = _order(template, template.merge, parts=None, partials=tuple(partials))
    merged = connection.execute(engine.statement(merge, folder))
    return [column[0] for column in merged.description], merged.fetchall()


def _plain(value):
    """A value that sorts beside others and forgives the last digits of a sum."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value


def _is_same(one, other):
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return one == other


def _differing(rows, expected):
    ordered = [sorted(each, key=lambda row: repr(_plain(row))) for each in (rows, expected)]
    return [pair for pair in zip(*ordered, strict=True) if not _is_same(*pair)]


@pytest.mark.parametrize("name", MERGED)
def test_the_merge_of_the_parts_is_the_result_of_the_whole(name, connection, folder, tmp_path):
    template = BY_NAME[name]
    columns, expected = _result(template, WHOLE, connection, folder, tmp_path)
    names, rows = _result(template, CUT, connection, folder, tmp_path)
    assert names == columns
    if name not in INEXACT:
        assert len(rows) == len(expected) > 0
        assert _differing(rows, expected)[:3] == []


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(MERGED)))
def test_a_template_without_a_merge_writes_an_output_of_its_own(name, connection, folder, tmp_path):
    template, out = BY_NAME[name], tmp_path / "out"
    assert template.writes or "TO '{out}'" in template.sql
    result = None if template.writes else str(out)
    connection.execute(engine.statement(_order(template, template.sql, parts=(1, 2), result=result), folder))
    assert template.writes or out.stat().st_size > 0


def test_every_template_plans_in_its_own_way(folder):
    signatures = Counter(line["signature"] for line in explain_templates(folder))
    assert len(signatures) == len(templates()) >= 70
    assert len(set(NAMES)) == len(templates())


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_declared_and_used(name):
    template = BY_NAME[name]
    used = {field for _, field, _, _ in Formatter().parse(template.sql + template.merge) if field}
    assert used - LEFT_BY_THE_RECORDER == set(template.parameters)
    assert "input" in used
    assert ("partials" in used) == bool(template.merge)


def test_the_composite_plans_the_merge_over_the_vertices_query():
    assert composite("SELECT 1 AS n", "SELECT sum(n) FROM {partials}") == "SELECT sum(n) FROM (SELECT 1 AS n)"
    assert composite("COPY (FROM {input}) TO '{out}'", "") == "COPY (FROM {input}) TO '{out}'"


def test_the_kept_plans_name_every_template_and_no_folder_of_the_machine(folder):
    kept = [json.loads(line) for line in COMMITTED.read_text().splitlines()]
    assert [line["template"] for line in kept] == NAMES
    assert len({line["signature"] for line in kept}) >= 70
    assert str(folder) not in json.dumps(explain_templates(folder))
    assert "/tmp" not in COMMITTED.read_text()
