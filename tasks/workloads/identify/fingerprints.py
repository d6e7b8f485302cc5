"""Known fingerprints, and how far from them a run is: as a sum of the fewest of them, and among single known runs.

A fingerprint is the mean of each counter over a run. Rates of several workloads on one machine add up, so a busy
machine is a sum of fingerprints, each with a weight of its own: a workload that gets less of the machine does less of
everything. Sums of one, two and three are fitted by least squares on relative deviations, weights within bounds; a
counter that is far off pulls no more than one that is a little off, as there may always be something that nobody has
learned. The best is the one that leaves least by L1, whitened by what repetitions differ by among each other: counters
that go together, as those of many cores do, count once, and what differs from session to session counts little.

What has the machine to itself is named best by the known runs near it, by L1 between logarithms of means and
deviations, whitened as well. To its name the shapes of counters say more, which a session moves less; how far it is
from all that is known they tell badly, as they vary by themselves.

Groups are compared by L1 as well, with weights learned from pairs of runs: what tells workloads apart, whatever they
work on. Runs are kept one by one, as a workload may be in many states, which no mean of them shows."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.identify.counters import floors_of
from tasks.workloads.identify.logistic import fit_logistic
from tasks.workloads.telemetry import FloatArray

MOST_PARTS = 3
PART_SHARE = 0.25  # of what is left, that each part adds: where nothing fits well, a further part must take away more
MOST_COST = 16.0  # squared deviations that one counter counts at most
# of the logarithm of a mean, between runs of one workload with one input: a group's counters are nobody else's, so
# that they may differ more, as with another input, before they are another workload's
LEAST_SPREAD = {True: 0.15, False: 0.4}  # by whether rows add up
FLOORS = 3.0  # a counter says which workload it is of from so many floors on
N_BEAM = 8  # best pairs that are tried with a third part
MOST_PROTOTYPES = 60  # that take part in sums; of more, those that fit best alone
MOST_EXEMPLARS = 60  # runs of a workload that are tried one by one, an even sample
STEPS = 4  # of the reweighted least squares
SWEEPS = 8  # of the coordinate descent inside a step
ROBUST_DEVIATIONS = 3.0  # from which on a counter weighs less
LEAST_GRAM = 1e-300
PART_WEIGHTS = (0.1, 1.5)  # the least and the most of a part of a sum
WEIGHT_SPREAD = 1.0  # of the logarithm of a weight: a workload seldom does three times or a third of what it did
DOMINANT = 0.7  # share of a counter from which on a part answers for it

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Library:
    """Known fingerprints on the same counters.

    rows: (n, c), first the prototypes (means over the runs of a workload with one input), then single runs.
    workloads: of each row. n_prototypes: rows that take part in sums. floor: (c,), below which a counter is as good as
    0. spread: (c,), deviation of the logarithm between runs of one workload. idle: (c,), of levels what an idle machine
    shows, 0 of rates. is_scaled: (c,), whether a counter shrinks with the weight; levels of a group do not. whitening:
    (c, c), turns deviations of logarithms into ones that each vary by 1 between repetitions."""

    rows: FloatArray
    workloads: tuple[str, ...]
    n_prototypes: int
    floor: FloatArray
    spread: FloatArray
    idle: FloatArray
    is_scaled: NDArray[np.bool_]
    most_parts: int
    whitening: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """The known workloads, sorted."""
        return tuple(sorted(set(self.workloads)))


@dataclass(frozen=True)
class FingerprintPart:
    """One known workload in a sum. weight: of its fingerprint, 1 being what it was learned at. share: mean share of the
    counters that is its. gain: cost without it, less that with it. purity: mean squared deviation of the counters that
    it answers for, MOST_COST where there are none."""

    workload: str
    weight: float
    share: float
    gain: float
    purity: float


@dataclass(frozen=True)
class Sum:
    """The best sum. parts: by weight, the largest first. fitted: (c,). deviations: (c,), of the logarithm of what was
    seen from that of the sum, in units of spread, NaN: not measured. cost: their squares, each at most MOST_COST,
    summed; excess: of those where more was seen; lack: of those where less was."""

    parts: tuple[FingerprintPart, ...]
    fitted: FloatArray
    deviations: FloatArray
    cost: float

    @property
    def excess(self) -> float:
        """Cost of the counters of which there is more than the sum says."""
        return float(np.where(np.nan_to_num(self.deviations) > 0, _cost(self.deviations), 0.0).sum())

    @property
    def lack(self) -> float:
        """Cost of the counters of which there is less than the sum says."""
        return self.cost - self.excess


@dataclass(frozen=True)
class Sums:
    """All sums of one number of parts. rows: (n, m) places in the library; weights: (n, m); cost: (n,), whitened
    deviations, with what the parts cost; fitted, deviations: (n, c)."""

    rows: Places
    weights: FloatArray
    fitted: FloatArray
    deviations: FloatArray
    cost: FloatArray


def learn_library(
    means: FloatArray,
    workloads: Sequence[str],
    clusters: Sequence[str],
    is_rate: NDArray[np.bool_],
    *,
    is_sum: bool,
) -> Library:
    """From training runs: means (n, c), NaN: not measured; workload of each, and what its repetitions share.

    is_sum: whether several workloads add up, as on a machine: then levels shrink with the weight as well."""
    usual = np.nan_to_num(np.nanmedian(means, axis=0))
    means = np.where(np.isfinite(means), means, usual)
    floor = floors_of(means)
    labels, names = np.asarray(clusters), np.asarray(workloads)
    logs = np.log(np.maximum(means, 0) + floor)
    groups = [np.flatnonzero(labels == cluster) for cluster in sorted(set(clusters))]
    residuals = np.concatenate([logs[places] - logs[places].mean(axis=0) for places in groups])
    freedom = max(1, len(means) - len(groups))
    spread = np.maximum(LEAST_SPREAD[is_sum], np.sqrt(np.sum(residuals**2, axis=0) / freedom))
    prototypes = np.array([means[places].mean(axis=0) for places in groups])
    kept = np.concatenate([even_sample(places, MOST_EXEMPLARS) for places in _places_of(workloads)])
    return Library(
        rows=np.maximum(np.concatenate([prototypes, means[kept]]), 0),
        workloads=tuple(str(names[places[0]]) for places in groups) + tuple(str(names[at]) for at in kept),
        n_prototypes=len(groups),
        floor=floor,
        spread=spread,
        idle=np.where(is_rate, 0.0, means.min(axis=0)),
        is_scaled=np.asarray(is_rate) | is_sum,
        most_parts=MOST_PARTS if is_sum else 1,
        whitening=_whitening_of(residuals, freedom),
    )


def _whitening_of(residuals: FloatArray, freedom: int) -> FloatArray:
    """What turns residuals within groups, (n, c), into ones that each vary by 1: (c, c)."""
    covariance = residuals.T @ residuals / freedom
    shrunken = (1 - SHRINKAGE) * covariance + np.diag(SHRINKAGE * np.diag(covariance) + LEAST_VARIANCE)
    return np.asarray(np.linalg.cholesky(np.linalg.inv(shrunken)))


def superpose(means: FloatArray, others: FloatArray, weight: float, idle: FloatArray) -> FloatArray:
    """What a machine shows on which both run, the second with a weight: rates add up, levels above those of an idle
    machine too. (n, c) or (c,)."""
    return np.asarray(means + weight * (others - idle))


def sums_of(seen: FloatArray, library: Library) -> list[Sums]:
    """All sums of one, two, … known fingerprints fitted to a run. seen: (c,) means, NaN: not measured."""
    singles = _fitted(seen, np.arange(len(library.rows))[:, None], library)
    sums = [singles]
    places = np.arange(library.n_prototypes)
    if len(places) > MOST_PROTOTYPES:
        places = np.sort(np.argsort(singles.cost[: library.n_prototypes])[:MOST_PROTOTYPES])
    if library.most_parts >= 2 and len(places) >= 2:
        sums.append(_fitted(seen, np.array(list(combinations(places.tolist(), 2))), library))
    if library.most_parts >= 3 and len(places) >= 3:
        best = sums[-1].rows[np.argsort(sums[-1].cost)[:N_BEAM]].tolist()
        triples = {tuple(sorted((*pair, place))) for pair in best for place in places.tolist() if place not in pair}
        sums.append(_fitted(seen, np.array(sorted(triples)), library))
    return sums


def best_sum(sums: Sequence[Sums], library: Library, without: Sequence[str] = ()) -> Sum | None:
    """The cheapest sum, of workloads that are not left out; None where all are."""
    names = np.asarray(library.workloads)
    least = [
        np.where(np.isin(names[of_size.rows], list(without)).any(axis=1), np.inf, of_size.cost) for of_size in sums
    ]
    size = int(np.argmin([cost.min() for cost in least]))
    at = int(least[size].argmin())
    if not np.isfinite(least[size][at]):
        return None
    best, fitted = sums[size], sums[size].fitted[at]
    squares = _cost(best.deviations[at])
    is_sign = fitted > FLOORS * library.floor
    parts = []
    for row, weight in zip(best.rows[at].tolist(), best.weights[at].tolist(), strict=True):
        of_part = np.where(library.is_scaled, weight, 1.0) * library.rows[row] / np.maximum(fitted, library.floor)
        is_dominant = is_sign & (of_part > DOMINANT)
        rest = [
            np.where((names[of_size.rows] == names[row]).any(axis=1), np.inf, cost)
            for of_size, cost in zip(sums, least, strict=True)
        ]
        parts.append(
            FingerprintPart(
                workload=str(names[row]),
                weight=float(weight),
                share=float(np.minimum(of_part, 1)[is_sign].mean()) if is_sign.any() else 0.0,
                gain=float(min(min(cost.min() for cost in rest) - least[size][at], MOST_COST * len(fitted))),
                purity=float(squares[is_dominant].mean()) if is_dominant.any() else MOST_COST,
            )
        )
    parts.sort(key=lambda part: (-part.weight, part.workload))
    return Sum(tuple(parts), fitted, best.deviations[at], float(squares.sum()))


def _fitted(seen: FloatArray, rows: Places, library: Library) -> Sums:
    """Each sum with its best weights."""
    is_there = np.isfinite(seen)
    values = np.where(is_there, np.maximum(seen, 0), 0.0)
    parts = library.rows[rows]  # (n, m, c)
    m = parts.shape[1]
    free = library.is_scaled & is_there
    fixed = np.where(library.is_scaled, 0.0, parts.sum(axis=1))  # (n, c)
    weights, fitted, deviations = _least_squares(values, parts, fixed, free, library)
    deviations = np.where(is_there, deviations, np.nan)
    unlikely = (np.log(weights) / WEIGHT_SPREAD) ** 2
    left = np.abs(np.nan_to_num(deviations * library.spread) @ library.whitening).sum(axis=1)
    share = max(float(is_there.mean()), 1 / len(is_there))  # what was measured stands for the rest
    cost = left / share * (1 + PART_SHARE * m) + unlikely.sum(axis=1)
    return Sums(rows, weights, fitted, deviations, cost)


def _least_squares(
    values: FloatArray, parts: FloatArray, fixed: FloatArray, free: NDArray[np.bool_], library: Library
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights within PART_WEIGHTS, (n, m), what they add up to and its deviations, (n, c) each: least squares,
    reweighted by what each counter is expected to be and by how far off it is."""
    floor, spread = library.floor, library.spread
    n, m, _ = parts.shape
    weights = np.full((n, m), 1.0 / m)
    precision = np.broadcast_to(np.where(free, 1 / (spread * (values + FLOORS * floor)) ** 2, 0.0), fixed.shape)
    fitted = deviations = fixed
    for _ in range(STEPS):
        weighted = parts * precision[:, None, :]
        gram, slope = weighted @ parts.transpose(0, 2, 1), weighted @ values  # (n, m, m), (n, m)
        for _ in range(SWEEPS):
            for i in range(m):
                left = slope[:, i] - (gram[:, i] * weights).sum(axis=1) + gram[:, i, i] * weights[:, i]
                weights[:, i] = np.clip(left / np.maximum(gram[:, i, i], LEAST_GRAM), *PART_WEIGHTS)
        fitted = fixed + np.where(library.is_scaled, (weights[:, None, :] @ parts)[:, 0], 0.0)
        deviations = np.log((values + floor) / (fitted + floor)) / spread
        robust = 1 / (1 + (deviations / ROBUST_DEVIATIONS) ** 2)
        precision = np.where(free, robust / (spread * ((fitted + values) / 2 + FLOORS * floor)) ** 2, 0.0)
    return weights, fitted, deviations


