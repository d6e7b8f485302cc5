"""`whorl nodes rank`: nodes by score, with intervals and ties, and those that stand out."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.nodes_options import one_node_source
from flows.commands.options import Json, Source
from flows.invocation import invocation_of
from flows.progress_bar import progress_bar
from flows.shown import as_command, count, text
from flows.tables import Column, show_table
from tasks.errors import NotFound
from tasks.nodes.node_words import best_words, called, interval, left_out, placed_by, shared_words, standing_out
from tasks.quantities import MISSING, number, ratio

if TYPE_CHECKING:
    import pandas as pd

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
MOST_NAMED = 10
SHARED = Column("shared_words", "shared component", kind="name")
LACKS = Column("lacks", "did not run", text)


def rank(
    context: typer.Context,
    source: Source = None,
    node: Annotated[str | None, typer.Option(help="Only this node", show_default=False)] = None,
    machine_type: Annotated[str | None, typer.Option(help="Only nodes of this type", show_default=False)] = None,
    aspect: Annotated[str | None, typer.Option(help="Only this aspect, or all", show_default=False)] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Only the first of each aspect", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Rank the nodes of a source, as one number and by aspect.

    A score is a ratio to the reference fleet: 1 is the reference, 2 is twice as good. Where ten nodes of a machine type
    ran two tools or more, what tools say of them in common gives their order within it (--machine-type). Tied nodes
    share their place: their executions do not tell them apart. A node that did not run an aspect that half of the
    reference ran stands behind those that did. A source that was never preprocessed is so first."""
    from flows.machine_output import records, show_json
    from tasks.nodes import answers
    from tasks.nodes.answers import read_scores, read_watched

    invocation = invocation_of(context)
    settings = invocation.settings
    warehouse, nodes = settings.warehouse, settings.nodes
    chosen = one_node_source(warehouse, source)
    with progress_bar(invocation, first="reading executions"):
        answers.preprocess_once(warehouse, chosen, nodes.preprocess, nodes.score)
        found = answers.rank(warehouse, chosen, nodes.score, "")
    scores, watched = read_scores(warehouse, chosen), read_watched(warehouse, chosen)
    names = {str(row.node): called(str(row.node), bool(row.is_emulated)) for row in scores.itertuples()}
    answer = {
        "best": best_words(found["best"], found["n_nodes"], names),
        "most_suspicious": standing_out(watched.to_dict("records"), names),
    }
    rows = records(_chosen(scores, node, machine_type, aspect, top))
    if as_json:
        show_json({"source": chosen, **found, "answer": answer, "scores": rows, "watched": records(watched)})
        return
    extra = [SHARED] if scores["shared"].notna().any() else []
    extra += [LACKS] if any(row["lacks"] for row in rows) else []
    show_table([_shown(row) for row in rows], (*COLUMNS, *extra))
    print()
    print(f"places: {placed_by(scores)}")
    if line := left_out(found["n_left_out"], chosen):
        invocation.note(line)
    print(f"best: {answer['best']}")
    print(f"most suspicious: {answer['most_suspicious']}")
    invocation.note(f"which executions look degraded: {as_command('whorl', 'nodes', 'train', '--source', chosen)}")


def _chosen(
    scores: "pd.DataFrame", node: str | None, machine_type: str | None, aspect: str | None, top: int | None
) -> "pd.DataFrame":
    """The rows that are asked for. Raises NotFound where there are none.

    Places are those among all nodes; with a machine type that has a shared component, among its nodes by that."""
    asked = {"node": node, "machine_type": machine_type, "aspect": aspect}
    for column, value in asked.items():
        if value is not None:
            known = sorted(scores[column].dropna().unique())
            if value not in known:
                what = column.replace("_", " ")
                raise NotFound(f"no {what} {value!r} in the ranking; expected one of {', '.join(known[:MOST_NAMED])}")
            scores = scores[scores[column] == value]
    if machine_type is not None and scores["shared_place"].notna().any():
        is_placed = scores["shared_place"].notna()
        rank = scores["rank"].where(~is_placed, scores["shared_place"]).astype(int)
        n_there = scores.assign(rank=rank).groupby(["aspect", "rank"])["node"].transform("size")
        scores = scores.assign(rank=rank, is_tied=scores["is_tied"].where(~is_placed, n_there > 1))
        scores = scores.assign(is_aspect=scores["aspect"] != "all").sort_values(
            ["is_aspect", "aspect", "rank"], kind="stable", ignore_index=True
        )
        scores = scores.drop(columns="is_aspect")
    return scores if top is None else scores.groupby("aspect", sort=False).head(top)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "name": called(row["node"], row["is_emulated"]),
        "interval": interval(row) or MISSING,
        "tied": "tied" if row["is_tied"] else "",
        "shared_words": shared_words(row),
    }
