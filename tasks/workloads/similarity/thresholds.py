"""How far apart runs of the same workload are, and from which distance on a run is something else (CWD, V-D, RQ3).

The paper states the threshold twice: the distance lies within mean ± deviation (V-D), or below the mean, as the radius
of a circle (VI-C). The first calls a run that is too like the known ones unknown; the third rule here does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.similarity.params import SimilarityParams, Threshold
from tasks.workloads.similarity.subsequence import match_phases, phase_distances
from tasks.workloads.telemetry import FloatArray

Level = Literal["workload", "phase"]


@dataclass(frozen=True)
class Spread:
    """Distances between runs of one workload (Table IV). n: how many; deviation: of the sample, 0 for one distance."""

    mean: float
    deviation: float
    n: int


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
    found = {}
    for workload in dict.fromkeys(workloads):
        same = (labels == workload)[:, None] & (labels == workload)[None, :] & upper
        if (spread := spread_of(distances[same])) is not None:
            found[workload] = spread
    return found


def phase_spreads(runs: Sequence[FloatArray], workloads: Sequence[str], params: SimilarityParams) -> dict[str, Spread]:
    """The same for single phases: of each pair of runs of a workload, the phases that meet at its best offset."""
    found = {}
    for workload in dict.fromkeys(workloads):
        own = [run for run, label in zip(runs, workloads, strict=True) if label == workload]
        pairs = [match_phases(own[a], own[b], params).phases for a in range(len(own)) for b in range(a)]
        if pairs and (spread := spread_of(np.concatenate(pairs))) is not None:
            found[workload] = spread
    return found


def is_within(distance: FloatArray | float, spread: Spread, rule: Threshold, deviations: float) -> NDArray[np.bool_]:
    """Whether a distance is one that runs of the same workload have.

    within: |d − mean| ≤ deviation (V-D); radius: d ≤ mean (VI-C); one_sided: d ≤ mean + deviations · deviation."""
    distance = np.asarray(distance)
    if rule == "within":
        return np.asarray(np.abs(distance - spread.mean) <= spread.deviation)
    reach = spread.mean if rule == "radius" else spread.mean + deviations * spread.deviation
    return np.asarray(distance <= reach)


def similar_offset(one: FloatArray, other: FloatArray, spread: Spread, params: SimilarityParams) -> int | None:
    """The first offset at which every phase of the shorter run is like the one it meets; None without one.

    (t_1 … t_m) ~ (t'_1 … t'_n) if ∃ j: ∀ i: t_i ≈ t'_(i+j) (V-D), with the phase-level threshold for ≈."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    for offset in range(len(longer) - len(shorter) + 1):
        gaps = phase_distances(longer[offset : offset + len(shorter)], shorter, params)
        if is_within(gaps, spread, params.threshold, params.deviations).all():
            return offset
    return None


def confirmed(
    distances: FloatArray, nearest: Sequence[str], spreads: Mapping[str, Spread], params: SimilarityParams
) -> NDArray[np.bool_]:
    """Whether each run's distance to its nearest workload is within that workload's threshold: (n,).

    A workload that was seen once has no spread, and confirms nothing but itself: distance 0."""
    alone = Spread(0.0, 0.0, 0)
    return np.array(
        [
            bool(is_within(distance, spreads.get(workload, alone), params.threshold, params.deviations))
            for distance, workload in zip(distances, nearest, strict=True)
        ],
        dtype=bool,
    )
