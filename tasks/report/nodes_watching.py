"""What watching says of nodes and what it costs, in words. Light: no figures. Rows are those of nodes.states."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasks.nodes.node_words import called, is_missing, is_true
from tasks.quantities import MISSING, share

STATES = ("confirmed", "suspected", "cleared", "healthy")
HEADS = ("node", "aspect", "state", "since (UTC)", "executions", "flagged of the last", "left out", "share of its time")


def counted_states(states: pd.DataFrame) -> str:
    """How many nodes and aspects are in each state, those that need looking at first."""
    counts = states["state"].value_counts()
    return ", ".join(f"{int(counts.get(state, 0)):,} {state}" for state in STATES)


def excluded_nodes(states: pd.DataFrame) -> list[str]:
    """Each node that is to be left out, with the aspects in which that is confirmed."""
    out = states[states["is_excluded"].map(is_true).astype(bool)]
    confirmed = states[states["state"] == "confirmed"]
    found = []
    for row in out.drop_duplicates("node").sort_values("node").to_dict("records"):
        aspects = ", ".join(sorted(str(one) for one in confirmed.loc[confirmed["node"] == row["node"], "aspect"]))
        found.append(f"{called(str(row['node']), row.get('is_emulated'))}{f' ({aspects})' if aspects else ''}")
    return found


def cost_words(states: pd.DataFrame) -> str:
    """What watching costs as a share of machine time: in the middle of the nodes, and at most."""
    each = states.drop_duplicates("node").set_index("node")["cost_share"].dropna()
    if each.empty:
        return "What watching costs is not known: no node ran benchmarks twice with a known start and duration."
    most = states[states["node"] == each.idxmax()].iloc[0].to_dict()
    dearest = called(str(most["node"]), most.get("is_emulated"))
    nodes = "1 node" if len(each) == 1 else f"{len(each):,} nodes"
    middle, largest = share(float(each.median())), share(float(each.max()))
    return (
        f"At the pace of the record benchmarks take {middle} of a node's time (median of {nodes}), {largest} at most "
        f"({dearest})."
    )


def state_values(row: Mapping[Any, Any]) -> list[str]:
    """A row as words, in the order of HEADS without the node."""
    since = MISSING if is_missing(row["since"]) else f"{row['since']:%Y-%m-%d %H:%M}"
    counts = [f"{int(row[name]):,}" for name in ("n_executions", "n_recent_flagged", "n_left_out")]
    cost = MISSING if is_missing(row["cost_share"]) else share(float(row["cost_share"]))
    return [str(row["aspect"]), str(row["state"]), since, *counts, cost]
