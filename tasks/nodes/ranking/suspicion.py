"""Which nodes stand out by slow executions: more of them than chance lets expect beside the other nodes.

An execution of node i is slow where its log score x lies below the bar of its node and benchmark type,

    bar_i = max( level_i - max(3.5 sigma_i, -log 0.9),  peers_i - max(3.5 sigma, -log 0.8) )

level_i: what the node has shown that it can do: from the highest median of five executions in a row of its earlier
half, or the median of all where that is higher, to the median of the executions near it, over and over. So it is the
upper one of two levels, whether 5 or 95 % of the executions lie at the lower one. What a node reached in its later half
alone, for less than half of its executions, is an improvement, unless others of its kind say that such nodes do it; so
is one that the median of five in a row had not shown until then, as long as it did what its peers do, within 10 %.
sigma_i: the robust deviation of these executions around it, at least sigma, the median one of all nodes.
peers_i: the median level of the other nodes of its machine type, where there are two or more; it sees what the node's
own executions cannot show. Nodes of other types are no measure of its level. Nodes of which nobody says the type have
no peers, but a level that they reached late counts where it is that of the others, within 10 %; and where the others
but one have one level, within 5 %, that level counts for a node that showed it, clear of its own, at least twice.

Node i stands out where P( sum_t H_t >= k_i ) < 0.01 after Holm's correction over the nodes, with k_i its slow
executions, H_t ~ Hypergeometric of the n_it executions of type t that it ran, out of the N_t of all nodes, K_t of them
slow: the exact test of equal shares within types (Zelen 1971). Outliers that all nodes have alike accuse nobody; where
executions are few, nothing can be told. A node that is slow in less than 10 % of every type does not stand out."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import gammaln  # type: ignore[import-untyped, unused-ignore]

from tasks.nodes.params import MIN_EXECUTIONS, ScoreParams
from tasks.nodes.ranking.node_scores import ReferenceFleet, execution_scores
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables

DEVIATIONS = 3.5  # Iglewicz & Hoaglin 1993
NEAR = 3.0  # deviations from the level, of what it is learned from: slow ones must not creep in
QUARTILES = 1.349  # deviations that lie between those of a normal distribution
OWN_LOSS, PEER_LOSS = -np.log(0.9), -np.log(0.8)  # the least that matters; nodes of a machine type are not quite alike
RUN = 5  # executions in a row: three of them are not drawn together out of the tail
FEW = 8  # executions that say nothing of their own deviation
ROUNDS = 8
FIRST = 2.0  # deviations for one estimated from what lies above a first guess: the tail of a normal distribution
LEAST_PEERS = 2
LEAST_LIKE = 2  # executions at the level of the others, of a node of which nobody says the type
APART = 4.0  # deviations above its own level, of such executions: no tail of that level
ALIKE = np.log(1.05)  # nodes of which nobody says the type, and which have one level
ALPHA = 0.01  # of the family: a false name in one of a hundred fleets
LEAST_SHARE = 0.1  # of a type: no two nodes are quite alike, and many executions tell any difference
SHARES_KUIPER = 1.620  # of slow executions over time, at 10 %
RECOVERED = 3  # executions after the last slow ones, as those that clear an alarm
COLUMNS = ["node", "machine_type", "n_executions", "n_low", "low_share", "worst_type", "worst_ratio"]
COLUMNS += ["p_value", "stands_out", "course", "first", "last"]
Course = Literal["lasting", "recovered", "scattered", ""]


@dataclass(frozen=True)
class JudgedType:
    """The executions of one type that were judged, in time order, (n,) each: rows of the history, nodes, log of score
    over the level of the node, or that of its peers where it is higher, and whether that is slow."""

    name: str
    executions: Ints
    nodes: Ints
    apart: Floats
    is_slow: Bools


def suspicious_nodes(tables: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> pd.DataFrame:
    """One row a node, those that stand out first: node, machine_type, n_executions, n_low (slow ones), low_share,
    worst_type (with the largest share of them), worst_ratio (their median score there over the level; NaN without one),
    p_value (after Holm; NaN where there is no other node), stands_out, and how they lie in time, course: lasting (until
    now), recovered, scattered, or empty without any; first, last: rows of the history that they begin and end with, or
    -1.

    tables: of executions without known stress, in time order. Nodes with fewer than min_executions of a type, or five,
    are not judged by it, and left out if there is no other."""
    types = []
    for table in tables.of_aspects(params.left_out_aspects).tables:
        scores = execution_scores(table, reference)
        n_own = np.bincount(table.nodes[~np.isnan(scores)], minlength=len(tables.nodes))
        kept = ~np.isnan(scores) & (n_own >= max(MIN_EXECUTIONS, RUN))[table.nodes]
        if kept.any():
            nodes = table.nodes[kept]
            judgement = slow_executions(scores[kept], nodes, tables.machine_types)
            types.append(JudgedType(table.name, table.executions[kept], nodes, *judgement))
    if not types:
        return pd.DataFrame(columns=COLUMNS)
    n_nodes = len(tables.nodes)
    n_all = np.stack([np.bincount(judged.nodes, minlength=n_nodes) for judged in types])
    n_slow = np.stack([np.bincount(judged.nodes[judged.is_slow], minlength=n_nodes) for judged in types])
    seen = np.flatnonzero(n_all.sum(0))
    p_values = dict(zip(seen.tolist(), excess_p_values(n_slow[:, seen], n_all[:, seen]), strict=True))
    rows = [_row(tables, number, types, n_slow, n_all, p) for number, p in p_values.items()]
    order = ["stands_out", "p_value", "low_share", "node"]
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(
        order, ascending=[False, True, False, True], ignore_index=True
    )


def slow_executions(scores: Floats, nodes: Ints, machine_types: tuple[str, ...]) -> tuple[Floats, Bools]:
    """How far each log score lies from the level of its node, or its peers' where that is higher, and which are slow.

    scores, nodes: (n,) of one benchmark type, in time order; each node has RUN of them at least. machine_types:
    (n_nodes,), empty where nobody says. Returns (n,) each."""
    n_nodes = len(machine_types)
    is_early = 2 * pd.Series(nodes).groupby(nodes).cumcount().to_numpy() < np.bincount(nodes)[nodes]
    kept = _best_runs(scores[is_early], nodes[is_early], n_nodes)
    levels, sigma = _settled(np.fmax(kept, _medians(scores, nodes, n_nodes)), scores, nodes)
    kinds, of = np.unique(np.array(machine_types, dtype=str), return_inverse=True)
    is_stated, others = (kinds != "")[of], _medians_of_others(levels, of)
    if not is_stated.all():
        reached, _ = _settled(_best_runs(scores, nodes, n_nodes), scores, nodes)
        is_like_others = ~is_stated & (np.abs(reached - others) <= OWN_LOSS)
        near = np.abs(scores - others[nodes]) <= NEAR * sigma[nodes]
        near &= scores > (levels + APART * sigma)[nodes]
        n_like = np.bincount(nodes[near], minlength=n_nodes)
        is_peer = ~is_stated & _agree(levels, others) & (n_like >= LEAST_LIKE)
        levels = np.where(is_like_others, np.fmax(levels, reached), levels)
        levels = np.where(is_peer, np.fmax(levels, others), levels)
    peers, usual = np.where(is_stated, others, np.nan), np.nanmin(sigma)
    own = levels - np.maximum(DEVIATIONS * sigma, OWN_LOSS)
    ends, medians = _runs(scores, nodes)
    is_shown = np.zeros(len(scores), dtype=bool)
    is_shown[ends] = medians >= (levels - NEAR * sigma)[nodes[ends]]
    was_shown = pd.Series(is_shown).groupby(nodes).cummax().to_numpy()
    own = np.where(was_shown, own[nodes], np.fmin(own, np.nan_to_num(peers, nan=np.inf) - OWN_LOSS)[nodes])
    bars = np.fmax(own, (peers - np.maximum(DEVIATIONS * usual, PEER_LOSS))[nodes])
    return scores - np.fmax(levels, peers)[nodes], scores < bars


def excess_p_values(n_slow: Ints, n_all: Ints) -> Floats:
    """How likely so many slow executions or more are in each node if all had the same share of each type: (n_nodes,),
    after Holm. n_slow, n_all: (n_types, n_nodes). NaN if there is one node alone."""
    n_nodes = n_slow.shape[1]
    if n_nodes < 2:
        return np.full(n_nodes, np.nan)
    p_values = np.ones(n_nodes)
    expected = (n_all * n_slow.sum(1, keepdims=True) / np.maximum(n_all.sum(1, keepdims=True), 1)).sum(0)
    for node in np.flatnonzero(n_slow.sum(0) > expected):
        chances = np.ones(1)
        for k, n in zip(n_slow, n_all, strict=True):
            chances = np.convolve(chances, _hypergeometric(int(n.sum()), int(k.sum()), int(n[node])))
        p_values[node] = chances[n_slow[:, node].sum() :].sum()
    order = np.argsort(p_values, kind="stable")
    p_values[order] = np.minimum(np.maximum.accumulate(p_values[order] * np.arange(n_nodes, 0, -1)), 1.0)
    return p_values


def _hypergeometric(total: int, marked: int, drawn: int) -> Floats:
    """The chances that 0, 1, … of the marked ones are among those drawn out of the total."""
    least, most = max(0, drawn + marked - total), min(marked, drawn)
    h = np.arange(least, most + 1)
    log_chances = _log_choose(marked, h) + _log_choose(total - marked, drawn - h) - _log_choose(total, np.array(drawn))
    return np.concatenate([np.zeros(least), np.exp(log_chances)])


def _log_choose(n: int, k: Ints) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def slow_stretch(is_slow: Bools) -> tuple[Course, int, int]:
    """How the slow executions of a node lie in time, and the first and the last of them; "", -1, -1 without any.

    The stretch is where slow ones are above their share, S_t = sum_{s<=t} (slow_s - share), by the largest rise of S
    (Page 1955). Without a rise beyond chance (Kuiper's test) they are scattered."""
    slow = np.flatnonzero(is_slow)
    n, share = len(is_slow), float(is_slow.mean()) if len(is_slow) else 0.0
    if not len(slow):
        return "", -1, -1
    total = np.concatenate([[0.0], np.cumsum(is_slow - share)])
    rises = total - np.minimum.accumulate(total)
    end = int(rises.argmax())
    if share == 1:
        return "lasting", 0, n - 1
    if rises[end] < SHARES_KUIPER * np.sqrt(n * share * (1 - share)):
        return "scattered", int(slow[0]), int(slow[-1])
    begin = int(total[: end + 1].argmin())
    return ("recovered" if n - end >= RECOVERED else "lasting"), begin, end - 1


def _settled(levels: Floats, scores: Floats, nodes: Ints) -> tuple[Floats, Floats]:
    """The level of each node, from where it begins, and its deviation, by quartiles: (n_nodes,) each."""
    ordered = scores[np.lexsort((scores, nodes))]
    sizes = np.bincount(nodes, minlength=len(levels))
    starts = np.cumsum(sizes) - sizes
    low, high = levels, np.full(len(levels), np.inf)
    for at_round in range(ROUNDS):  # those near the level are neighbours in the sorted scores of a node
        begin = starts + np.bincount(nodes[scores < low[nodes]], minlength=len(levels))
        n_near = starts + np.bincount(nodes[scores <= high[nodes]], minlength=len(levels)) - begin
        quartiles = [
            np.where(n_near > 0, ordered[np.minimum(begin + at * n_near // 4, len(ordered) - 1)], np.nan)
            for at in (1, 2, 3)
        ]
        spread = (quartiles[2] - quartiles[0]) / QUARTILES
        usual = np.full(len(levels), np.nanmedian(spread))
        sigma = np.where(n_near >= FEW, np.fmax(spread, usual), usual)
        if at_round == 0:  # above a first guess may lie another level
            sigma, quartiles[1] = FIRST * usual, levels
        levels = quartiles[1]
        low, high = levels - NEAR * sigma, levels + NEAR * sigma
    return levels, sigma


def _best_runs(scores: Floats, nodes: Ints, n_nodes: int) -> Floats:
    """The highest median of RUN executions in a row of each node: (n_nodes,), NaN for one with fewer."""
    best = np.full(n_nodes, np.nan)
    ends, medians = _runs(scores, nodes)
    np.fmax.at(best, nodes[ends], medians)
    return best


def _runs(scores: Floats, nodes: Ints) -> tuple[Ints, Floats]:
    """All RUN executions in a row of a node: where the last of them stands, and their median."""
    if len(scores) < RUN:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    order = np.argsort(nodes, kind="stable")
    medians = np.sort(np.lib.stride_tricks.sliding_window_view(scores[order], RUN), axis=1)[:, RUN // 2]
    of = nodes[order]
    is_same_node = of[RUN - 1 :] == of[: len(medians)]
    return order[RUN - 1 :][is_same_node], medians[is_same_node]


def _medians(values: Floats, groups: Ints, n_groups: int) -> Floats:
    """The median of each group, of two in the middle the upper one: a value that was measured. NaN without any."""
    sizes = np.bincount(groups, minlength=n_groups)
    places = np.cumsum(sizes) - sizes + sizes // 2
    ordered = np.append(values[np.lexsort((values, groups))], np.nan)
    return np.where(sizes > 0, ordered[places], np.nan)


def _medians_of_others(levels: Floats, kinds: Ints) -> Floats:
    """The median level of the other nodes of the same kind: (n_nodes,), NaN with fewer than LEAST_PEERS of them."""
    medians = np.full(len(levels), np.nan)
    for kind in np.unique(kinds):
        members = np.flatnonzero((kinds == kind) & ~np.isnan(levels))
        m = len(members) - 1
        if m >= LEAST_PEERS:
            ordered, member_levels = np.sort(levels[members]), levels[members]
            place = np.searchsorted(ordered, member_levels)
            pair = [ordered[at + (place <= at)] for at in ((m - 1) // 2, m // 2)]
            medians[members] = (pair[0] + pair[1]) / 2
    return medians


def _agree(levels: Floats, others: Floats) -> Bools:
    """Whether all of the other nodes but one, from three on, have one level, within ALIKE: (n_nodes,)."""
    is_near = np.abs(levels[None, :] - others[:, None]) <= ALIKE  # of node (column) for each node (row)
    np.fill_diagonal(is_near, False)
    n_others = np.sum(~np.isnan(levels)) - 1
    return np.asarray(is_near.sum(1) >= max(LEAST_PEERS + 1, n_others - 1))


def _row(
    tables: NodeTables, number: int, types: list[JudgedType], n_slow: Ints, n_all: Ints, p_value: float
) -> tuple[object, ...]:
    shares = n_slow[:, number] / np.maximum(n_all[:, number], 1)
    worst, worst_type, worst_ratio = int(shares.argmax()), "", np.nan
    course, first, last = slow_stretch(np.zeros(0, dtype=bool))
    if shares[worst] > 0:
        is_own = types[worst].nodes == number
        worst_type = types[worst].name
        worst_ratio = float(np.exp(np.median(types[worst].apart[is_own & types[worst].is_slow])))
        affected = [judged for judged, share in zip(types, shares, strict=True) if share >= shares[worst] / 2]
        executions = np.concatenate([judged.executions[judged.nodes == number] for judged in affected])
        order = np.argsort(executions)
        is_slow = np.concatenate([judged.is_slow[judged.nodes == number] for judged in affected])[order]
        course, *edges = slow_stretch(is_slow)
        first, last = (int(executions[order][at]) for at in edges)
    k, n = int(n_slow[:, number].sum()), int(n_all[:, number].sum())
    facts = (tables.nodes[number], tables.machine_types[number], n, k, k / n, worst_type, worst_ratio)
    return (*facts, p_value, bool(p_value < ALPHA and shares[worst] >= LEAST_SHARE), course, first, last)
