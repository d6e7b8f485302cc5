"""Nodes in order of their scores, with intervals, and ties where executions do not tell nodes apart."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.reference_fleet import ReferenceFleet
from tasks.nodes.score_intervals import SpreadOfType, draw_scores, spreads_of
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import levels_of
from tasks.nodes.type_tables import Floats, NodeTables

TIE_RULE = "nodes share a place while the interval of the ratio of the best of them to each holds 1"
ALL = "all"  # instead of an aspect: the one number of a node
COLUMNS = ["aspect", "place", "node", "machine_type", "score", "low", "high", "n_tied", "n_executions", "n_types"]


@dataclass(frozen=True)
class Ranking:
    """table: one row a node and aspect, `all` first, best first: aspect, place (shared by ties), node, machine_type,
    score, low, high (interval, NaN where nobody repeats an execution), n_tied (nodes at that place, itself included),
    n_executions, n_types (of that aspect)."""

    table: pd.DataFrame

    @property
    def nodes(self) -> pd.DataFrame:
        """One row a node, by its one number."""
        return self.table[self.table["aspect"] == ALL].reset_index(drop=True)

    @property
    def best(self) -> tuple[str, ...]:
        """The node at the first place, or those that share it."""
        return tuple(str(node) for node in self.nodes["node"][self.nodes["place"] == 1])


def rank_nodes(tables: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> Ranking:
    """Rank nodes by their scores, by aspect and as one number.

    Executions are resampled within node and type: the interval says how much a score would move if the same benchmarks
    ran again. Ties: TIE_RULE. Nodes without a score are left out."""
    counted = tables.of_aspects(params.left_out_aspects)
    levels = levels_of(counted, params)
    spreads = spreads_of(counted, reference, params)
    edges = [(1 - params.confidence) / 2, (1 + params.confidence) / 2]
    rows: list[dict[str, object]] = []
    draws: dict[tuple[str, str], Floats] = {}
    for number, node in enumerate(tables.nodes):
        found = draw_scores(node, number, spreads, levels, params)
        if found is None:
            continue
        low, high = np.quantile(found.drawn, edges, axis=0)
        for at, aspect in enumerate((ALL, *levels.aspects)):
            if np.isnan(found.seen[at]):
                continue
            row = {"aspect": aspect, "node": node, "machine_type": tables.machine_types[number]}
            row |= {"score": np.exp(found.seen[at]), "low": np.exp(low[at]), "high": np.exp(high[at])}
            rows.append({**row, **_counts(spreads, number, None if aspect == ALL else aspect)})
            draws[aspect, node] = found.drawn[:, at].astype(np.float32)
    parts = [_placed([row for row in rows if row["aspect"] == one], draws, params) for one in (ALL, *levels.aspects)]
    kept = [part for part in parts if len(part)]
    return Ranking(pd.concat(kept, ignore_index=True) if kept else pd.DataFrame(columns=COLUMNS))


def _counts(spreads: list[SpreadOfType], number: int, aspect: str | None) -> dict[str, int]:
    own = [len(one.of(number)) for one in spreads if aspect in (None, one.aspect)]
    return {"n_executions": sum(own), "n_types": sum(n > 0 for n in own)}


def _placed(rows: list[dict[str, object]], draws: dict[tuple[str, str], Floats], params: ScoreParams) -> pd.DataFrame:
    """The rows of one aspect, best first, with places."""
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    ordered = pd.DataFrame(rows).sort_values(["score", "node"], ascending=[False, True], ignore_index=True)
    places, first, leader = [], 0, None
    for at, (aspect, node) in enumerate(zip(ordered["aspect"], ordered["node"], strict=True)):
        drawn = draws[aspect, node]
        if leader is None or not is_tie(leader, drawn, params.confidence):
            first, leader = at, drawn
        places.append(first + 1)
    placed = ordered.assign(place=places)
    return placed.assign(n_tied=placed.groupby("place")["node"].transform("size"))[COLUMNS]


def is_tie(one: Floats, other: Floats, confidence: float) -> bool:
    """Whether the interval of the ratio of two scores holds 1; unknown intervals tell nothing apart.

    one, other: (n_resamples,) logarithms, drawn independently."""
    apart = one - other
    if np.isnan(apart).any():
        return True
    low, high = np.quantile(apart, [(1 - confidence) / 2, (1 + confidence) / 2])
    return bool(low <= 0 <= high)
