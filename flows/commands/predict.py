"""`whorl jobs predict`: how long the next runs take, by the model in use."""

from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands import completion
from flows.commands.options import Json, Source, one_source
from flows.commands.predict_one import show_outlook
from flows.commands.predict_others import show_costliest, show_running
from flows.invocation import Invocation, invocation_of
from flows.shown import count, counted, moment
from flows.tables import Column, show_table
from tasks.jobs.offered_names import SORTED, Risk
from tasks.quantities import duration, share

if TYPE_CHECKING:
    from tasks.settings import Settings

ANSWERED = 3  # next runs that are answered for in a sentence before the table
COLUMNS = (
    Column("group_key", "job", kind="key"),
    Column("n_before", "runs", count, kind="number"),
    Column("usual_s", "usual", duration, kind="number"),
    Column("p50_s", "predicted median", duration, kind="number"),
    Column("p90_s", "90 % under", duration, kind="number", is_extra=True),
    Column("p95_s", "95 % under", duration, kind="number"),
    Column("p99_s", "99 % under", duration, kind="number"),
    Column("exceeds_2x_share", "twice usual", share, kind="number"),
    Column("expected_excess_s", "expected beyond", duration, kind="number"),
    Column("shape_ratio", "shape (ratio)", count, kind="number", is_extra=True),
    Column("last_at", "last (UTC)", moment, kind="number", is_extra=True),
)


def predict(
    context: typer.Context,
    source: Source = None,
    job: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="One job: its key or a part of it", autocompletion=completion.job_keys),
    ] = None,
    exceeds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0, help="With --job or --running: chance that a run takes longer than this"
        ),
    ] = None,
    running: Annotated[bool, typer.Option("--running", help="The runs that go on: how long each still takes")] = False,
    costliest: Annotated[
        bool, typer.Option("--costliest", help="The jobs that cost the most waiting through variation")
    ] = False,
    by: Annotated[Risk, typer.Option(help="What comes first")] = "chance",
    top: Annotated[int, typer.Option(min=1, help="How many jobs")] = 20,
    every: Annotated[bool, typer.Option("--all", help="Every job, also those that ran too seldom")] = False,
    as_json: Json = False,
) -> None:
    """Predict how long the next runs take, the riskiest jobs first: how likely each is late, and what that costs.

    With --job: one job, its limits and chances beside what its own runs say. 'whorl jobs train' makes the model."""
    if sum([job is not None, running, costliest]) > 1:
        raise typer.BadParameter("ask for one of them at a time", param_hint="--job, --running, --costliest")
    if exceeds is not None and job is None and not running:
        raise typer.BadParameter("say which job with --job KEY, or use --running", param_hint="--exceeds")
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_source(settings.warehouse, source)
    if job is not None:
        show_outlook(settings, chosen, job, exceeds, as_json=as_json)
    elif running:
        show_running(invocation, settings, chosen, exceeds, as_json=as_json)
    elif costliest:
        show_costliest(invocation, settings, chosen, as_json=as_json)
    else:
        _show_all(invocation, settings, chosen, by, None if every else top, as_json=as_json)


def _show_all(
    invocation: Invocation, settings: "Settings", source: str, by: Risk, top: int | None, *, as_json: bool
) -> None:
    from flows.machine_output import records, show_json
    from tasks.jobs.outlook import with_answers
    from tasks.jobs.predict.predicting import read_predictions

    model_id = _up_to_date(settings, source)
    least = settings.jobs.summary.min_support if top is not None else 0
    found = read_predictions(settings.warehouse, source, by=by, min_before=least)
    found = with_answers(settings.warehouse, source, found)
    n_idle = int(found["is_idle"].sum()) if len(found) and top is not None else 0
    found = found[~found["is_idle"]] if n_idle else found
    rows = records(found.head(top if top is not None else len(found)))
    if as_json:
        show_json({"source": source, "model_id": model_id, "n_jobs": len(found), "jobs": rows})
        return
    if not rows:
        invocation.note(f"no job has at least {least} finished runs (jobs.summary.min_support); --all shows every job")
        return
    for row in rows[:ANSWERED]:
        print(row["answer"])
    print()
    show_table(rows, COLUMNS)
    which = "jobs" if top is None else f"jobs with at least {least} finished runs"
    invocation.note(f"{count(len(rows))} of {count(len(found))} {which}, {SORTED[by]} (--by, --top, --all)")
    if n_idle:
        invocation.note(f"{counted(n_idle, 'job')} left out that stood idle far beyond their rhythm; --all shows them")
    if all(row["reason"] is None for row in rows[:ANSWERED]):
        invocation.note("why, and what would help: whorl jobs explain, whorl jobs whatif")
    invocation.note(f"usual: median so far; predicted by {model_id} as of {moment(rows[0]['predicted_at'])} UTC")


def _up_to_date(settings: "Settings", source: str) -> str:
    """Predict anew where model or files have changed since; returns the model's id."""
    from tasks.errors import NotFound
    from tasks.jobs import steps
    from tasks.jobs.predict.predicting import are_fresh
    from tasks.jobs.predict.trained import (
        KIND,
        WORD,
        no_model,
    )
    from tasks.warehouse.registry import champion

    card = champion(settings.warehouse.models, WORD, source, KIND)
    if card is None:
        raise NotFound(no_model(source))
    if not are_fresh(settings.warehouse, source, card.model_id):
        steps.predict(settings.warehouse, source)
    return card.model_id
