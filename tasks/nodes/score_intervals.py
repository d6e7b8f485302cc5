"""How much a node's scores would move if its benchmarks ran again."""

import zlib
from dataclasses import dataclass

import numpy as np

from tasks.nodes.group_medians import group_medians
from tasks.nodes.reference_fleet import ReferenceFleet
from tasks.nodes.resampled_medians import resampled_medians
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import Levels, execution_scores
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables


@dataclass(frozen=True)
class SpreadOfType:
    """The log scores of the executions of one type, sorted by node. starts: (n_nodes + 1,) where each node's begin.

    residuals: of all nodes with enough executions, around their own medians; empty where there is no such node."""

    name: str
    aspect: str
    scores: Floats
    starts: Ints
    residuals: Floats

    def of(self, node: int) -> Floats:
        """Those of one node."""
        return self.scores[self.starts[node] : self.starts[node + 1]]


@dataclass(frozen=True)
class DrawnScores:
    """Log scores of one node, the one number first, then by aspect. seen: (1 + n_aspects,), NaN for an aspect without
    executions. drawn: (n_resamples, 1 + n_aspects), NaN where the spread is not known. of_types: (n_resamples, n_types)
    what is drawn of each type, NaN without executions. is_unknown: (n_types,) types whose spread is not known."""

    seen: Floats
    drawn: Floats
    of_types: Floats
    is_unknown: Bools


def spreads_of(tables: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> list[SpreadOfType]:
    """The scores of each type's executions by node."""
    found = []
    for table in tables.tables:
        scores = execution_scores(table, reference, params)
        is_there = ~np.isnan(scores)
        scores, nodes = scores[is_there], table.nodes[is_there]
        sizes = np.bincount(nodes, minlength=len(tables.nodes))
        order = np.argsort(nodes, kind="stable")
        medians = group_medians(scores[:, None], nodes, len(tables.nodes))[:, 0]
        residuals = (scores - medians[nodes])[sizes[nodes] >= params.min_executions]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        found.append(SpreadOfType(table.name, table.aspect, scores[order], starts, residuals))
    return found


def draw_scores(
    node: str, number: int, spreads: list[SpreadOfType], levels: Levels, params: ScoreParams
) -> DrawnScores | None:
    """Resample the executions of one node; None if it has none.

    The draws depend on the seed and the names of node and type alone, so other nodes change nothing. A node with fewer
    than min_executions of a type borrows the residuals of the other nodes, if any has enough."""
    seen = np.full(len(spreads), np.nan)
    drawn = np.full((params.resamples, len(spreads)), np.nan)
    is_unknown = np.zeros(len(spreads), dtype=bool)
    for at, one in enumerate(spreads):
        own = one.of(number)
        if not len(own):
            continue
        seen[at] = np.median(own)
        source = own if len(own) >= params.min_executions else seen[at] + one.residuals
        is_unknown[at] = not len(source)
        rng = np.random.default_rng([params.seed, _number(node), _number(one.name)])
        drawn[:, at] = seen[at] if is_unknown[at] else resampled_medians(source, len(own), params.resamples, rng)
    if np.isnan(seen).all():
        return None
    each = _with_aspects(drawn, levels)
    each[:, ~np.isnan(_with_aspects(np.where(is_unknown, 0.0, np.nan)[None, :], levels)[0])] = np.nan
    return DrawnScores(_with_aspects(seen[None, :], levels)[0], each, drawn, is_unknown)


def _with_aspects(log_scores: Floats, levels: Levels) -> Floats:
    """The one number and the aspects: (n, 1 + n_aspects)."""
    return np.column_stack([levels.overall(log_scores), levels.by_aspect(log_scores)])


def _number(name: str) -> int:
    return zlib.crc32(name.encode())
