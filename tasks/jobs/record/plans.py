"""The templates' plans as the engine explains them: one line of JSON each, to be kept beside the recorded runs."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tasks.jobs.record import engine
from tasks.jobs.record.catalogue import TEMPLATES
from tasks.jobs.record.composite import composite
from tasks.jobs.record.datasets import DATABASES
from tasks.jobs.record.orders import Order
from tasks.jobs.record.signature import read_plan
from tasks.jobs.record.template import Template

SHOWN_FOLDER = "/data"  # in place of where the data sets really lie
SEED = 7


def filled(template: Template, sql: str) -> str:
    """`sql` with parameters of the template drawn in a fixed way; {input}, {partials} and {out} stay."""
    rng = np.random.default_rng(SEED)
    values = {name: options.draw(rng) for name, options in template.parameters.items()}
    return " ".join(sql.format(**values, input="{input}", out="{out}", partials="{partials}").split())


def whole_order(template: Template, parts: int) -> Order:
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


def explain_templates(folder: Path) -> list[dict[str, Any]]:
    """Signature, operators and plan of every template at its everyday size, over the data sets in `folder`."""
    lines = []
    with TemporaryDirectory() as temp:
        connection = engine.connect(Path(temp))
        for name in DATABASES:
            connection.execute(f"ATTACH '{folder / engine.REPLICAS / name}.duckdb' AS {name}")
        for template in TEMPLATES:
            sql = engine.statement(whole_order(template, template.typical_parts), folder)
            told = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[0][1]
            plan = read_plan(told)
            explained = json.loads(told.replace(str(folder), SHOWN_FOLDER))
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


def write_plans(folder: Path, path: Path) -> int:
    """Write the templates' plans to `path`, one line of JSON each; returns the number of lines.

    folder: data sets that engine.build_data made (at scale 1 for the plans that are kept with the recorded runs).
    """
    lines = explain_templates(folder)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return len(lines)
