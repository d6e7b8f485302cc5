"""The table that the trees read: padded fingerprints (CWD, V-C), and beside them the levels of the whole run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.fingerprints import Fingerprint, feature_names, padded
from tasks.workloads.identify.levels import level_names
from tasks.workloads.identify.params import Parts
from tasks.workloads.telemetry import FloatArray

Views = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True)
class FeatureTable:
    """names: of the columns; values: (n_runs, n_features), finite. views: columns that trees of their own read."""

    names: tuple[str, ...]
    values: FloatArray
    views: Views


def phases_to_tell(fingerprints: Sequence[Fingerprint], max_phases: int) -> int:
    """q: the most phases of any counter of the training runs, or max_phases if that is less and not 0."""
    most = max((one.most_phases for one in fingerprints), default=1)
    return min(most, max_phases) if max_phases else most


def features_of(
    fingerprints: Sequence[Fingerprint], n_phases: int, levels: FloatArray | None = None, parts: Parts = "phases"
) -> FeatureTable:
    """One row a run. levels: (n_runs, n_counters · n_levels), finite; needed unless parts is `phases`.

    Raises ValueError without fingerprints, or without levels where they are asked for."""
    if not fingerprints:
        raise ValueError("no fingerprint; expected at least one")
    counters = fingerprints[0].counters
    names: list[str] = []
    blocks: list[FloatArray] = []
    if parts != "levels":
        names += feature_names(counters, n_phases)
        blocks.append(np.array([padded(one, n_phases) for one in fingerprints]))
    if parts != "phases":
        if levels is None:
            raise ValueError(f"features of {parts!r} need the levels of the runs")
        names += level_names(counters)
        blocks.append(levels)
    values = np.concatenate(blocks, axis=1)
    edges = [blocks[0].shape[1]] if parts == "apart" else []
    return FeatureTable(tuple(names), values, tuple(np.split(np.arange(values.shape[1]), edges)))
