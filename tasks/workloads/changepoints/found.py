"""What change point detection returns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.changepoints.evidence import SeriesModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RunLengths:
    """The filtered run-length posterior: after each row, how long ago the segment began.

    rows: (m,) the rows with a sample; the others say nothing new. offsets: (m + 1,) where the entries of each of them
    begin in starts (rows) and probabilities, which hold what the filter kept and is at least 1e-7 probable."""

    rows: Ints
    offsets: Ints
    starts: Ints
    probabilities: Floats

    def after(self, row: int) -> tuple[Ints, Floats]:
        """Run lengths, in rows from the start of a segment up to and with `row`, and their probabilities."""
        at = int(np.searchsorted(self.rows, row, side="right")) - 1
        if at < 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        part = slice(self.offsets[at], self.offsets[at + 1])
        return row - self.starts[part] + 1, self.probabilities[part]

    def most_probable(self) -> Ints:
        """(m,) the most probable run length after each row with a sample."""
        longest = np.empty(len(self.rows), dtype=np.int64)
        for at, row in enumerate(self.rows):
            part = slice(self.offsets[at], self.offsets[at + 1])
            longest[at] = row - self.starts[part][self.probabilities[part].argmax()] + 1
        return longest


@dataclass(frozen=True)
class ChangePoints:
    """The change points of a series, or of all counters together.

    indices: (k,) rising, zero-based rows of the first sample after each change. probabilities: (k,) that there is a
    change so near (params.near) to it, NaN from a method that gives none. at_each: (n,) probability that a segment
    starts exactly at each row, given the whole series; empty without a posterior. log_evidence: of the whole series,
    scaled; NaN without a posterior. run_lengths: None without one. models: of each counter whose season and
    noise were chosen."""

    n_samples: int
    indices: Ints
    probabilities: Floats
    at_each: Floats
    log_evidence: float
    run_lengths: RunLengths | None
    models: tuple[SeriesModel, ...] = ()

    def segments(self) -> list[tuple[int, int]]:
        """Start and end (exclusive) of each segment; none for an empty series."""
        if not self.n_samples:
            return []
        edges = [0, *(int(index) for index in self.indices), self.n_samples]
        return list(itertools.pairwise(edges))


@dataclass(frozen=True)
class Change:
    """A change of one counter: mean and deviation of the segments before and after it, missing samples left out."""

    row: int
    probability: float
    mean_before: float
    mean_after: float
    deviation_before: float
    deviation_after: float


def changes_of(values: Floats, found: ChangePoints) -> list[Change]:
    """What each change is in units of the series. values: (n,)."""
    told = []
    for probability, (before, after) in zip(
        found.probabilities.tolist(), itertools.pairwise(found.segments()), strict=True
    ):
        parts = [part[~np.isnan(part)] for part in (values[slice(*before)], values[slice(*after)])]
        means = [float(part.mean()) if len(part) else float("nan") for part in parts]
        deviations = [float(part.std()) if len(part) else float("nan") for part in parts]
        told.append(Change(after[0], probability, *means, *deviations))
    return told
