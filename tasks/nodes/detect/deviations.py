"""Robust deviations of executions: from the level of their node, from what it did lately, from the fleet.

    z = (ln x - median) / max(1.4826 · MAD, floor)

x is a metric in base units; of one that is not always positive sign(x) ln(1 + |x|) takes the place of ln x. The level
is the median of the node's calm training executions; recent is the median of its own last executions, whatever they
were: no label and no verdict enters, so a level that lasts becomes the level. Floors come from all nodes of the type: a
node that happened to vary little does not make noise look large. Source of robust z-scores: Iglewicz & Hoaglin 1993.

The score without labels looks at headline metrics twice: from the level, and from the last executions that looked
normal. Of a node that is degraded in half of its executions the median of all of them is no longer what is usual."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from tasks.nodes.params import DetectorParams
from tasks.nodes.tools import headlines
from tasks.nodes.type_tables import FEWEST, SD_OF_MAD, Bools, Floats, Ints, TypeTable

RECENT = (20, 50)  # executions of a node and type that the two windows hold
LEVEL_FLOOR = 0.5  # of the median deviation of the type's nodes
CLIPPED = 8.0  # deviations: beyond it nothing more is learned from the size
TINY = 1e-6  # of the largest magnitude: what varies less is constant
HEADLINE_CLIPPED = 20.0  # and of one headline metric in the score without labels
LOOKS_NORMAL = 3.0  # deviations, over the headline metrics, up to which an execution is what later ones are seen from
NEW_LEVEL = 20  # executions in a row that do not look normal: they are the level from then on
WIDEST = 1.5  # times the deviation of what looked normal: all recent executions together widen it so far at most
LEAST_SCALE = 1e-3
CELLS = 4_000_000  # numbers of all windows that are held at a time
FLEET_LEAST = 3  # other nodes of the type that must have run at about the same time
FLEET_MOST = 32
FLEET_HOURS = 24.0


@dataclass(frozen=True)
class Rows:
    """The executions of one benchmark type with what is known of where and when they ran.

    names, machines: of the nodes, by number in table.nodes. at_h: (n,) hours since any time, NaN where unknown."""

    table: TypeTable
    names: tuple[str, ...]
    machines: tuple[str, ...]
    at_h: Floats


class Centre(NamedTuple):
    """A median and a robust deviation of each metric: (m,) each, NaN where nothing is known."""

    median: Floats
    deviation: Floats


@dataclass(frozen=True)
class Normal:
    """What the calm training executions of a type taught; arrays over its m metrics.

    is_positive: metrics of which the logarithm is taken. floor, pooled: least deviations of the level and of the
    windows. nodes, machines: levels by name of node and of machine type; fleet: of all. settled: the nodes whose level
    rests on as many executions as the shorter window holds."""

    is_positive: Bools
    floor: Floats
    pooled: Floats
    fleet: Centre
    nodes: dict[str, Centre]
    machines: dict[str, Centre]
    settled: tuple[str, ...]


@dataclass(frozen=True)
class Windows:
    """Medians and deviations of each row's own earlier executions: (n, m) by window length; NaN for fewer than FEWEST.

    is_positive: (m,) metrics of which the logarithm was taken. n_before: (n,) earlier executions of node and type."""

    centres: dict[int, Centre]
    is_positive: Bools
    n_before: Ints


def logarithms(natural: Floats, is_positive: Bools) -> Floats:
    """The metrics on the scale that deviations are taken on: (n, m), NaN where not measured."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(natural > 0, natural, np.finfo(np.float64).tiny))
        signed = np.sign(natural) * np.log1p(np.abs(natural))
    return np.where(np.isnan(natural), np.nan, np.where(is_positive, logs, signed))