def _cost(deviations: FloatArray) -> FloatArray:
    """Squared deviations, each at most MOST_COST: (…, c). Where some counters were not measured the others stand for
    them."""
    is_there = np.isfinite(deviations)
    share = np.maximum(is_there.mean(axis=-1, keepdims=True), 1 / deviations.shape[-1])
    return np.asarray(np.minimum(np.nan_to_num(deviations) ** 2, MOST_COST) / share)


def even_sample(places: Places, most: int) -> Places:
    """At most so many of the places, evenly spread."""
    return places if len(places) <= most else places[np.linspace(0, len(places) - 1, most).round().astype(int)]


N_NEAREST = 3  # runs of a workload that decide together how near it is
N_PLAIN = 2  # and by the plain distance
MOST_RUNS = 120  # of a workload, an even sample
LEAST_PART = 0.1  # of the counters, in whose place the others stand
LEAST_DISTANCE = 0.1  # in deviations within a workload: what is nearer is as good as equal
LEAST_PLAIN = 0.01  # of a logarithm
# of shapes beside levels in what names a run, and the deviations that a shape of one counter counts at most: chosen on
# X5650 and on rounds 1 to 3 of the recordings
SHAPE_WEIGHT, MOST_SHAPE_GAP = 2.0, 3.0
SHRINKAGE = 0.3  # of the covariance within workloads, towards its diagonal
LEAST_VARIANCE = 0.01  # of a logarithm or a shape, within workloads
MOST_PAIRED = 40  # runs of a workload whose pairs are learned from
USUAL_CHANGE = 0.5  # of a logarithm, with another input: added to what varies within workloads where inputs are unknown
GROUP_FLOOR = 0.5  # quantile of what a group does: machines, and bystanders, differ in what is less
PLAIN_PART = 0.2  # of what counters of a group weigh, that comes of how far workloads lie apart in each by itself
PLAIN_SPREAD = 0.3  # of a logarithm, added to that within workloads
LIKENESS_PENALTY = 1e-3  # on the squared weights of what tells runs apart


