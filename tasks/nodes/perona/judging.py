"""What the network says of executions, each beside its predecessors: a logit of degradation, without any label.

In use no label is known. So predecessors are chosen by verdicts, not by labels as in the paper: the latest earlier
executions of the node and type that are not flagged. Each verdict hangs on verdicts of earlier executions alone, and
going through time decides them one after another.

A node of which everything was flagged from the first on has none. That is another kind of machine, or one that always
was like that, rather than one that changed: after `new_level_after` such executions the least suspicious of them stand
beside later ones, until one is not flagged. So a lasting difference is told once, and from then on a change is. That
the node is slow is for the ranking to say.

Where the network says nothing of an execution with too few predecessors (the paper's variant: fewer than three), that
execution has no verdict, and stands beside later ones as if it were calm: the paper takes its history for granted.

The same is found for all executions at once: judge them by guessed verdicts, choose predecessors by the outcome, judge
those again whose predecessors are others now, until none are. After k rounds the first k executions of each node and
type are as in going through time, so what no round changes any more is what going through time gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tasks.nodes.perona.graph import ABSENT, Batches, GraphSet, predecessors_of
from tasks.nodes.perona.inputs import NO_TYPE, Bools, Floats, Inputs, Ints
from tasks.nodes.perona.network import PeronaNetwork
from tasks.nodes.perona.params import FingerprintParams

OF_EXECUTIONS = (
    "x",
    "is_own",
    "type_of",
    "node_of",
    "started_s",
    "before",
    "during",
    "performance",
    "labels",
)


@dataclass(frozen=True)
class Answer:
    """About some executions.

    rows: (b,) which. logit: (b,), NaN of a network that was not taught to detect. is_inferred: (b,) whether there was a
    neighbourhood to infer the fingerprint from. expected: (b, f) what that decodes to, on the scale of x."""

    rows: Ints
    logit: Floats
    is_inferred: Bools
    expected: Floats


def targets_of(
    inputs: Inputs, network: PeronaNetwork, rows: Ints, predecessors: Ints, at_once: int
) -> Iterator[Answer]:
    """Ask the network about executions, `at_once` at a time, in the order of rows.

    rows: (k,). predecessors: (k, p), ABSENT where there are fewer. The network is as it was afterwards; nothing is
    drawn at random. Only these rows are handed on, so few of them cost little."""
    batches = Batches(_of_rows(inputs, rows, predecessors), network.params)
    was_training = network.training
    network.eval()
    try:
        for first in range(0, len(rows), at_once):
            numbers = np.arange(first, min(first + at_once, len(rows)))
            yield _ask(batches, network, numbers, rows[numbers])
    finally:
        network.train(was_training)


def _ask(batches: Batches, network: PeronaNetwork, numbers: Ints, rows: Ints) -> Answer:
    batch = batches.of(numbers)
    with torch.no_grad():
        found = network(batch)
    of = batch.is_target  # one a graph, in the order of the graphs
    logit = _floats(found.logit[of])
    return Answer(
        rows,
        logit if network.params.loss.detection else np.full(len(rows), np.nan),
        np.asarray(found.is_inferred[of].numpy(), dtype=bool),
        _floats(found.decoded_nxt[of]),
    )


def _floats(tensor: Tensor) -> Floats:
    return np.asarray(tensor.numpy(), dtype=np.float64)


def _of_rows(inputs: Inputs, rows: Ints, predecessors: Ints) -> GraphSet:
    """The graphs of these rows, over inputs that hold nothing else."""
    is_there = predecessors != ABSENT
    used = np.unique(np.append(rows, predecessors[is_there]))
    few = replace(inputs, **{name: getattr(inputs, name)[used] for name in OF_EXECUTIONS})
    beside = np.where(is_there, np.searchsorted(used, predecessors), ABSENT)
    return GraphSet(few, np.searchsorted(used, rows), beside)


Scorer = Callable[[Ints, Ints], Floats]  # rows (k,) and their predecessors (k, p) to their logits (k,)


@dataclass(frozen=True)
class Question:
    """What is to be settled.

    score: the network. rows: (k,) executions to judge, rising. may_precede: (n,) those of all that may stand beside
    later ones if they are not flagged. count: predecessors. limit: logits above it are flagged. fewest: predecessors
    without which nothing is said. new_level_after: executions that are all flagged from the first on before some of
    them stand beside later ones; 0: never."""

    inputs: Inputs
    score: Scorer
    rows: Ints
    may_precede: Bools
    count: int
    limit: float
    fewest: int = 0
    new_level_after: int = 0

    def passes(self, rows: Ints, logit: Floats) -> Bools:
        """Which of some rows (k,) may stand beside later ones with such verdicts (k,)."""
        is_calm = (logit <= self.limit) | (np.isnan(logit) & (self.fewest > 0))
        return np.asarray(self.may_precede[rows] & is_calm)

    def answer(self, rows: Ints, predecessors: Ints) -> Floats:
        """The logits of rows (k,) beside their predecessors (k, count), NaN where these are too few: (k,)."""
        logit = self.score(rows, predecessors)
        return np.asarray(np.where((predecessors != ABSENT).sum(axis=1) >= self.fewest, logit, np.nan))


@dataclass(frozen=True)
class Settled:
    """logit: (n,), NaN where not judged. predecessors: (n, count) beside which each was judged, ABSENT on the left
    where there were fewer. n_rounds: of judging. n_in_time: executions that had to be judged one after another."""

    logit: Floats
    predecessors: Ints
    n_rounds: int
    n_in_time: int


def settle(asked: Question, rounds: int) -> Settled:
    """Judge all executions at once, starting from each without predecessors; at most so many rounds, then through time
    for the nodes and types that still change."""
    alone = np.full((len(asked.rows), asked.count), ABSENT, dtype=np.int64)
    logit = np.full(len(asked.inputs), np.nan)
    logit[asked.rows] = asked.answer(asked.rows, alone)
    instead = at_first(asked, logit)
    beside = np.full((len(asked.inputs), asked.count), ABSENT, dtype=np.int64)
    n_rounds = 1
    while True:
        is_calm = np.zeros(len(logit), dtype=bool)
        is_calm[asked.rows] = asked.passes(asked.rows, logit[asked.rows])
        wanted = _or_instead(predecessors_of(asked.inputs, is_calm, asked.count), instead)
        changed = asked.rows[(wanted[asked.rows] != beside[asked.rows]).any(axis=1)]
        if not len(changed) or n_rounds > rounds:
            break
        logit[changed] = asked.answer(changed, wanted[changed])
        beside[changed] = wanted[changed]
        n_rounds += 1
    series = series_of(asked.inputs)
    left = asked.rows[np.isin(series[asked.rows], series[changed])]
    return go_through_time(asked, left, Settled(logit, beside, n_rounds, len(left)), instead)


def series_of(inputs: Inputs) -> Ints:
    """The number of each execution's node and type: (n,)."""
    return np.asarray(inputs.node_of * (len(inputs.types) + 1) + inputs.type_of, dtype=np.int64)