def learn_normal(rows: Rows, windows: Windows, is_calm: Bools) -> Normal:
    """What the calm training executions of the mask (n,) are like."""
    table = rows.table
    x = logarithms(table.natural, windows.is_positive)
    fleet = _centre(x[is_calm])
    calm_of = {rows.names[node]: places for node, places in _groups(table.nodes, is_calm)}
    nodes = {name: _centre(x[places]) for name, places in calm_of.items()}
    settled = tuple(name for name, places in calm_of.items() if len(places) >= RECENT[0])
    kinds, kind_of = np.unique(np.array(rows.machines, dtype=object).astype(str), return_inverse=True)
    machines = {
        str(kinds[kind]): _centre(x[places]) for kind, places in _groups(kind_of[table.nodes], is_calm) if kinds[kind]
    }
    scale = np.maximum(np.nanmax(np.abs(np.nan_to_num(x)), axis=0, initial=0.0), LEAST_SCALE) * TINY
    spreads = [centre.deviation for centre in nodes.values()] or [fleet.deviation]
    floor = np.maximum(LEVEL_FLOOR * np.nan_to_num(_nanmedian(np.array(spreads))), scale)
    residual = SD_OF_MAD * _nanmedian(np.abs(x - windows.centres[RECENT[-1]].median)[is_calm])
    pooled = np.where(np.isnan(residual), fleet.deviation, residual)
    return Normal(windows.is_positive, floor, np.maximum(np.nan_to_num(pooled), scale), fleet, nodes, machines, settled)


def positive_metrics(natural: Floats, is_calm: Bools) -> Bools:
    """The metrics that are above 0 wherever they were measured: (m,)."""
    return np.asarray((np.isnan(natural[is_calm]) | (natural[is_calm] > 0)).all(axis=0))


def windows_of(table: TypeTable, is_positive: Bools) -> Windows:
    """What each row's node had done before it: no row is part of its own window, and none of its future is."""
    x = logarithms(table.natural, is_positive)
    order = np.argsort(table.nodes, kind="stable")  # rows are in time order, so each node's are too
    first = np.flatnonzero(np.append(True, np.diff(table.nodes[order]) != 0))
    begins = np.repeat(first, np.diff(np.append(first, len(order))))
    n_before = np.empty(len(order), dtype=np.int64)
    n_before[order] = np.arange(len(order)) - begins
    centres = {}
    for length in RECENT:
        median, deviation = (np.full(x.shape, np.nan) for _ in range(2))
        for part in _parts(len(order), length * max(x.shape[1], 1)):
            places = np.arange(part.start, part.stop)[:, None] - np.arange(1, length + 1)
            is_inside = places >= begins[part][:, None]
            window = np.where(is_inside[:, :, None], x[order[np.maximum(places, 0)]], np.nan)  # (rows, length, m)
            rows = order[part]
            median[rows], deviation[rows] = _median_and_deviation(window)
        centres[length] = Centre(median, deviation)
    return Windows(centres, is_positive, n_before)


def level_deviations(rows: Rows, normal: Normal, windows: Windows) -> Floats:
    """Deviations from the level: (n, m)."""
    level = level_of(rows, normal, windows)
    return np.asarray((logarithms(rows.table.natural, normal.is_positive) - level.median) / level.deviation)


def level_of(rows: Rows, normal: Normal, windows: Windows) -> Centre:
    """The level of each row and its floored deviation: (n, m) each. Of the node in training; of a node that is new its
    own recent executions; of one with fewer than FEWEST of these, its machine type; else the fleet."""
    level, recent = _levels(rows, normal), windows.centres[RECENT[-1]]
    is_new = ~np.array([name in normal.nodes for name in rows.names], dtype=bool)[rows.table.nodes]
    is_recent = (is_new & (windows.n_before >= FEWEST))[:, None] & ~np.isnan(recent.median)
    centre, spread = (np.where(is_recent, *pair) for pair in zip(recent, level, strict=True))
    return Centre(centre, np.maximum(spread, normal.floor))


