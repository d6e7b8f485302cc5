"""`whorl workloads evaluate`: how well workloads are told apart, and known from unknown, on labelled telemetry."""

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.commands.options import Json, Seed, TablesOut
from flows.commands.reading_options import Renamed, absolute_paths
from flows.commands.workloads_options import read_flags
from flows.invocation import invocation_of
from flows.shown import counted, runs_or_windows
from flows.tables import Column, show_facts, show_table
from tasks.quantities import number, share
from tasks.workloads.reader_names import AUTO, TelemetryReader, reader_asked_for

COLUMNS = (
    Column("split", "split", kind="name"),
    Column("method", "method", kind="name"),
    Column("accuracy", "accuracy", share, kind="number"),
    Column("precision", "precision", share, kind="number"),
    Column("recall", "recall", share, kind="number"),
    Column("macro_f1", "F1", share, kind="number"),
)
SHARED = (
    Column("condition", "condition", kind="name"),
    Column("view", "counters", kind="name"),
    Column("method", "method", kind="name"),
    Column("measure", "measure", lambda measure: measure.replace("_", " "), kind="name"),
    Column("value", "share", share, kind="number"),
    Column("low", "from", share, kind="number"),
    Column("high", "to", share, kind="number"),
    Column("n", "runs", number, kind="number"),
)


def evaluate(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Labelled telemetry: files or folders; not needed with --manifest"),
    ] = None,
    reader: Annotated[TelemetryReader, typer.Option(help="Format; auto looks into each file")] = AUTO,
    label_from: Annotated[
        str | None,
        typer.Option(help="Workload of a file: stem (its name), parent (its folder), column:NAME", show_default=False),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV or JSONL: path, workload, input, round, machine", show_default=False),
    ] = None,
    renamed: Renamed = None,
    window: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Windows that long traces are cut into", show_default=False)
    ] = None,
    step: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="From one window to the next; otherwise its length", show_default=False),
    ] = None,
    seed: Seed = None,
    out: TablesOut = None,
    as_json: Json = False,
) -> None:
    """Measure on labelled telemetry how well workloads are identified, known and unknown.

    Only the paths are read, into memory; nothing is kept."""
    invocation = invocation_of(context)
    read = read_flags(label_from, manifest, renamed, example="run_id=trace")
    windows = {key: value for key, value in (("width_s", window), ("step_s", step)) if value is not None}
    seeds = {"seed": seed} if seed is not None else {}
    asked = {"evaluate": {**({"windows": windows} if windows else {}), **seeds}, "identify": seeds}
    settings = invocation.resolved({"workloads": {"read": read, **asked}}).settings.workloads
    if not paths and not settings.read.manifest:
        raise typer.BadParameter("name telemetry, or a --manifest of it", param_hint="PATH")
    from flows.progress_bar import progress_bar
    from tasks.workloads.evaluate.protocol import evaluate_read
    from tasks.workloads.model_steps import write_evaluation

    absolute = absolute_paths(paths)
    with progress_bar(invocation, first="reading telemetry"):
        evaluated = evaluate_read(
            absolute, settings.read, settings.evaluate, settings.identify, reader_asked_for(reader)
        )
        found = evaluated.evaluation
        if out is not None:
            name = ", ".join(Path(path).name for path in absolute[:3]) or "telemetry"
            page = write_evaluation(found, evaluated.runs, settings.evaluate, settings.identify, name, str(out))
    if out is not None:
        invocation.note(f"tables: {out}; page: {page}")
    if as_json:
        from flows.machine_output import show_json

        show_json(found.figures)
        return
    from tasks.report.workloads_measured import known_table

    show_facts(_facts(found.figures))
    print()
    show_table(known_table(found.figures), COLUMNS)
    if len(found.tables["shared"]):
        print()
        rows: list[dict[str, Any]] = found.tables["shared"].to_dict("records")  # type: ignore[assignment]
        show_table([row for row in rows if row["measure"] != "names"], SHARED)


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    """What was evaluated, and what is not in the table of known workloads."""

    def told(key: str, *, as_share: bool = True) -> str:
        value = figures[key]
        return figures[f"{key}.reason"] if value is None else share(value) if as_share else number(value)

    n_given, n_odd = figures["counters.giveaways"], figures["counters.not_common"]
    evaluated = runs_or_windows(figures["n"], figures["n_windows"])
    n_pairs = counted(figures["unknown.pairs"], "pair")
    return {
        "evaluated": f"{evaluated} of {counted(figures['classes'], 'workload')}",
        "counters": f"{figures['counters.n']:,}; left out: {n_given:,} give-aways, {n_odd:,} not in every run",
        "unknown": f"AUROC {told('unknown.auroc', as_share=False)}, {n_pairs} of workloads held out",
        "threshold": f"rejects {told('threshold.false_reject')} of a workload's own runs, "
        f"accepts {told('threshold.false_accept')} of others'",
    }
