"""Sequences of phases packed one after another, as the compiled distances read them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.telemetry import FloatArray


@dataclass(frozen=True)
class Packed:
    """points: (sum of lengths, d), C-contiguous; starts: (n + 1,), where each sequence begins."""

    points: FloatArray
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, position: int) -> FloatArray:
        return self.points[self.starts[position] : self.starts[position + 1]]


def pack(sequences: Sequence[FloatArray]) -> Packed:
    """Pack sequences of shape (length, d); a 1-D one is (length, 1).

    Raises ValueError for an empty sequence, unequal d, or a value that is not finite."""
    shaped = [np.asarray(one, dtype=np.float64) for one in sequences]
    shaped = [one[:, None] if one.ndim == 1 else one for one in shaped]
    for position, one in enumerate(shaped):
        if one.shape[0] == 0:
            raise ValueError(f"sequence {position} is empty; a distance needs at least one phase")
        if one.shape[1] != shaped[0].shape[1]:
            raise ValueError(f"sequence {position} has {one.shape[1]} dimensions, the first {shaped[0].shape[1]}")
        if not np.isfinite(one).all():
            raise ValueError(f"sequence {position} holds a value that is not finite")
    lengths = [one.shape[0] for one in shaped]
    points = np.concatenate(shaped) if shaped else np.empty((0, 0))
    return Packed(np.ascontiguousarray(points), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