def at_first(asked: Question, alone: Floats) -> Ints:
    """Who stands beside each execution if no earlier one of its node and type is calm: (n, count), oldest first.

    The `count` least suspicious of the first `new_level_after` that may precede; ABSENT for these themselves and where
    there are fewer. alone: (n,) logits without predecessors, which the first ones keep as long as all are flagged."""
    found = np.full((len(asked.inputs), asked.count), ABSENT, dtype=np.int64)
    enough = asked.new_level_after
    may = asked.rows[asked.may_precede[asked.rows]]
    if not enough or not len(may):
        return found
    number = np.unique(series_of(asked.inputs), return_inverse=True)[1]
    order = may[np.argsort(number[may], kind="stable")]
    starts = np.searchsorted(number[order], np.arange(number.max() + 2))
    is_long = np.diff(starts) >= enough
    first = order[starts[:-1][is_long, None] + np.arange(enough)]  # (series, enough)
    kept = np.argsort(alone[first], axis=1, kind="stable")[:, : asked.count]
    chosen = np.sort(np.take_along_axis(first, kept, axis=1), axis=1)
    place = np.cumsum(is_long) - 1  # of a long series among these
    own = asked.rows[is_long[number[asked.rows]]]
    later = own[own > first[place[number[own]], -1]]
    found[later, asked.count - chosen.shape[1] :] = chosen[place[number[later]]]
    return found


def _or_instead(predecessors: Ints, instead: Ints) -> Ints:
    """The predecessors, those of at_first where there are none: (k, count) each."""
    return np.asarray(np.where((predecessors == ABSENT).all(axis=1)[:, None], instead, predecessors))


