"""Isolation trees, grown and asked by compiled code: 1,200 small trees cost hundredths of a second.

The very trees of scikit-learn's IsolationForest: the same draws in the same order, so the same splits; a test holds
them side by side. scikit-learn spends most of its time on making an estimator of each tree. Source: Liu, Ting & Zhou
2008; scikit-learn 1.9, tree/_splitter.pyx (random splits) and ensemble/_bagging.py (seeds)."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tasks.nodes.type_tables import Floats, Ints

Floats32 = NDArray[np.float32]
DRAWN = 256  # training rows that each tree is grown from, at most
LARGEST_SEED = 2**31 - 1
CONSTANT = np.float32(1e-7)  # a metric whose values lie no farther apart is not split


@dataclass(frozen=True)
class Forest:
    """Complete binary trees of one depth: the children of place i are at 2i + 1 and 2i + 2.

    metric, limit: (trees, 2^depth - 1) a row goes left if its metric is at most the limit. length: (trees, 2^depth) of
    the path to each end. usual: what the mean of these is for rows like any others."""

    metric: Ints
    limit: Floats
    length: Floats
    usual: float


def grow_forest(ready: Floats32, n_trees: int, seed: int) -> Forest:
    """Trees of a training set, (n, m) and finite, n > 1. seed: below 2^31."""
    from sklearn.utils.random import sample_without_replacement  # type: ignore[import-untyped, unused-ignore]

    n_drawn = min(DRAWN, len(ready))
    depth = int(np.ceil(np.log2(n_drawn)))
    lengths = usual_lengths(n_drawn)
    metric = np.zeros((n_trees, 2**depth - 1), dtype=np.int64)
    limit, length = np.full(metric.shape, np.inf), np.zeros((n_trees, 2**depth))
    drawing = np.random.RandomState(seed)  # one for all: making one costs more than growing a tree
    for at, own in enumerate(drawing.randint(LARGEST_SEED, size=n_trees)):
        drawing.seed(own)
        drawing.seed(drawing.randint(LARGEST_SEED))
        state = drawing.randint(LARGEST_SEED)
        drawing.seed(own)
        sample_without_replacement(ready.shape[1], ready.shape[1], random_state=drawing)  # scikit-learn draws metrics
        rows = sample_without_replacement(len(ready), n_drawn, random_state=drawing).astype(np.int64)
        grow_tree(ready, rows, int(state), lengths, metric[at], limit[at], length[at])
    return Forest(metric, limit, length, float(lengths[-1]))


def isolation_scores(forest: Forest, ready: Floats32) -> Floats:
    """2^-(mean path / usual path) of each row: (n,), larger for rows that are soon alone. ready: (n, m)."""
    total = path_lengths(np.ascontiguousarray(ready), forest.metric, forest.limit, forest.length)
    return np.asarray(2.0 ** -(total / (len(forest.metric) * forest.usual)))


def usual_lengths(most: int) -> Floats:
    """The mean path that parts one of n rows from the others, for n = 0 … most: (most + 1,)."""
    found = np.zeros(most + 1)
    found[2:3] = 1.0
    n = np.arange(3, most + 1)
    found[3:] = 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    return found


@njit(cache=True)
def path_lengths(ready: Floats32, metric: Ints, limit: Floats, length: Floats) -> Floats:
    """The sum over the trees of the lengths of each row's paths: (n,). No branch: a row takes `depth` steps."""
    n_inner = metric.shape[1]
    total = np.zeros(len(ready))
    for tree in range(len(metric)):
        for row in range(len(ready)):
            at = 0
            while at < n_inner:
                at = 2 * at + 2 - int(ready[row, metric[tree, at]] <= limit[tree, at])
            total[row] += length[tree, at - n_inner]
    return total


