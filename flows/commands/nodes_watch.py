"""`whorl nodes watch`: which nodes are degrading."""

from typing import Annotated

import typer

from flows.commands.nodes_options import one_trained_source
from flows.commands.options import Json, Source
from flows.invocation import invocation_of
from flows.running import flow_running
from flows.shown import count, moment
from flows.tables import Column, show_table
from tasks.nodes.node_words import called
from tasks.quantities import share

COLUMNS = (
    Column("name", "node", kind="key"),
    Column("aspect", "aspect", kind="name"),
    Column("state", "state", kind="name"),
    Column("since", "since (UTC)", moment, kind="name"),
    Column("n_executions", "executions", count, kind="number"),
    Column("n_recent_flagged", "flagged of the last", count, kind="number"),
    Column("cost_share", "share of its time", share, kind="number"),
)


def watch(
    context: typer.Context,
    source: Source = None,
    ask: Annotated[
        bool, typer.Option("--ask/--no-ask", help="Ask suspected nodes for a fresh benchmark, by their deployments")
    ] = True,
    as_json: Json = False,
) -> None:
    """Say which nodes are degrading, by the model in use and stated rules, and raise an alarm for each.

    One bad execution is no alarm, and an alarm that goes on is told once. What a suspected node runs next confirms the
    alarm or clears it; a confirmed node is to be left out."""
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_trained_source(settings.warehouse, source)
    with flow_running(invocation):
        from flows.node_model_params import NodeWatchParams, filled_in
        from flows.node_watch import watch_nodes

        asked = filled_in(NodeWatchParams, settings.nodes, settings.warehouse, chosen, asks_for_benchmarks=ask)
        found = watch_nodes(asked)
    from flows.emulated_nodes import with_emulated
    from flows.machine_output import records, show_json
    from tasks.nodes.verdict_steps import open_messages, read_states
    from tasks.warehouse.alarms import read_alarms

    still = [one for name, one in open_messages(settings.warehouse, chosen).items() if name not in found["alarms"]]
    rows = records(with_emulated(read_states(settings.warehouse, chosen), settings.warehouse, chosen))
    if as_json:
        show_json({**found, "source": chosen, "open": still, "states": rows})
        return
    names = {row["node"]: called(row["node"], row["is_emulated"]) for row in rows}
    show_table([{**row, "name": names[row["node"]]} for row in rows], COLUMNS)
    print()
    if found["alarms"]:
        for message in read_alarms(settings.warehouse, ids=found["alarms"], limit=len(found["alarms"]))["message"]:
            print(f"alarm: {message}")
    else:
        print("no new alarm")
    for message in still:
        print(f"open: {message}")
    print(f"to be left out: {', '.join(names.get(node, node) for node in found['excluded']) or 'none'}")
    print(f"report: {found['report']}")
    for name in found["asked"]:
        print(f"asked for a fresh benchmark: {name}")
    if found["cannot_ask"]:
        nodes_without = ", ".join(found["cannot_ask"])
        invocation.note(f"no deployment nodes-record/<node> for {nodes_without}: run 'whorl nodes record' there")