def go_through_time(asked: Question, rows: Ints, before: Settled, instead: Ints) -> Settled:
    """Judge executions one after another, those at the same place of their nodes and types together.

    rows: (k,) all executions to judge of some nodes and types. before: what stays where predecessors are the same.
    instead: (n, count) of at_first."""
    if not len(rows):
        return before
    logit, beside = before.logit.copy(), before.predecessors.copy()
    names, number = np.unique(series_of(asked.inputs)[rows], return_inverse=True)
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(len(names) + 1))
    place = np.arange(len(rows)) - starts[number[order]]  # of each within its series
    latest = np.full((len(names), asked.count), ABSENT, dtype=np.int64)
    steps = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place))
    for own in np.split(order[steps], ends[:-1]):
        now, of = rows[own], number[own]
        wanted = _or_instead(latest[of], instead[now])
        is_changed = (wanted != beside[now]).any(axis=1)
        if is_changed.any():
            beside[now] = wanted
            logit[now[is_changed]] = asked.answer(now[is_changed], beside[now[is_changed]])
        is_next = asked.passes(now, logit[now])
        latest[of[is_next]] = np.column_stack([latest[of[is_next], 1:], now[is_next]])
    return Settled(logit, beside, before.n_rounds, before.n_in_time)


ONE_HOT = "type="  # how the names of columns begin that tell the type, not a measurement


@dataclass(frozen=True)
class Judged:
    """logit, probability: (n,), NaN for executions that cannot be judged. is_flagged: (n,) probability above the
    threshold. predecessors: (n, p) rows beside which each was judged, oldest first, -1 where there were fewer.

    n_rounds: rounds until no verdict changed. n_in_time: executions that had to be judged one after another."""

    logit: Floats
    probability: Floats
    is_flagged: Bools
    predecessors: Ints
    n_rounds: int
    n_in_time: int


def judge(
    inputs: Inputs, network: PeronaNetwork, params: FingerprintParams, *, may_precede: Bools | None = None
) -> Judged:
    """Judge all executions, each beside the latest earlier ones of its node and type that are not flagged.

    Nothing is said of the first ones of a node, which stand beside nothing (in the paper's variant: beside fewer than
    it was taught with). Nothing flagged is a predecessor, but where everything was flagged from the
    first on (above), nor what may_precede (n,) denies, such as disturbed executions. Executions of a type
    that training did not have, and those without any measurement, are not judged. 100,000 take less than 10 s."""
    is_judged = can_be_judged(inputs)
    may = is_judged if may_precede is None else is_judged & may_precede

    def score(rows: Ints, predecessors: Ints) -> Floats:
        found = [part.logit for part in targets_of(inputs, network, rows, predecessors, params.graphs_at_once)]
        return np.concatenate(found) if found else np.empty(0)

    count, limit = network.params.graph.predecessors, logit_of(params.threshold)
    rows, fewest = np.flatnonzero(is_judged), network.fewest
    asked = Question(inputs, score, rows, may, count, limit, fewest=fewest, new_level_after=params.new_level_after)
    found = settle(asked, params.rounds)
    is_flagged = found.logit > limit
    told = (found.predecessors, found.n_rounds, found.n_in_time)
    return Judged(found.logit, probability_of(found.logit), is_flagged, *told)


def can_be_judged(inputs: Inputs) -> Bools:
    """Executions of a type of training with at least one measurement: (n,)."""
    return np.asarray((inputs.type_of != NO_TYPE) & inputs.is_own[:, is_metric(inputs)].any(axis=1))


def is_metric(inputs: Inputs) -> Bools:
    """Which columns of x are measurements: (f,); the others tell the type."""
    return np.array([not name.startswith(ONE_HOT) for name in inputs.columns], dtype=bool)


def probability_of(logit: Floats) -> Floats:
    """1 / (1 + exp(-logit)), without overflow, and exact in small ones as well."""
    small = np.exp(-np.abs(logit))
    return np.asarray(np.where(logit >= 0, 1.0, small) / (1 + small))


def logit_of(probability: float) -> float:
    """ln(p / (1 - p)): infinite for 1, minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return float(np.log(np.float64(probability)) - np.log1p(-np.float64(probability)))


def undisturbed(executions: pd.DataFrame) -> Bools:
    """Executions that completed and during which nobody else used the machine: (n,); labels are not looked at.

    Others are judged, but stand beside none (may_precede)."""
    contaminated = executions["is_contaminated"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    return np.asarray((executions["status"] == "completed").to_numpy(dtype=bool) & ~contaminated)
