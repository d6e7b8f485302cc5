"""`whorl nodes evaluate`: how well stressed executions are found and nodes ranked, on anybody's results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.nodes_evaluate_options import (
    BOTH,
    Curve,
    Model,
    Protocols,
    Seeds,
    TestedHalf,
    Train,
    Variant,
    WithoutLabels,
    asked_settings,
    with_models,
)
from flows.commands.nodes_options import LabelFrom, Manifest, read_flags
from flows.commands.options import Json, Seed, TablesOut
from flows.commands.reading_options import Renamed, TimeZone, absolute_paths
from flows.invocation import Invocation, invocation_of
from flows.shown import counted
from flows.tables import Column, show_facts, show_table
from tasks.nodes.node_words import called_all
from tasks.nodes.reader_names import AUTO, NodeReader, reader_asked_for
from tasks.quantities import number, ratio
from tasks.quantities import share as shown_share

if TYPE_CHECKING:
    from tasks.nodes.evaluate.protocol import Evaluation

DETECTION = (
    Column("split", "tested on", kind="name"),
    Column("detector", "told by", kind="name"),
    Column("f1_outlier", "F1 of stressed", ratio, kind="number"),
    Column("f1_normal", "F1 of others", ratio, kind="number"),
    Column("auprc", "AUPRC", ratio, kind="number"),
    Column("false_alarms_per_1000", "false alarms in 1,000", number, kind="number"),
)
BESIDE = (
    Column("words", "figure"),
    Column("value", "our preprocessing"),
    Column("theirs", "the paper's"),
)
LEFT_OUT = {"n_refused": "refused row", "n_values_refused": "refused value", "n_replaced": "replaced execution"}


def evaluate(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Results: files or folders; not needed with --manifest"),
    ] = None,
    reader: Annotated[NodeReader, typer.Option(help="Format; auto looks into each file")] = AUTO,
    label_from: LabelFrom = None,
    manifest: Manifest = None,
    renamed: Renamed = None,
    time_zone: TimeZone = None,
    variant: Variant = None,
    model: Model = None,
    seeds: Seeds = None,
    protocols: Protocols = None,
    without_labels: WithoutLabels = False,
    train: Train = None,
    half: TestedHalf = None,
    curve: Curve = False,
    seed: Seed = None,
    out: TablesOut = None,
    as_json: Json = False,
) -> None:
    """Measure on results of benchmarks how well stressed executions are found, and what scores of nodes are worth.

    Only the paths are read, into memory; nothing is kept. tasks/nodes/README.md says what each figure means."""
    invocation = invocation_of(context)
    read = read_flags(label_from, manifest, renamed, time_zone)
    asked = asked_settings(
        variant, model, seeds, protocols, seed, without_labels=without_labels, half=half, curve=curve
    )
    settings = invocation.resolved({"nodes": {"read": read, "evaluate": asked}}).settings.nodes
    if not paths and not settings.read.manifest:
        raise typer.BadParameter("name results, or a --manifest of them", param_hint="PATH")
    if half is not None and not train:
        raise typer.BadParameter("halves are of results that are tested by what others taught", param_hint="--half")
    from flows.progress_bar import progress_bar
    from tasks.nodes.intake import tell_left_out
    from tasks.nodes.steps import evaluate_results

    absolute = absolute_paths(paths)
    with progress_bar(invocation, first="reading results"):
        found, name, emulated = evaluate_results(
            absolute,
            reader_asked_for(reader),
            settings.read,
            with_models(settings.evaluate, model),
            both=variant == BOTH,
            train=absolute_paths(train),
        )
    if line := tell_left_out(absolute):
        invocation.note(line)
    if out is not None:
        _write(invocation, found, name, out, emulated)
    if as_json:
        from flows.machine_output import show_json

        show_json(found.figures)
        return
    _show(found.figures, emulated)


def _write(invocation: Invocation, found: "Evaluation", name: str, out: Path, emulated: frozenset[str]) -> None:
    from tasks.nodes.steps import write_page

    page = write_page(found, name, str(out), emulated)
    invocation.note(f"tables: {out}; page: {page}")


def _show(figures: dict[str, Any], emulated: frozenset[str]) -> None:
    from tasks.report.nodes_evaluation import figure_rows

    show_facts(_facts(figures, emulated))
    if rows := _detection(figures):
        print()
        show_table(rows, DETECTION)
    beside = [row for row in figure_rows(figures) if row["theirs"]]
    if beside:
        print()
        show_table(beside, BESIDE)


def _detection(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a way of splitting and detector that has figures."""
    from tasks.report.nodes_evaluation import detection_figures

    return [row for row in detection_figures(figures) if row.get("f1_outlier") is not None]


def _facts(figures: dict[str, Any], emulated: frozenset[str]) -> dict[str, str]:
    """What was evaluated, and what is not in the table of detectors."""

    def told(key: str, show: Any = ratio) -> str:
        value = figures.get(key)
        return str(figures.get(f"{key}.reason", "not measured")) if value is None else str(show(value))

    def named(names: str) -> str:
        return called_all(names, emulated)

    of = f"{counted(figures['n'], 'execution')} on {counted(figures['n_nodes'], 'node')}"
    of += f" ({len(emulated):,} of them emulated)" if emulated else ""
    return {
        "evaluated": f"{of}, {figures['n_stressed']:,} known to be stressed",
        "left out": ", ".join(counted(figures[key], what) for key, what in LEFT_OUT.items()),
        "metrics": f"{figures['metrics.kept']:,} of {figures['metrics.recorded']:,} kept",
        "best node": told("nodes.best", named),
        "best by first component": told("nodes.best.pc1", named),
        "most suspicious": told("nodes.most_suspicious", named),
        "score and applications": f"Spearman {told('rank.spearman')}; best single benchmark {told('rank.best_single')}",
        "a rerun differs by": f"{told('repeatability.rerun_median', shown_share)} (median), "
        f"{told('repeatability.rerun_p90', shown_share)} (one in ten)",
        "stressed executions": told("detect.n", number) if figures.get("detect.n") is None else "see below",
    }
