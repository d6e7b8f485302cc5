"""How `whorl demo` shows nodes: the best, by aspect as well, and the one that looks worse than it used to."""

from typing import TYPE_CHECKING

from flows.shown import counted
from flows.tables import show_facts
from tasks.quantities import ratio, share

if TYPE_CHECKING:
    from flows.node_demo import BestIn, NodesTold

NONE = "none: no execution lies far below the earlier level of its own node"


def show_nodes(told: "NodesTold") -> None:
    """Print which node is best, in what, and which is the most suspicious."""
    overall, *aspects = told["best"]
    emulated = f", {told['n_emulated']:,} of them emulated" if told["n_emulated"] else ""
    nodes = (
        f"{counted(told['n_executions'], 'execution')} of benchmarks on {counted(told['n_nodes'], 'node')}{emulated}"
    )
    show_facts(
        {
            "nodes": nodes,
            "best node": f"{_named(overall)}, {ratio(overall['score'])} times the reference fleet",
            "best by aspect": "; ".join(f"{one['aspect']} {_named(one)}" for one in aspects),
            "most suspicious": _suspicious(told),
        }
    )


def _named(best: "BestIn") -> str:
    return " and ".join(best["nodes"]) + (" (tied)" if len(best["nodes"]) > 1 else "")


def _suspicious(told: "NodesTold") -> str:
    found = told["most_suspicious"]
    if found is None:
        return NONE
    of = counted(found["n_executions"], "execution")
    below = f"{share(found['low_share'])} of its {of} far below its own earlier level"
    worst = f"most in {found['worst_type'].partition('@')[0]}, there at {ratio(found['worst_ratio'])} of it"
    return f"{found['node']}: {below}, {worst}"