def usual_of(rows: Rows, normal: Normal, windows: Windows, length: int) -> tuple[Centre, Floats]:
    """What each metric of each row usually is, on the scale of logarithms(), with its floored deviation; and how far
    the row lies from it: (n, m) each.

    By the node's own last `length` executions; of one with few of these, by its level."""
    x = logarithms(rows.table.natural, normal.is_positive)
    level, recent = _levels(rows, normal), windows.centres[length]
    is_few = np.isnan(recent.median)
    centre, spread = (np.where(is_few, *pair) for pair in zip(level, recent, strict=True))
    floored = np.fmax(spread, normal.pooled)
    return Centre(centre, floored), np.asarray((x - centre) / floored)


def recent_deviations(rows: Rows, normal: Normal, windows: Windows, length: int) -> Floats:
    """Deviations from what is usual by the node's own last `length` executions: (n, m)."""
    return usual_of(rows, normal, windows, length)[1]


def is_cold(rows: Rows, normal: Normal, windows: Windows) -> Bools:
    """Executions that there is nothing to compare with: (n,); of a node and a machine type that are new, the first."""
    known = [
        name in normal.nodes or machine in normal.machines
        for name, machine in zip(rows.names, rows.machines, strict=True)
    ]
    return ~np.array(known, dtype=bool)[rows.table.nodes] & (windows.n_before < FEWEST)


def without_fleet_drift(z: Floats, rows: Rows) -> Floats:
    """Deviations less what the other nodes showed at about the same time: (n, m).

    What is taken off is the median of the latest deviation of each other node
    within FLEET_HOURS, where there are FLEET_LEAST of them: a drift of the whole fleet is no fault of a node. Of a
    large fleet the FLEET_MOST nodes with most executions stand for it."""
    nodes, at_h = rows.table.nodes, rows.at_h
    counts = np.bincount(nodes)
    fleet = np.argsort(-counts, kind="stable")[:FLEET_MOST]
    fleet = fleet[counts[fleet] > 0]
    if len(fleet) <= FLEET_LEAST:
        return z
    rows_of = [np.flatnonzero(nodes == node) for node in fleet.tolist()]
    adjusted = z.copy()
    for part in _parts(len(z), len(fleet) * max(z.shape[1], 1)):
        places = np.arange(part.start, part.stop)
        others = np.full((len(places), len(fleet), z.shape[1]), np.nan)  # (rows, fleet, m)
        for place, (node, node_rows) in enumerate(zip(fleet.tolist(), rows_of, strict=True)):
            before = np.searchsorted(node_rows, places) - 1
            latest = node_rows[np.maximum(before, 0)]
            is_near = (before >= 0) & (at_h[places] - at_h[latest] <= FLEET_HOURS) & (nodes[places] != node)
            others[is_near, place] = z[latest[is_near]]
        is_known = (~np.isnan(others)).sum(axis=1) >= FLEET_LEAST
        adjusted[part] -= np.where(is_known, np.nan_to_num(_nanmedian(others, axis=1)), 0.0)
    return adjusted


def squashed(z: Floats) -> Floats:
    """sign(z) ln(1 + |z|), cut at CLIPPED deviations; 0 where not measured."""
    cut = np.clip(np.nan_to_num(z), -CLIPPED, CLIPPED)
    return np.asarray(np.sign(cut) * np.log1p(np.abs(cut)))


def is_settled(rows: Rows, normal: Normal) -> Bools:
    """Executions of nodes whose level rests on as many executions as the shorter window holds: (n,)."""
    return np.isin(np.array(rows.names, dtype=object).astype(str), normal.settled)[rows.table.nodes]


def clean_deviations(rows: Rows, normal: Normal, windows: Windows, level: Centre, signs: Floats) -> Floats:
    """Headline deviations from the node's last executions that looked normal: (n, m), NaN of other metrics."""
    usual = usual_of_normal_looking(rows, normal, windows, level, signs)
    return np.asarray((logarithms(rows.table.natural, normal.is_positive) - usual.median) / usual.deviation)


