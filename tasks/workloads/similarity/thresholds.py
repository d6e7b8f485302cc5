"""How far apart runs of the same workload are, and from which distance on a run is something else (CWD, V-D, RQ3).

The paper states the threshold twice: the distance lies within mean ± deviation (V-D), or below the mean, as the radius
of a circle (VI-C). The first calls a run that is too like the known ones unknown; the third rule here does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.similarity.distances import Measure, match_phases, phase_distances
from tasks.workloads.telemetry import FloatArray

Threshold = Literal["within", "radius", "one_sided"]
RULES: tuple[Threshold, ...] = get_args(Threshold)
RADIUS: Threshold = "radius"  # rejects none of a workload's runs in the recorded ones, and accepts fewest others
DEVIATIONS = 2.0  # above the mean that one_sided allows


@dataclass(frozen=True)
class Spread:
    """Distances between runs of one workload (Table IV). n: how many; deviation: of the sample, 0 for one distance."""

    mean: float
    deviation: float
    n: int


@dataclass(frozen=True)
class Verdicts:
    """For each run: the nearest known workload, its distance, position of the nearest run, and whether it is confirmed.

    A run that is not confirmed is unknown, with the nearest workload named."""

    workloads: tuple[str, ...]
    distances: FloatArray
    positions: NDArray[np.int64]
    is_known: NDArray[np.bool_]


def spread_of(distances: FloatArray) -> Spread | None:
    """Mean and deviation of some distances; None without any."""
    if len(distances) == 0:
        return None
    deviation = float(np.std(distances, ddof=1)) if len(distances) > 1 else 0.0
    return Spread(float(np.mean(distances)), deviation, len(distances))


def spread_by_workload(distances: FloatArray, workloads: Sequence[str]) -> dict[str, Spread]:
    """Table IV: over all pairs of different runs of each workload. distances: (n, n). One run: absent."""
    labels = np.asarray(workloads)
    upper = np.triu(np.ones(distances.shape, dtype=bool), k=1)
    spreads = {}
    for workload in dict.fromkeys(workloads):
        is_same = (labels == workload)[:, None] & (labels == workload)[None, :] & upper
        if (spread := spread_of(distances[is_same])) is not None:
            spreads[workload] = spread
    return spreads


def phase_spreads(runs: Sequence[FloatArray], workloads: Sequence[str], measure: Measure) -> dict[str, Spread]:
    """The same for single phases: of each pair of runs of a workload, the phases that meet at its best offset."""
    spreads = {}
    for workload in dict.fromkeys(workloads):
        same = [run for run, label in zip(runs, workloads, strict=True) if label == workload]
        pairs = [match_phases(same[a], same[b], measure).phases for a in range(len(same)) for b in range(a)]
        if pairs and (spread := spread_of(np.concatenate(pairs))) is not None:
            spreads[workload] = spread
    return spreads


def is_within(distance: FloatArray | float, spread: Spread, rule: Threshold = RADIUS) -> NDArray[np.bool_]:
    """Whether a distance is one that runs of the same workload have.

    within: |d − mean| ≤ deviation (V-D); radius: d ≤ mean (VI-C); one_sided: d ≤ mean + DEVIATIONS · deviation."""
    distance = np.asarray(distance)
    if rule == "within":
        return np.asarray(np.abs(distance - spread.mean) <= spread.deviation)
    reach = spread.mean if rule == "radius" else spread.mean + DEVIATIONS * spread.deviation
    return np.asarray(distance <= reach)


def similar_offset(
    one: FloatArray, other: FloatArray, spread: Spread, measure: Measure, rule: Threshold = RADIUS
) -> int | None:
    """The first offset at which every phase of the shorter run is like the one it meets; None without one.

    (t_1 … t_m) ~ (t'_1 … t'_n) if ∃ j: ∀ i: t_i ≈ t'_(i+j) (V-D), with the phase-level threshold for ≈."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    for offset in range(len(longer) - len(shorter) + 1):
        gaps = phase_distances(longer[offset : offset + len(shorter)], shorter, measure)
        if is_within(gaps, spread, rule).all():
            return offset
    return None


def nearest_workloads(
    distances: FloatArray,
    n_phases: Sequence[int],
    known_phases: Sequence[int],
    known_workloads: Sequence[str],
    spreads: Mapping[str, Spread],
    rule: Threshold = RADIUS,
) -> Verdicts:
    """Classify runs by their distances (n_runs, n_known) to known ones (V-D): candidates are the known runs with as
    many phases, or the nearest number of them; the nearest candidate names, and its workload's threshold confirms.

    A workload that was seen once has no spread, and confirms nothing but itself: distance 0.
    Raises ValueError without a known run."""
    if distances.shape[1] == 0:
        raise ValueError("no known run to compare with; expected at least one")
    gaps = np.abs(np.asarray(known_phases)[None, :] - np.asarray(n_phases)[:, None])
    is_candidate = gaps == gaps.min(axis=1, keepdims=True)
    positions = np.where(is_candidate, distances, np.inf).argmin(axis=1)
    nearest = distances[np.arange(len(positions)), positions]
    workloads = tuple(known_workloads[position] for position in positions)
    once = Spread(0.0, 0.0, 0)
    is_known = [
        bool(is_within(distance, spreads.get(workload, once), rule))
        for distance, workload in zip(nearest, workloads, strict=True)
    ]
    return Verdicts(workloads, nearest, positions, np.array(is_known, dtype=bool))