class Likeness(NamedTuple):
    """What tells groups apart. floor: (m,), added before logarithms. weights: (m,), ≥ 0, of their differences."""

    floor: FloatArray
    weights: FloatArray


class Near(NamedTuple):
    """A known workload beside a run. distance: mean absolute whitened difference to its nearest runs. unlikeness: the
    same, with that of shapes where there are some: what names it. plain: mean absolute difference of logarithms of
    means to the runs that are nearest by that."""

    distance: float
    unlikeness: float
    plain: float


@dataclass(frozen=True)
class Neighbours:
    """logs: (n, m) of known runs, NaN: not measured. workloads: of each. floor: (m,), added before the logarithm.
    whitening: (m, m), turns differences of logs into ones that each vary by 1 within a workload. usual: (n_workloads,),
    by name, median distance of runs that were held out to the others of their workload. shapes: (n, s), as shapes_of
    gives them, s = 0 for a group; shape_spread: (s,), their deviation within a workload. plain_logs: (n, c), of means,
    c = 0 for a group; plain_floor: (c,), the least that was seen: what only some workloads do at all tells best that a
    run is of none of them."""

    logs: FloatArray
    workloads: tuple[str, ...]
    floor: FloatArray
    whitening: FloatArray
    usual: FloatArray
    shapes: FloatArray
    shape_spread: FloatArray
    plain_logs: FloatArray
    plain_floor: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """The known workloads, sorted."""
        return tuple(sorted(set(self.workloads)))

    @cached_property
    def whitened(self) -> FloatArray:
        """The known runs, (n, m)."""
        return np.asarray(self.logs @ self.whitening)

    def near(self, seen: FloatArray, shapes: FloatArray | None = None) -> dict[str, Near]:
        """How far each workload is, the nearest first. seen: (m,), shapes: (s,); what is NaN the others stand for."""
        logs = np.log(np.abs(seen[-len(self.floor) :]) + self.floor)
        gaps = np.abs(np.log(np.abs(seen[: len(self.plain_floor)]) + self.plain_floor) - self.plain_logs)
        plain = np.nan_to_num(gaps).sum(axis=1) / np.maximum(np.isfinite(gaps).sum(axis=1), 1)
        if np.isfinite(logs).all() and np.isfinite(self.whitened).all():
            each = np.abs(logs @ self.whitening - self.whitened).mean(axis=1)
        else:
            apart, sizes = logs - self.logs, np.abs(self.whitening).sum(axis=1)  # of each counter's part in a distance
            share = np.maximum(np.isfinite(apart) @ sizes / sizes.sum(), LEAST_PART)
            each = np.abs(np.nan_to_num(apart) @ self.whitening).mean(axis=1) / share
        unlike = each
        if shapes is not None and (is_there := np.isfinite(shapes)).any():
            gaps = np.abs(shapes - self.shapes)[:, is_there] / self.shape_spread[is_there]
            unlike = each + SHAPE_WEIGHT * np.minimum(gaps, MOST_SHAPE_GAP).mean(axis=1)
        names = np.asarray(self.workloads)
        by_name = {}
        for name in self.names:
            of_name = names == name
            nearest = (
                np.sort(far[of_name])[:n].mean()
                for far, n in ((each, N_NEAREST), (unlike, N_NEAREST), (plain, N_PLAIN))
            )
            by_name[name] = Near(*map(float, nearest))
        return dict(sorted(by_name.items(), key=lambda item: (item[1].distance, item[0])))

    def strangeness(self, near: Mapping[str, Near]) -> tuple[float, float, float]:
        """How far the nearest workload is, as logarithms: over what is usual for it, over how far the next workload is,
        which holds where a later session has moved every run away from every known one; and by the plain distance.

        near: nearest first."""
        if not near:
            return 0.0, 0.0, 0.0
        (name, first), *others = near.items()
        distance = max(first.distance, LEAST_DISTANCE)
        usual = max(float(self.usual[self.names.index(name)]), LEAST_DISTANCE)
        following = max(others[0][1].distance, LEAST_DISTANCE) if others else distance
        plain = max(min(how_near.plain for how_near in near.values()), LEAST_PLAIN)
        return float(np.log(distance / usual)), float(np.log(distance / following)), float(np.log(plain))