def usual_of_normal_looking(rows: Rows, normal: Normal, windows: Windows, level: Centre, signs: Floats) -> Centre:
    """What each headline metric of each row usually is by the node's last executions that looked normal: (n, m) each.

    level: (n, m) each, for the first FEWEST executions of a node. signs: (m,) of the headline metrics; of others NaN.
    The spread is that of the executions that looked normal, at least the type's; that of all recent ones, noisy times
    among them, widens it by WIDEST at most."""
    used = signs != 0
    x, least = (logarithms(rows.table.natural, normal.is_positive) * signs)[:, used], normal.pooled[used]
    median, deviation = (np.full(x.shape, np.nan) for _ in range(2))
    for _, node_rows in _groups(rows.table.nodes, np.ones(len(x), dtype=bool)):
        median[node_rows], deviation[node_rows] = _of_normal_looking(x[node_rows], least)
    spread = np.fmax(deviation, least)
    recent = np.fmax(windows.centres[RECENT[-1]].deviation[:, used], least)
    is_first = np.isnan(median)
    usual = Centre(*np.full((2, *rows.table.natural.shape), np.nan))
    usual.median[:, used] = np.where(is_first, level.median[:, used], median * signs[used])
    widened = np.maximum(spread, np.minimum(recent, WIDEST * spread))
    usual.deviation[:, used] = np.where(is_first, np.fmax(level.deviation[:, used], least), widened)
    return usual


