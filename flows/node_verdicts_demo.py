"""What the demo counts of verdicts: executions that are flagged by their recorded stress, and nodes that look degraded.

The recorder put stress on a share of the executions, weak, middle or strong. So some of what a model rightly flags, and
an alarm that this raises, is that stress."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pandas as pd

from tasks.nodes.aspects import is_stressed

UNSTRESSED = 0
HEALTHY, CLEARED = "healthy", "cleared"


class OfDose(TypedDict):
    """Executions of one level of recorded stress. dose_level: 0 for none, 1 the weakest."""

    dose_level: int
    n_executions: int
    n_flagged: int


class Degrading(TypedDict):
    """A node that looks degraded in an aspect, or did. state: confirmed, suspected or cleared, since that time (UTC).

    n_flagged: executions behind the alarm; n_stressed: of them those under recorded stress; worst: the metric that
    says so most often. 0 and empty for a cleared one; worst is empty where no metric alone says so."""

    node: str
    aspect: str
    state: str
    since: str
    n_flagged: int
    n_stressed: int
    worst: str


def by_dose(verdicts: pd.DataFrame) -> list[OfDose]:
    """How many executions are flagged, by the level of their recorded stress, none first.

    verdicts: is_flagged, is_stressed, dose_level. A stressed one whose level nobody says is in none."""
    level = verdicts["dose_level"].where(is_stressed(verdicts), UNSTRESSED)
    flags = verdicts["is_flagged"].astype(bool).groupby(level)
    sizes, sums = flags.size(), flags.sum()
    return [OfDose(dose_level=int(at), n_executions=int(sizes[at]), n_flagged=int(sums[at])) for at in sizes.index]


def degrading(
    states: pd.DataFrame, evidence: Sequence[Mapping[str, Any]], verdicts: pd.DataFrame, names: Mapping[str, str]
) -> list[Degrading]:
    """The nodes and aspects with an alarm that goes on or was cleared, in the order of the states.

    states: as read_states gives them. evidence: of the alarms of the source. verdicts: in time order, with node,
    aspect, execution_id, is_flagged and is_stressed. names: of the nodes, as they are shown."""
    found = []
    for row in states[states["state"] != HEALTHY].to_dict("records"):
        alarm = _alarm_of(row, evidence)
        behind = _behind(verdicts, alarm) if alarm else verdicts.head(0)
        found.append(
            Degrading(
                node=names.get(str(row["node"]), str(row["node"])),
                aspect=str(row["aspect"]),
                state=str(row["state"]),
                since=f"{row['since']:%Y-%m-%d %H:%M}" if pd.notna(row["since"]) else "",
                n_flagged=len(behind),
                n_stressed=int(is_stressed(behind).sum()),
                worst=str(next(iter(alarm["reasons"]), "")) if alarm else "",
            )
        )
    return found


def _alarm_of(state: Mapping[Any, Any], evidence: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The evidence of the alarm that a state is of: by what brought the state, or, told before by another model, the
    latest of that node, aspect and state. None for a cleared one."""
    if state["state"] == CLEARED:
        return None
    same = [one for one in evidence if all(one.get(name) == state[name] for name in ("node", "aspect", "state"))]
    exact = [one for one in same if state["since_execution"] in (one.get("raised_by"), one.get("confirmed_by"))]
    found = exact or same
    return found[-1] if found else None


def _behind(verdicts: pd.DataFrame, alarm: Mapping[str, Any]) -> pd.DataFrame:
    """The flagged executions of the node and aspect of an alarm that goes on, from its first one on."""
    own = verdicts[(verdicts["node"] == alarm["node"]) & (verdicts["aspect"] == alarm["aspect"])]
    is_since = (own["execution_id"] == alarm["first_execution"]).cumsum() > 0
    behind: pd.DataFrame = own[is_since & own["is_flagged"].astype(bool)]
    return behind