@njit(cache=True)
def grow_tree(
    ready: Floats32, rows: Ints, state: int, lengths: Floats, metric: Ints, limit: Floats, length: Floats
) -> None:
    """Grow one tree from some rows, which are reordered; metric, limit and length of a Forest are filled in.

    state: of the drawing. lengths: usual_lengths."""
    n_inner, n_metrics = len(metric), ready.shape[1]
    metrics, constant = np.arange(n_metrics), np.empty(n_metrics, np.int64)
    waiting = np.empty((2 * n_inner + 1, 5), np.int64)  # place, depth, first row, end, metrics known to be constant
    waiting[0] = 0
    waiting[0, 3] = len(rows)
    n_waiting = 1
    while n_waiting:
        n_waiting -= 1
        place, depth, n_constant = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 4]
        first, end = waiting[n_waiting, 2], waiting[n_waiting, 3]
        chosen, border = -1, 0.0
        if place < n_inner and end - first > 1:
            chosen, border, n_constant, state = draw_split(ready, rows[first:end], metrics, constant, n_constant, state)
        if chosen < 0:  # nothing to part: the path ends here, whichever way a row goes on
            while place < n_inner:
                place = 2 * place + 1
            length[place - n_inner] = depth + lengths[end - first]
            continue
        metric[place], limit[place] = chosen, border
        middle = first + part(ready, rows[first:end], chosen, border)
        for child, low, high in ((2 * place + 2, middle, end), (2 * place + 1, first, middle)):  # the left one first
            waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 4] = child, depth + 1, n_constant
            waiting[n_waiting, 2], waiting[n_waiting, 3] = low, high
            n_waiting += 1


@njit(cache=True)
def draw_split(
    ready: Floats32, rows: Ints, metrics: Ints, constant: Ints, n_known: int, state: int
) -> tuple[int, float, int, int]:
    """A drawn metric that varies among the rows, or -1; a drawn limit; how many metrics are constant; the next state.

    metrics: (m,) in the order in which they are drawn from, the n_known constant ones first; reordered in place.
    constant: (m,) the constant ones as they were found."""
    n_found, n_drawn, n_left = 0, 0, len(metrics)
    chosen, border = -1, 0.0
    while chosen < 0 and n_left > n_known + n_found:
        state = next_state(state)
        at = n_drawn + draw_of(state) % (n_left - n_found - n_drawn)
        if at < n_known:
            metrics[n_drawn], metrics[at] = metrics[at], metrics[n_drawn]
            n_drawn += 1
            continue
        at += n_found
        metric = metrics[at]
        low, high = extremes(ready, rows, metric)
        if high <= low + CONSTANT:
            metrics[at], metrics[n_known + n_found] = metrics[n_known + n_found], metric
            n_found += 1
            continue
        metrics[n_left - 1], metrics[at] = metric, metrics[n_left - 1]
        state = next_state(state)
        chosen, border = metric, drawn_between(np.float64(low), np.float64(high), draw_of(state))
    metrics[:n_known] = constant[:n_known]
    constant[n_known : n_known + n_found] = metrics[n_known : n_known + n_found]
    return chosen, border, n_known + n_found, state


@njit(cache=True)
def drawn_between(low: float, high: float, draw: int) -> float:
    """At least low and less than high."""
    found = (high - low) * draw / LARGEST_SEED + low
    return low if found == high else found


@njit(cache=True)
def extremes(ready: Floats32, rows: Ints, metric: int) -> tuple[float, float]:
    """The smallest and the largest value of a metric among some rows."""
    low = high = ready[rows[0], metric]
    for row in rows:
        value = ready[row, metric]
        low, high = min(low, value), max(high, value)
    return low, high


@njit(cache=True)
def part(ready: Floats32, rows: Ints, metric: int, border: float) -> int:
    """Put the rows whose metric is at most the border before the others, in place; how many they are."""
    first, end = 0, len(rows)
    while first < end:
        if ready[rows[first], metric] <= border:
            first += 1
        else:
            end -= 1
            rows[first], rows[end] = rows[end], rows[first]
    return end


@njit(cache=True)
def next_state(state: int) -> int:
    """Marsaglia's xorshift of 32 bits, as scikit-learn has it; never 0."""
    mask = 0xFFFFFFFF
    state = state or 1
    state ^= (state << 13) & mask
    state ^= state >> 17
    return state ^ ((state << 5) & mask)


@njit(cache=True)
def draw_of(state: int) -> int:
    """A number from 0 to 2^31 - 1."""
    return state & 0x7FFFFFFF
