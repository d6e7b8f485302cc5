"""`whorl jobs evaluate`: train on the earlier part of a job log, and say how well the later part was predicted."""

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.commands.ingest import read_flags
from flows.commands.options import Json, Seed, TablesOut
from flows.commands.reading_options import (
    Features,
    GroupBy,
    KnownBefore,
    MappedValues,
    MaxRefusedShare,
    Renamed,
    Units,
    absolute_paths,
    intake_flags,
    listed,
)
from flows.invocation import invocation_of
from flows.predictor_words import predictor_rows
from flows.tables import Column, show_facts, show_table
from tasks.jobs.offered_names import AUTO, ReaderName, reader_asked_for
from tasks.quantities import duration, number, share

LEFT_OUT = "own.left_out."
COLUMNS = (
    Column("name", "predictor", kind="name"),
    Column("crps", "CRPS", duration, kind="number"),
    Column("log_score", "log-score", number, kind="number"),
    Column("coverage90", "in 90 % interval", share, kind="number"),
    Column("ks_group", "KS by job", number, kind="number"),
    Column("ks_pooled", "KS pooled", number, kind="number"),
)


def evaluate(
    context: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Job logs: files or folders")],
    reader: Annotated[ReaderName, typer.Option(help="Format; auto looks into each file")] = AUTO,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of logs that name none, such as Europe/Berlin", show_default=False)
    ] = None,
    renamed: Renamed = None,
    statuses: MappedValues = None,
    units: Units = None,
    features: Features = None,
    known_before: KnownBefore = None,
    group_by: GroupBy = None,
    max_refused_share: MaxRefusedShare = None,
    seed: Seed = None,
    out: TablesOut = None,
    as_json: Json = False,
) -> None:
    """Measure on a job log how well runtimes are predicted.

    Only the paths are read, into a temporary warehouse; nothing is kept."""
    invocation = invocation_of(context)
    read = read_flags(time_zone, renamed, statuses, units) | intake_flags(max_refused_share, pseudonymise=False)
    flags = {
        "read": read | listed("features", features),
        "group": listed("by", group_by),
        "evaluate": {"predict": listed("known_before", known_before)},
    }
    settings = invocation.resolved({"jobs": flags}).settings
    from flows.progress_bar import progress_bar
    from tasks.jobs.evaluate import SOURCE, evaluate_logs
    from tasks.jobs.intake import Intake

    params = settings.jobs.evaluate if seed is None else settings.jobs.evaluate.model_copy(update={"seed": seed})
    intake = Intake(SOURCE, reader_asked_for(reader), settings.jobs.read, settings.jobs.group)
    absolute = absolute_paths(paths)
    with progress_bar(invocation):
        found = evaluate_logs(absolute, intake, params, settings.whorl.memory_mb)
    if out is not None:
        from tasks.jobs.steps import write_evaluation

        page = write_evaluation(found, ", ".join(Path(path).name for path in absolute[:3]), str(out))
        invocation.note(f"tables: {out}; page: {page}")
    if as_json:
        from flows.machine_output import show_json

        show_json(found.figures)
        return
    show_facts(_facts(found.figures))
    print()
    show_table(predictor_rows(found.figures), COLUMNS)


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    facts = {
        "runs": f"{figures['n']:,} of {figures['groups']:,} jobs; {figures['split.n.D3']:,} later ones are predicted",
        "recurring": f"{share(figures['recurring_share'])} of the runs are of a job that ran at least twice",
    }
    if "group.by" in figures:
        facts["a job is"] = f"{figures['group.by']}: {figures['group.reason']}"
    if "own.used" in figures:
        facts["own columns"] = f"predictions use {', '.join(figures['own.used']) or 'none'}"
        left_out = [key for key in figures if key.startswith(LEFT_OUT)]
        facts |= {f"not {key.removeprefix(LEFT_OUT)}": f"it {figures[key]} (--known-before)" for key in left_out}
    for kind in ("ratio", "delta"):
        right, ceiling, history = (
            figures[f"label.{name}.{kind}"] for name in ("accuracy", "ceiling", "history_baseline")
        )
        if right is None:
            facts[f"shapes ({kind})"] = figures[f"label.accuracy.{kind}.reason"]
            continue
        facts[f"shapes ({kind})"] = (
            f"right for {share(right)} of the runs; an oracle would be for {share(ceiling)}, "
            f"the job's history is for {share(history)}"
        )
    return facts
