"""`whorl jobs characterise`: the few typical runtime distributions of a source."""

from typing import TYPE_CHECKING, Any

import typer

from flows.commands.options import Json, Source, one_source
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import count
from flows.tables import Column, show_table
from tasks.quantities import duration, number, share

if TYPE_CHECKING:
    from tasks.jobs.model_steps import Characterised
    from tasks.settings import Settings


def characterise(context: typer.Context, source: Source = None, as_json: Json = False) -> None:
    """Find the few typical runtime distributions that the jobs of a source follow.

    They are taken from the first part of the log, for runtimes over the historic median of the job (ratio) and minus
    it (delta), and ranked by the gap between the 25 % and the 75 % quantile."""
    from flows.machine_output import show_json
    from tasks.jobs.characterise_results import read_characterised, shape_words

    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_source(settings.warehouse, source)
    written = _written(invocation, settings, chosen)
    found = read_characterised(settings.warehouse, chosen)
    if as_json:
        show_json({**written, "source": chosen, **{kind: _plain(one) for kind, one in found.items()}})
        return
    for place, (kind, one) in enumerate(found.items()):
        print(("\n" if place else "") + shape_words(kind, one))
        show_table(_rows(one), _columns(kind))
    invocation.note("the shape of each job: whorl query 'SELECT * FROM jobs.group_shapes'")


def _written(invocation: Invocation, settings: "Settings", source: str) -> "Characterised":
    with flow_running(invocation):
        from flows.job_model_params import CharacteriseFlowParams
        from flows.job_shapes import characterise_jobs

        return characterise_jobs(
            CharacteriseFlowParams(source=source, evaluate=settings.jobs.evaluate, warehouse=settings.warehouse)
        )


def _columns(kind: str) -> tuple[Column, ...]:
    value = number if kind == "ratio" else duration
    return (
        Column("shape", "shape", kind="number"),
        Column("n_groups", "jobs", count, kind="number"),
        Column("n_runs", "runs", count, kind="number"),
        Column("outlier_share", "outliers", share, kind="number"),
        Column("p25_p75", "25–75 % gap", value, kind="number"),
        Column("p95", "95 %", value, kind="number"),
        Column("std", "std", value, kind="number"),
    )


def _rows(found: Any) -> list[dict[str, Any]]:
    from flows.machine_output import records

    return records(found.table.assign(outlier_share=found.table["outlier_percent"] / 100))


def _plain(found: Any) -> dict[str, Any]:
    from flows.machine_output import records

    columns = ["shape", "n_groups", "n_runs", "outlier_percent", "p25_p75", "p95", "std"]
    return {
        "k": len(found.table),
        "elbow": found.curve.elbow,
        "inertia": dict(zip(map(str, found.curve.ks), found.curve.inertias, strict=True)),
        "shapes": records(found.table[columns]),
        "rivals": records(found.rivals),
        "bins": records(found.bins),
    }
