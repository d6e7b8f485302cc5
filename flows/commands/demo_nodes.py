"""How `whorl demo` shows nodes: the best, the one that looks worse than it used to, and what the model says."""

from typing import TYPE_CHECKING

from flows.shown import clean, counted
from flows.tables import show_facts
from tasks.quantities import ratio, share

if TYPE_CHECKING:
    from flows.node_demo import BestIn, NodesTold
    from flows.node_model_demo import LearnedTold
    from flows.node_verdicts_demo import Degrading, OfDose

NONE = "none: no execution lies far below the earlier level of its own node"
GOING_ON = ("confirmed", "suspected")
NEVER = "none: no node was flagged often enough for an alarm"
DOSES = {1: "weak", 2: "middle", 3: "strong"}


def show_nodes(told: "NodesTold") -> None:
    """Print which node is best, in what, which is the most suspicious, and what the model flags and watches."""
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
            "flagged": _flagged(told["learned"]),
            "degrading": _degrading(told["learned"]["degrading"]),
            "cost of watching": _cost(told["learned"]["cost_share"]),
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


def _flagged(learned: "LearnedTold") -> str:
    told = f"{learned['n_flagged']:,} of {counted(learned['n_executions'], 'execution')} by the model"
    calm = [f"{_share_of(one)} without stress" for one in learned["unseen"] if not one["dose_level"]]
    doses = [f"{_share_of(one)} {_dose(one['dose_level'])}" for one in learned["unseen"] if one["dose_level"]]
    stressed = [f"under recorded stress {', '.join(doses)}"] if doses else []
    unseen = "; ".join(calm + stressed)
    return f"{told}; of the latest, which it has not seen: {unseen}" if unseen else told


def _share_of(one: "OfDose") -> str:
    return f"{one['n_flagged']:,} of {one['n_executions']:,}"


def _dose(level: int) -> str:
    return DOSES.get(level, f"level {level}")


def _degrading(found: "list[Degrading]") -> str:
    now = [one for one in found if one["state"] in GOING_ON]
    if not now:
        return _cleared(found)
    first, *others = now
    flags = f"{counted(first['n_flagged'], 'execution')} flagged, {first['n_stressed']:,} of them under recorded stress"
    worst = f", most in {clean(first['worst'])}" if first["worst"] else ""
    also = f"; also {', '.join(map(_place, others))}" if others else ""
    return f"{_place(first)}: {flags}{worst}{also}"


def _cleared(found: "list[Degrading]") -> str:
    if not found:
        return NEVER
    last = max(found, key=lambda one: one["since"])
    return f"none now; the last was {last['node']} in {last['aspect']}, cleared {last['since']} UTC"


def _place(one: "Degrading") -> str:
    return f"{one['node']} in {one['aspect']} ({one['state']})"


def _cost(share_of_time: float | None) -> str:
    if share_of_time is None:
        return "not known"
    return f"{share(share_of_time)} of a node's time at most, at the pace of the recording"
