"""`whorl nodes fingerprint`: nodes by the fingerprints of their executions, and executions that were degraded."""

from typing import Any

import typer

from flows.commands.nodes_options import one_trained_source
from flows.commands.options import Json, Source
from flows.invocation import invocation_of
from flows.running import flow_running
from flows.shown import as_command, count, counted
from flows.tables import Column, show_table
from tasks.nodes.node_words import called, interval
from tasks.quantities import MISSING, ratio

COLUMNS = (
    Column("aspect", "aspect", kind="name"),
    Column("rank", "place", count, kind="number"),
    Column("name", "node", kind="key"),
    Column("score", "score", ratio, kind="number"),
    Column("interval", "interval", kind="name"),
    Column("tied", "tied", kind="name"),
    Column("n_executions", "executions", count, kind="number"),
)


def fingerprint(context: typer.Context, source: Source = None, as_json: Json = False) -> None:
    """Fingerprint the executions of a source by its model in use, and rank the nodes by them.

    A score of 1 is the reference fleet, 2 is twice as good. Which executions were degraded, and by which metrics,
    stands in nodes.fingerprints and nodes.fingerprint_reasons."""
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_trained_source(settings.warehouse, source)
    with flow_running(invocation):
        from flows.node_model_params import NodeFingerprintParams, filled_in
        from flows.node_models import fingerprint_nodes

        found = fingerprint_nodes(filled_in(NodeFingerprintParams, settings.nodes, settings.warehouse, chosen))
    from flows.emulated_nodes import with_emulated
    from flows.machine_output import records, show_json
    from tasks.nodes.learned.rows import read_fingerprint_scores

    scores = read_fingerprint_scores(settings.warehouse, chosen)
    rows = records(with_emulated(scores, settings.warehouse, chosen))
    if as_json:
        show_json({**found, "source": chosen, "scores": rows})
        return
    show_table([_shown(row) for row in rows], COLUMNS)
    print()
    names = {row["node"]: called(row["node"], row["is_emulated"]) for row in rows}
    print(f"best: {', '.join(names[node] for node in found['best']) or 'none'}")
    told = f"{found['n_fingerprints']:,} of {counted(found['n_executions'], 'execution')} have a fingerprint"
    print(f"{told}; {found['n_flagged']:,} look degraded")
    print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'nodes', 'watch', '--source', chosen)}")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    told = {"interval": interval(row) or MISSING, "tied": "tied" if row["is_tied"] else ""}
    return {**row, **told, "name": called(row["node"], row["is_emulated"])}
