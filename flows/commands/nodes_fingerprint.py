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
    """Say which executions of a source were degraded; where a network was trained, fingerprint them and rank nodes.

    A score of 1 is the reference fleet, 2 is twice as good. Verdicts stand in nodes.verdicts, the metrics that say so
    in nodes.verdict_reasons, fingerprints in nodes.fingerprints."""
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_trained_source(settings.warehouse, source)
    with flow_running(invocation):
        from flows.node_model_params import NodeFingerprintParams, filled_in
        from flows.node_models import fingerprint_nodes

        found = fingerprint_nodes(filled_in(NodeFingerprintParams, settings.nodes, settings.warehouse, chosen))
    from flows.emulated_nodes import with_emulated
    from flows.machine_output import records, show_json
    from tasks.nodes.network_steps import read_fingerprint_scores

    scores = read_fingerprint_scores(settings.warehouse, chosen) if found["network_id"] else None
    rows = [] if scores is None else records(with_emulated(scores, settings.warehouse, chosen))
    if as_json:
        show_json({**found, "source": chosen, "scores": rows})
        return
    print(f"{found['n_flagged']:,} of {counted(found['n_judged'], 'execution')} look degraded")
    if found["network_id"]:
        print(f"{found['n_fingerprints']:,} of {counted(found['n_executions'], 'execution')} have a fingerprint")
        print()
        show_table([_shown(row) for row in rows], COLUMNS)
        names = {row["node"]: called(row["node"], row["is_emulated"]) for row in rows}
        print(f"best by fingerprints: {', '.join(names[node] for node in found['best']) or 'none'}")
    else:
        invocation.note(
            "without a trained network there are no fingerprints; whorl nodes train --variant ours makes one"
        )
    print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'nodes', 'watch', '--source', chosen)}")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    told = {"interval": interval(row) or MISSING, "tied": "tied" if row["is_tied"] else ""}
    return {**row, **told, "name": called(row["node"], row["is_emulated"])}
