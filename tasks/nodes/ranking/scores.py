"""Scores of executions and nodes: geometric means of oriented ratios to the reference fleet.

    score = exp( Σ_j w_j · o_j · log(x_j / r_j) / Σ_j w_j )

over the metrics j that count, with o = 1 where more is better and -1 where less is: above 1 is better than the
reference, and twice the throughput is twice the score."""

from dataclasses import dataclass

import numpy as np

from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.reference_fleet import ReferenceFleet, aspect_weights
from tasks.nodes.type_tables import Floats, Ints, NodeTables, TypeTable, group_medians, weighted_mean


def log_ratios(table: TypeTable, reference: ReferenceFleet, params: ScoreParams) -> Floats:
    """Natural logarithm of each value's oriented ratio to the reference: (n, m), NaN where there is none.

    A value of 0 or less has no logarithm: where more is better it counts as the smallest ratio, else it is left out
    (tools print a latency below their last digit as 0)."""
    own = reference.of(table)
    limit = np.log(params.largest_ratio)
    usable = np.where(own.median > 0, own.median, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = table.orientation * (np.log(np.where(table.natural > 0, table.natural, np.nan)) - np.log(usable))
    is_nothing = (table.natural <= 0) & (table.orientation > 0) & (usable > 0)
    return np.asarray(np.clip(np.where(is_nothing, -limit, found), -limit, limit))


def execution_scores(table: TypeTable, reference: ReferenceFleet, params: ScoreParams) -> Floats:
    """Natural logarithm of the score of each execution of a type: (n,), NaN without a metric that counts."""
    return weighted_mean(log_ratios(table, reference, params), reference.of(table).weight)


@dataclass(frozen=True)
class Levels:
    """How types sum up to aspects, and aspects to one number.

    types, aspects: names. aspect_of: (n_types,) numbers of aspects. weights: (n_aspects,)."""

    types: tuple[str, ...]
    aspects: tuple[str, ...]
    aspect_of: Ints
    weights: Floats

    def by_aspect(self, log_scores: Floats) -> Floats:
        """Mean over the types of each aspect. log_scores: (…, n_types); returns (…, n_aspects)."""
        each = [weighted_mean(log_scores, (self.aspect_of == at).astype(np.float64)) for at in range(len(self.aspects))]
        return np.stack(each, axis=-1) if each else np.full((*log_scores.shape[:-1], 0), np.nan)

    def overall(self, log_scores: Floats) -> Floats:
        """One number from all types: the mean over the aspects, with their weights. (…,)"""
        return weighted_mean(self.by_aspect(log_scores), self.weights)


@dataclass(frozen=True)
class NodeScores:
    """log_scores: (n_nodes, n_types), medians over a node's executions, NaN for a type that it did not run."""

    nodes: tuple[str, ...]
    levels: Levels
    log_scores: Floats

    def overall(self) -> Floats:
        """The score of each node, 1 being the reference: (n_nodes,), NaN without any type."""
        return np.asarray(np.exp(self.levels.overall(self.log_scores)))

    def by_aspect(self) -> Floats:
        """The score of each node in each aspect: (n_nodes, n_aspects)."""
        return np.asarray(np.exp(self.levels.by_aspect(self.log_scores)))


def levels_of(tables: NodeTables, params: ScoreParams) -> Levels:
    """The types of the tables with their aspects, each in order of name."""
    aspects = tuple(sorted({table.aspect for table in tables.tables}))
    of = np.array([aspects.index(table.aspect) for table in tables.tables], dtype=np.int64)
    weights = aspect_weights(aspects, params.aspect_weights)
    return Levels(tuple(table.name for table in tables.tables), aspects, of, weights)


def score_nodes(tables: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> NodeScores:
    """Score nodes by their executions; median over executions, so that one throttled run sinks no node (III-B).

    Aspects that params leave out do not count. Runs in time linear in the executions."""
    counted = tables.of_aspects(params.left_out_aspects)
    found = np.full((len(tables.nodes), len(counted.tables)), np.nan)
    for at, table in enumerate(counted.tables):
        own = execution_scores(table, reference, params)
        found[:, at] = group_medians(own[:, None], table.nodes, len(tables.nodes))[:, 0]
    return NodeScores(tables.nodes, levels_of(counted, params), found)
