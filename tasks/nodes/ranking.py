"""Nodes in order of their scores, with intervals, and ties where executions do not tell nodes apart."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.component_scores import component_scores
from tasks.nodes.reference_fleet import ReferenceFleet, usual_aspects
from tasks.nodes.score_intervals import SpreadOfType, draw_scores, spreads_of
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import Levels, levels_of, score_nodes
from tasks.nodes.type_tables import Floats, NodeTables

TIE_RULE = "nodes share a place while the interval of the ratio of the best of them to each holds 1"
ALL = "all"  # instead of an aspect: the one number of a node
COLUMNS = ["aspect", "place", "node", "machine_type", "score", "low", "high", "n_tied", "n_executions", "n_types"]
COLUMNS += ["lacks", "pc1"]


@dataclass(frozen=True)
class Ranking:
    """table: one row a node and aspect, `all` first, best first: aspect, place (shared by ties), node, machine_type,
    score, low, high (interval, NaN where nobody repeats an execution), n_tied (nodes at that place, itself included),
    n_executions, n_types (of that aspect). Of the one number alone: lacks (aspects that half of the reference ran and
    the node did not, with commas between; such nodes stand behind all others) and pc1 (see component_scores)."""

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
    ran again. Ties: TIE_RULE. Nodes without a score are left out. A node that lacks an aspect stands behind those
    that lack none: its number is a mean over fewer aspects, and may be high for that alone."""
    counted = tables.of_aspects(params.left_out_aspects)
    levels = levels_of(counted, params)
    spreads = spreads_of(counted, reference, params)
    edges = [(1 - params.confidence) / 2, (1 + params.confidence) / 2]
    components, usual = component_scores(score_nodes(tables, reference, params)), usual_aspects(reference.table)
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
            row: dict[str, object] = {"aspect": aspect, "node": node, "machine_type": tables.machine_types[number]}
            row |= {"score": np.exp(found.seen[at]), "low": np.exp(low[at]), "high": np.exp(high[at])}
            row |= _counts(spreads, number, None if aspect == ALL else aspect) | {"lacks": "", "pc1": np.nan}
            if aspect == ALL:
                row |= {"lacks": ", ".join(lacking(levels, found.seen[1:], usual)), "pc1": components[number]}
            rows.append(row)
            draws[aspect, node] = found.drawn[:, at].astype(np.float32)
    parts = [_placed([row for row in rows if row["aspect"] == one], draws, params) for one in (ALL, *levels.aspects)]
    kept = [part for part in parts if len(part)]
    return Ranking(pd.concat(kept, ignore_index=True) if kept else pd.DataFrame(columns=COLUMNS))


def lacking(levels: Levels, by_aspect: Floats, usual: Collection[str]) -> list[str]:
    """The usual aspects that count and of which a node has no score. by_aspect: (n_aspects,), NaN for no score."""
    told = zip(levels.aspects, levels.weights, by_aspect, strict=True)
    return [aspect for aspect, weight, score in told if aspect in usual and weight > 0 and np.isnan(score)]


def _counts(spreads: list[SpreadOfType], number: int, aspect: str | None) -> dict[str, int]:
    own = [len(one.of(number)) for one in spreads if aspect in (None, one.aspect)]
    return {"n_executions": sum(own), "n_types": sum(n > 0 for n in own)}


def _placed(rows: list[dict[str, object]], draws: dict[tuple[str, str], Floats], params: ScoreParams) -> pd.DataFrame:
    """The rows of one aspect, best first, with places."""
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    frame = pd.DataFrame(rows)
    ordered = frame.assign(is_part=frame["lacks"] != "").sort_values(
        ["is_part", "score", "node"], ascending=[True, False, True], ignore_index=True
    )
    drawn = [draws[aspect, node] for aspect, node in zip(ordered["aspect"], ordered["node"], strict=True)]
    places, first = [], 0
    for at, is_part in enumerate(ordered["is_part"]):
        if is_part != ordered["is_part"].iloc[first] or not is_tie(drawn[first], drawn[at], params.confidence):
            first = at
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
