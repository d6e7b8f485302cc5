"""Verdicts that rest on earlier executions whose own verdicts are not known either.

An execution is judged beside its predecessors: the latest earlier executions of its node and type that are not flagged.
So each verdict hangs on verdicts of earlier executions alone, and going through time decides them one after another.
The same is found for all executions at once: judge them by guessed verdicts, choose predecessors by the outcome, judge
those again whose predecessors are others now, until none are. After k rounds the first k executions of each node and
type are as in going through time, so what no round changes any more is what going through time gives."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tasks.nodes.graph.graph_set import ABSENT
from tasks.nodes.graph.inputs import Bools, Floats, Inputs, Ints
from tasks.nodes.graph.predecessors import predecessors_of

Scorer = Callable[[Ints, Ints], Floats]  # rows (k,) and their predecessors (k, p) to their logits (k,)


@dataclass(frozen=True)
class Question:
    """What is to be settled.

    score: the network. rows: (k,) executions to judge, rising. may_precede: (n,) those of all that may stand beside
    later ones if they are not flagged. count: predecessors. limit: logits above it are flagged."""

    inputs: Inputs
    score: Scorer
    rows: Ints
    may_precede: Bools
    count: int
    limit: float


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
    logit[asked.rows] = asked.score(asked.rows, alone)
    beside = np.full((len(asked.inputs), asked.count), ABSENT, dtype=np.int64)
    n_rounds = 1
    while True:
        wanted = predecessors_of(asked.inputs, asked.may_precede & (logit <= asked.limit), asked.count)
        changed = asked.rows[(wanted[asked.rows] != beside[asked.rows]).any(axis=1)]
        if not len(changed) or n_rounds > rounds:
            break
        logit[changed] = asked.score(changed, wanted[changed])
        beside[changed] = wanted[changed]
        n_rounds += 1
    series = series_of(asked.inputs)
    left = asked.rows[np.isin(series[asked.rows], series[changed])]
    return go_through_time(asked, left, Settled(logit, beside, n_rounds, len(left)))


def series_of(inputs: Inputs) -> Ints:
    """The number of each execution's node and type: (n,)."""
    return np.asarray(inputs.node_of * (len(inputs.types) + 1) + inputs.type_of, dtype=np.int64)


def go_through_time(asked: Question, rows: Ints, before: Settled) -> Settled:
    """Judge executions one after another, those at the same place of their nodes and types together.

    rows: (k,) all executions to judge of some nodes and types. before: what stays where predecessors are the same."""
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
        is_changed = (latest[of] != beside[now]).any(axis=1)
        if is_changed.any():
            beside[now] = latest[of]
            logit[now[is_changed]] = asked.score(now[is_changed], beside[now[is_changed]])
        is_next = asked.may_precede[now] & (logit[now] <= asked.limit)
        latest[of[is_next]] = np.column_stack([latest[of[is_next], 1:], now[is_next]])
    return Settled(logit, beside, before.n_rounds, before.n_in_time)
