"""Ranges of bins from the data: a high quantile of so many values that only the largest are kept."""

import math

import numpy as np

from tasks.jobs.group_counts import Ints
from tasks.jobs.pmf import Bins, Floats, derived_bins
from tasks.jobs.shape_params import (
    BinParams,
    Kind,
)

SPARE_VALUES = 2**20


class UpperTail:
    """The quantile 1 - tail_share of values that come piece by piece, of which there are at most n_most."""

    def __init__(self, n_most: int, tail_share: float) -> None:
        self._tail_share = tail_share
        self._n_kept = n_most - math.floor((1 - tail_share) * max(n_most - 1, 0))  # rises with the number of values
        self._n = self._n_waiting = 0
        self._least = -np.inf
        self._waiting: list[Floats] = []

    def add(self, values: Floats) -> None:
        """values: (n,); missing ones are left out."""
        self._n += int(np.count_nonzero(~np.isnan(values)))
        large = values[values >= self._least]  # none that is missing
        self._waiting.append(large)
        self._n_waiting += len(large)
        if self._n_waiting > 2 * self._n_kept + SPARE_VALUES:
            self._cut()

    def quantile(self) -> Floats:
        """(1,), linear between two values; (0,) without a value."""
        if not self._n:
            return np.zeros(0)
        self._cut()
        position = (1 - self._tail_share) * (self._n - 1)
        ranked, rank = np.sort(self._waiting[0]), math.floor(position) - self._n  # from the end
        low, high = ranked[rank], ranked[min(rank + 1, -1)]
        return np.array([low + (high - low) * (position - math.floor(position))])

    def _cut(self) -> None:
        values = np.concatenate(self._waiting)
        if len(values) > self._n_kept:
            values = np.partition(values, len(values) - self._n_kept)[-self._n_kept :]
            self._least = float(values.min())
        self._waiting, self._n_waiting = [values], len(values)


def tails_of(n_history: Ints, params: BinParams, kinds: tuple[Kind, ...]) -> dict[Kind, UpperTail]:
    """One for each kind. n_history: (n_jobs,) runs in D1 of the jobs that count, 0 for the others."""
    return {kind: UpperTail(int(n_history.sum()), params.tail_share) for kind in kinds}


def bins_from(tails: dict[Kind, UpperTail], params: BinParams) -> dict[Kind, Bins]:
    """derived_bins of the values. Raises BadInput for a kind without any. Source: footnote 3."""
    return {kind: derived_bins(kind, tail.quantile(), params) for kind, tail in tails.items()}