@njit(cache=True)
def _of_normal_looking(x: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Median and 1.4826 MAD of the last RECENT[-1] rows before each that looked normal: (n, h) each, NaN for fewer
    than FEWEST of them. x: (n, h) of one node in time order, more is better; least: (h,) deviations. A row does not
    look normal when all that is worse in it, or all that is better, is LOOKS_NORMAL away (root mean square). Each
    verdict hangs on those before it: compiled."""
    n, h = x.shape
    median, deviation = np.full((n, h), np.nan), np.full((n, h), np.nan)
    normal, odd = np.empty(RECENT[-1], np.int64), np.empty(NEW_LEVEL, np.int64)  # rows; the n-th at n modulo the length
    n_normal, n_odd = 0, 0
    for row in range(n):
        worse, better, n_known = 0.0, 0.0, 0
        size = min(n_normal, RECENT[-1])
        for metric in range(h if size >= FEWEST else 0):
            known = x[:, metric][normal[:size]]
            median[row, metric] = _median(known)
            deviation[row, metric] = SD_OF_MAD * _median(np.abs(known - median[row, metric]))
            apart = x[row, metric] - median[row, metric]
            if not np.isnan(apart):
                n_known += 1
                z = min(abs(apart) / max(deviation[row, metric], least[metric]), HEADLINE_CLIPPED)
                if apart < 0:
                    worse += z**2
                else:
                    better += z**2
        if max(worse, better) > n_known * LOOKS_NORMAL**2:
            odd[n_odd] = row
            n_odd += 1
            if n_odd == NEW_LEVEL:
                for place in range(NEW_LEVEL):
                    normal[place] = odd[place]
                n_normal, n_odd = NEW_LEVEL, 0
        else:
            normal[n_normal % RECENT[-1]] = row
            n_normal, n_odd = n_normal + 1, 0
    return median, deviation


@njit(cache=True)
def _median(values: Floats) -> float:
    """Of the values that are known; by insertion, as numba's own takes seconds to compile."""
    known, n = np.empty(len(values)), 0
    for value in values:
        place = n
        while place > 0 and known[place - 1] > value:
            known[place] = known[place - 1]
            place -= 1
        known[place] = value
        n += not np.isnan(value)
    return 0.5 * (known[(n - 1) // 2] + known[n // 2]) if n else np.nan


def headline_signs(table: TypeTable, params: DetectorParams) -> Floats:
    """What a metric counts in the score without labels: (m,) 1 where more is better, -1 where less is, 0: nothing.

    The tool's facts say so; else params.headlines (benchmark to metrics); else all that have a better and a worse, as
    the preprocessing tells it."""
    benchmark, directed = table.name.split("@")[0], directions_of(table)
    if named := [name for name in params.headlines.get(benchmark, ()) if name in table.metrics]:
        return np.where(np.isin(table.metrics, named), directed, 0.0)
    declared = {name: 1.0 if is_higher else -1.0 for name, is_higher in headlines(benchmark).items()}
    signs = np.array([declared.get(name, 0.0) for name in table.metrics])
    return signs if signs.any() else directed


def directions_of(table: TypeTable) -> Floats:
    """1 where more of a metric is better, -1 where less is, 0 where neither: (m,)."""
    return np.asarray(table.orientation * (1.0 if table.is_directed is None else table.is_directed))


def headline_score(z: Floats, signs: Floats) -> Floats:
    """How much worse the headline metrics are than usual, in deviations: (n,).

    The root mean square of what is worse, over those measured; where nothing is, their mean, which is negative."""
    used = signs != 0
    worse = np.clip(-z[:, used] * signs[used], -HEADLINE_CLIPPED, HEADLINE_CLIPPED)
    count = np.maximum((~np.isnan(worse)).sum(axis=1), 1)
    size = np.sqrt(np.nansum(np.maximum(worse, 0.0) ** 2, axis=1) / count)
    return np.asarray(np.where(size > 0, size, np.nansum(worse, axis=1) / count))


def _levels(rows: Rows, normal: Normal) -> Centre:
    """The level of each row's node, else of its machine type, else of the fleet: (n, m); of a spread nobody knows 0."""
    centre, spread = (np.empty(rows.table.natural.shape) for _ in range(2))
    for node, node_rows in _groups(rows.table.nodes, np.ones(len(centre), dtype=bool)):
        known = normal.nodes.get(rows.names[node]) or normal.machines.get(rows.machines[node]) or normal.fleet
        is_known = ~np.isnan(known.median)
        centre[node_rows] = np.where(is_known, known.median, normal.fleet.median)
        spread[node_rows] = np.nan_to_num(np.where(is_known, known.deviation, normal.fleet.deviation))
    return Centre(centre, spread)


def _centre(x: Floats) -> Centre:
    if len(x) < FEWEST:
        return Centre(*np.full((2, x.shape[1]), np.nan))
    median, deviation = _median_and_deviation(x[None])
    return Centre(median[0], deviation[0])


def _median_and_deviation(window: Floats) -> Centre:
    """Over the middle axis, of (k, w, m): median and 1.4826 MAD, (k, m) each, NaN for fewer than FEWEST values."""
    median = _nanmedian(window, axis=1)
    deviation = SD_OF_MAD * _nanmedian(np.abs(window - median[:, None, :]), axis=1)
    is_few = (~np.isnan(window)).sum(axis=1) < FEWEST
    return Centre(np.where(is_few, np.nan, median), np.where(is_few, np.nan, deviation))


def _nanmedian(values: Floats, axis: int = 0) -> Floats:
    """Median without what is missing, NaN where all is; by sorting, which is fast for many short rows."""
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, -1)  # NaN last
    count = (~np.isnan(ordered)).sum(axis=-1)
    below, above = np.maximum((count - 1) // 2, 0)[..., None], np.minimum(count // 2, ordered.shape[-1] - 1)[..., None]
    middle = (np.take_along_axis(ordered, below, -1) + np.take_along_axis(ordered, above, -1))[..., 0] / 2
    return np.asarray(np.where(count > 0, middle, np.nan))


def _groups(keys: Ints, is_kept: Bools) -> Iterator[tuple[int, Ints]]:
    """The kept rows of each key, in order."""
    rows = np.flatnonzero(is_kept)
    order = rows[np.argsort(keys[rows], kind="stable")]
    for part in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(order) else []:
        yield int(keys[part[0]]), part


def _parts(n: int, width: int) -> Iterator[slice]:
    step = max(1, CELLS // width)
    for begin in range(0, n, step):
        yield slice(begin, min(begin + step, n))
