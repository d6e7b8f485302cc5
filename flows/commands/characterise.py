"""`whorl jobs characterise`: the few typical runtime distributions of a source."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands import completion
from flows.commands.options import Json, Source, one_source_with_runs
from flows.commands.shape_options import Normalisation, Out, shape_numbers
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import as_command, count
from flows.tables import Column, show_table
from tasks.quantities import duration, number, share

if TYPE_CHECKING:
    from tasks.jobs.characterise import Characterisation
    from tasks.jobs.shape_params import Kind
    from tasks.jobs.steps import Characterised
    from tasks.settings import Settings


def characterise(
    context: typer.Context,
    source: Source = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Only how one job fits the shapes: its key or a part",
            autocompletion=completion.job_keys,
        ),
    ] = None,
    shapes: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="With --job: draw it against these two; by default the most likely two"),
    ] = None,
    normalisation: Normalisation = "ratio",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Find the few typical runtime distributions that the jobs of a source follow.

    They are taken from the first part of the log, for runtimes over the historic median of the job (ratio) and minus
    it (delta), and ranked by the gap between the 25 % and the 75 % quantile. With --job: how likely each shape makes
    the runs of one job, and with --out the figure."""
    if shapes is not None and job is None:
        raise typer.BadParameter("say which job with --job KEY", param_hint="--shapes")
    numbers = shape_numbers(shapes, least=2)
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_source_with_runs(settings.warehouse, source)
    if job is None:
        _show_all(invocation, settings, chosen, out, as_json=as_json)
        return
    from flows.commands.characterise_job import show_job
    from tasks.jobs.summary import find_group
    from tasks.report.jobs_shapes import are_shapes_fresh

    key = find_group(settings.warehouse, chosen, job)
    if not are_shapes_fresh(settings.warehouse, chosen, settings.jobs.evaluate.predict.characterise):
        invocation.note("finding the shapes of the source; they are kept for the next time")
        _written(invocation, settings, chosen)
    warehouse = settings.warehouse
    show_job(invocation, warehouse, chosen, key, kind=normalisation, numbers=numbers, out=out, as_json=as_json)


def _show_all(invocation: Invocation, settings: "Settings", source: str, out: Path | None, *, as_json: bool) -> None:
    from flows.machine_output import show_json
    from tasks.jobs.characterise import (
        read_characterised,
        shape_words,
    )

    written = _written(invocation, settings, source)
    found = read_characterised(settings.warehouse, source)
    if out is not None:
        _draw(invocation, settings, source, found, out)
    if as_json:
        show_json({**written, "source": source, **{kind: _plain(one) for kind, one in found.items()}})
        return
    for place, (kind, one) in enumerate(found.items()):
        print(("\n" if place else "") + shape_words(kind, one))
        show_table(_rows(one), _columns(kind))
    invocation.note("the shape of each job: whorl query 'SELECT * FROM jobs.group_shapes'; of one: --job KEY")


def _draw(
    invocation: Invocation, settings: "Settings", source: str, found: "dict[Kind, Characterisation]", out: Path
) -> None:
    from tasks.report.jobs_shapes import shapes_result
    from tasks.report.page import write_figures

    home = settings.warehouse.home
    again = as_command("whorl", "jobs", "characterise", "--home", home, "--source", source, "--out", out)
    page, *images = write_figures(out, f"jobs-{source}-shapes", shapes_result(source, found, again))
    invocation.note(f"written: {page} and {count(len(images))} images beside it")


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
