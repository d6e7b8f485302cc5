"""Nodes in order of their scores, with intervals, and ties where executions do not tell nodes apart.

Where enough nodes of one machine type ran several tools, they stand in the order of what the tools say of them in
common (shared_component): on nodes that taught it nothing, that follows the speed of applications better than the score
does. Elsewhere, between machine types, and by aspect, in that of the score."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.component_scores import component_scores
from tasks.nodes.reference_fleet import ReferenceFleet, usual_aspects
from tasks.nodes.score_intervals import SpreadOfType, draw_scores, spreads_of
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import Levels, levels_of, score_nodes
from tasks.nodes.shared_component import shared_components
from tasks.nodes.type_tables import Floats, NodeTables

TIE_RULE = "nodes share a place while the interval of the ratio of the best of them to each holds 1"
ALL = "all"  # instead of an aspect: the one number of a node
COLUMNS = ["aspect", "place", "node", "machine_type", "score", "low", "high", "n_tied", "n_executions", "n_types"]
COLUMNS += ["lacks", "pc1", "shared", "shared_place"]


@dataclass(frozen=True)
class Ranking:
    """table: one row a node and aspect, `all` first, best first: aspect, place (shared by ties), node, machine_type,
    score, low, high (interval, NaN where nobody repeats an execution), n_tied (nodes at that place, itself included),
    n_executions, n_types (of that aspect). Of the one number alone: lacks (aspects that half of the reference ran and
    the node did not, with commas between; such nodes stand behind all others), pc1 (see component_scores), shared
    (on the shared component of the node's machine type, 0 being the middle; NaN where there is none) and shared_place
    (place by it among the nodes of that machine type). With a single machine type place is shared_place."""

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
    scores = score_nodes(tables, reference, params)
    components, usual = component_scores(scores), usual_aspects(reference.table)
    fitted = shared_components(scores, tables.machine_types)
    rows: list[dict[str, object]] = []
    draws: dict[tuple[str, str], Floats] = {}
    shared_draws: dict[str, Floats] = {}
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
            row |= _counts(spreads, number, None if aspect == ALL else aspect) | {
                "lacks": "",
                "pc1": np.nan,
                "shared": np.nan,
            }
            if aspect == ALL:
                row |= {"lacks": ", ".join(lacking(levels, found.seen[1:], usual)), "pc1": components[number]}
                if component := fitted.get(tables.machine_types[number]):
                    row["shared"] = component.score(scores.log_scores[[number]])[0]
                    is_untold = (found.is_unknown & (component.weights != 0)).any()
                    shared_draws[node] = np.where(is_untold, np.nan, component.score(found.of_types)).astype(np.float32)
            rows.append(row)
            draws[aspect, node] = found.drawn[:, at].astype(np.float32)
    if not rows:
        return Ranking(pd.DataFrame(columns=COLUMNS))
    frame, parts = pd.DataFrame(rows), []
    for aspect in (ALL, *levels.aspects):
        of_aspect = frame[frame["aspect"] == aspect]
        drawn = {str(node): draws[aspect, node] for node in of_aspect["node"]}
        parts.append(placed(of_aspect, "score", drawn, params.confidence).assign(shared_place=np.nan))
    parts[0] = _placed_by_shared(parts[0], shared_draws, params.confidence)
    return Ranking(pd.concat([part[COLUMNS] for part in parts if len(part)], ignore_index=True))


def lacking(levels: Levels, by_aspect: Floats, usual: Collection[str]) -> list[str]:
    """The usual aspects that count and of which a node has no score. by_aspect: (n_aspects,), NaN for no score."""
    told = zip(levels.aspects, levels.weights, by_aspect, strict=True)
    return [aspect for aspect, weight, score in told if aspect in usual and weight > 0 and np.isnan(score)]


def _counts(spreads: list[SpreadOfType], number: int, aspect: str | None) -> dict[str, int]:
    own = [len(one.of(number)) for one in spreads if aspect in (None, one.aspect)]
    return {"n_executions": sum(own), "n_types": sum(n > 0 for n in own)}


def _placed_by_shared(nodes: pd.DataFrame, drawn: Mapping[str, Floats], confidence: float) -> pd.DataFrame:
    """With shared_place; with a single machine type in its order. nodes: by their one number."""
    for _, of_type in nodes[nodes["shared"].notna()].groupby("machine_type", dropna=False):
        by_shared = placed(of_type, "shared", drawn, confidence)
        if len(by_shared) == len(nodes):
            return by_shared.assign(shared_place=by_shared["place"].astype(np.float64))
        places = by_shared.set_index("node")["place"]
        is_its = nodes["node"].isin(places.index)
        nodes.loc[is_its, "shared_place"] = nodes.loc[is_its, "node"].map(places).astype(np.float64)
    return nodes


def placed(nodes: pd.DataFrame, by: str, drawn: Mapping[str, Floats], confidence: float) -> pd.DataFrame:
    """The rows in order of a column, best first, those that lack nothing before others; with place and n_tied.

    drawn: of each node, (n_resamples,)."""
    ordered = nodes.assign(is_part=nodes["lacks"] != "").sort_values(
        ["is_part", by, "node"], ascending=[True, False, True], ignore_index=True
    )
    draws, is_part = [drawn[node] for node in ordered["node"]], ordered["is_part"].tolist()
    places, first = [], 0
    for at in range(len(ordered)):
        if is_part[at] != is_part[first] or not is_tie(draws[first], draws[at], confidence):
            first = at
        places.append(first + 1)
    ordered = ordered.assign(place=places).drop(columns="is_part")
    return ordered.assign(n_tied=ordered.groupby("place")["node"].transform("size"))


def is_tie(one: Floats, other: Floats, confidence: float) -> bool:
    """Whether the interval of the ratio of two scores holds 1; unknown intervals tell nothing apart.

    one, other: (n_resamples,) logarithms, drawn independently."""
    apart = one - other
    if np.isnan(apart).any():
        return True
    low, high = np.quantile(apart, [(1 - confidence) / 2, (1 + confidence) / 2])
    return bool(low <= 0 <= high)
