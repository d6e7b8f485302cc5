"""`whorl nodes rank`: nodes by score, with intervals and ties, and the one that looks worst."""

from typing import Any

import typer

from flows.commands.nodes_options import one_node_source
from flows.commands.options import Json, Source
from flows.invocation import invocation_of
from flows.progress_bar import progress_bar
from flows.shown import as_command, count, counted, text
from flows.tables import Column, show_table
from tasks.nodes.model_names import left_out
from tasks.nodes.node_words import called, interval
from tasks.quantities import MISSING, number, ratio, share

COLUMNS = (
    Column("aspect", "aspect", kind="name"),
    Column("rank", "place", count, kind="number"),
    Column("name", "node", kind="key"),
    Column("score", "score", ratio, kind="number"),
    Column("interval", "interval", kind="name"),
    Column("tied", "tied", kind="name"),
    Column("n_executions", "executions", count, kind="number"),
    Column("machine_type", "machine type", text, is_extra=True),
    Column("pc1", "first component", number, kind="number", is_extra=True),
)
LACKS = Column("lacks", "did not run", text)


def rank(context: typer.Context, source: Source = None, as_json: Json = False) -> None:
    """Rank the nodes of a source, as one number and by aspect.

    A score is a ratio to the reference fleet: 1 is the reference, 2 is twice as good. Tied nodes share their place:
    their executions do not tell them apart. A node that did not run an aspect that half of the reference ran stands
    behind those that did. A source that was never preprocessed is so first."""
    from flows.machine_output import records, show_json
    from tasks.nodes import answer_steps
    from tasks.nodes.answer_rows import read_scores, read_watched

    invocation = invocation_of(context)
    settings = invocation.settings
    warehouse, nodes = settings.warehouse, settings.nodes
    chosen = one_node_source(warehouse, source)
    with progress_bar(invocation, first="reading executions"):
        answer_steps.preprocess_once(warehouse, chosen, nodes.preprocess, nodes.score)
        found = answer_steps.rank(warehouse, chosen, nodes.score, nodes.detect, nodes.suspect, "")
    rows, watched = records(read_scores(warehouse, chosen)), records(read_watched(warehouse, chosen))
    if as_json:
        show_json({"source": chosen, **found, "scores": rows, "watched": watched})
        return
    show_table([_shown(row) for row in rows], (*COLUMNS, LACKS) if any(row["lacks"] for row in rows) else COLUMNS)
    print()
    names = {row["node"]: called(row["node"], row["is_emulated"]) for row in rows}
    if line := left_out(found["n_left_out"], chosen):
        invocation.note(line)
    print(f"best: {', '.join(names[node] for node in found['best']) or 'none'}")
    if watched and watched[0]["n_low"]:
        first = watched[0]
        below = f"{share(first['low_share'])} of its executions far below its own earlier level, most in "
        below += str(first["worst_type"])
        print(f"most suspicious: {names.get(first['node'], first['node'])}: {below}")
    else:
        print("most suspicious: none, no execution lies far below the earlier level of its own node")
    told = f"{counted(found['n_suspicious'], 'execution')} of {found['n_executions']:,} suspicious to some detector"
    invocation.note(f"{told}; {as_command('whorl', 'report', 'nodes', '--source', chosen)} shows them")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "name": called(row["node"], row["is_emulated"]),
        "interval": interval(row) or MISSING,
        "tied": "tied" if row["is_tied"] else "",
    }