def learn_neighbours(
    moments: FloatArray,
    workloads: Sequence[str],
    likeness: Likeness | None = None,
    shapes: FloatArray | None = None,
) -> Neighbours:
    """From what is compared of training runs, (n, m), NaN: not measured, and the workload of each. likeness: of groups,
    in place of whitening; what was not measured then stays so, and elsewhere is what is usual. shapes: (n, s)."""
    groups = _places_of(workloads)
    if likeness is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column that no run has has no median
            moments = np.where(np.isfinite(moments), moments, np.nan_to_num(np.nanmedian(moments, axis=0)))
    floor = floors_of(moments) if likeness is None else likeness.floor
    logs = np.log(np.abs(moments) + floor)
    if likeness is None:
        residuals = np.concatenate([logs[places] - logs[places].mean(axis=0) for places in groups])
        whitening = _whitening_of(residuals, max(1, len(residuals) - 1))
    else:
        whitening = np.diag(len(floor) * likeness.weights)  # the mean over counters is the weighted sum
    kept = np.concatenate([even_sample(places, MOST_RUNS) for places in groups])
    names = tuple(workloads[at] for at in kept)
    shapes = np.nan_to_num(np.zeros((len(logs), 0)) if shapes is None else shapes)
    within = np.concatenate([shapes[places] - shapes[places].mean(axis=0) for places in groups])
    spread = np.sqrt(within.var(axis=0) + LEAST_VARIANCE)
    means = moments[kept, : moments.shape[1] // 2 if likeness is None else 0]
    plain_floor = floors_of(means, 0.0)
    return Neighbours(
        logs[kept],
        names,
        floor,
        np.asarray(whitening),
        np.ones(len(groups)),
        shapes[kept],
        spread,
        np.log(np.abs(means) + plain_floor),
        plain_floor,
    )


def learn_likeness(rows: FloatArray, workloads: Sequence[str], inputs: Sequence[str], blocks: Places) -> Likeness:
    """What each counter says of whether two runs are of one workload.

    The most of it is learned, as what raises the log odds that they are not, from each run and its nearest runs: of
    every other workload; of its own in other blocks; and of its own in other blocks with another input. As a few inputs
    do not show all that another one may change, PLAIN_PART of it is how far workloads lie apart over what varies within
    them. Where no workload has two inputs, all counters count, less those that vary by themselves within workloads.
    rows: (n, m), NaN: not measured. inputs: what repetitions share. blocks: (n,)."""
    groups, names, given = _places_of(workloads), np.asarray(workloads), np.asarray(inputs)
    has_inputs = len(set(inputs)) > len(groups)
    floor = floors_of(rows, GROUP_FLOOR) if has_inputs else floors_of(rows)
    logs = np.log(np.abs(rows) + floor)
    within = np.mean([_spread(logs[of_workload]) for of_workload in groups], axis=0)
    if not has_inputs:
        return Likeness(floor, 1 / (USUAL_CHANGE + within))
    spread = _spread(logs)
    plain = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0) if spread.any() else np.ones(len(spread))
    gaps, is_other = [np.zeros(logs.shape[1])], [False]  # a run is like itself
    for at in np.concatenate([even_sample(places, MOST_PAIRED) for places in groups]).tolist():
        apart = np.nan_to_num(np.abs(logs - logs[at]))  # (n, m)
        far = apart @ plain
        is_later = (names == names[at]) & (blocks != blocks[at])
        others = [(names == name, True) for name in sorted(set(workloads) - {workloads[at]})]
        for is_candidate, is_another in [*others, (is_later, False), (is_later & (given != given[at]), False)]:
            candidates = np.flatnonzero(is_candidate)
            if len(candidates):
                gaps.append(apart[candidates[np.argsort(far[candidates], kind="stable")[:N_NEAREST]]].mean(axis=0))
                is_other.append(is_another)
    telling = fit_logistic(np.array(gaps), np.array(is_other), LIKENESS_PENALTY, least=0.0)
    if not telling.weights.any():
        return Likeness(floor, plain / max(1, len(plain)))
    learned, by_itself = telling.weights / telling.deviation, spread / (PLAIN_SPREAD + within) ** 2
    weights = (1 - PLAIN_PART) * learned + PLAIN_PART * by_itself * learned.sum() / by_itself.sum()
    return Likeness(floor, np.asarray(weights))


def _spread(logs: FloatArray) -> FloatArray:
    """Mean deviation from the median of each column; 0 where nothing was measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nan_to_num(np.nanmean(np.abs(logs - np.nanmedian(logs, axis=0)), axis=0)))


def _places_of(workloads: Sequence[str]) -> list[Places]:
    names = np.asarray(workloads)
    return [np.flatnonzero(names == name) for name in sorted(set(workloads))]
