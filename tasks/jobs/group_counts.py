"""Histograms of many jobs, by part of the log and kind, kept without their empty bins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.jobs.pmf import Bins, Counts, Floats
from tasks.jobs.posterior import log_shapes, posterior_of
from tasks.jobs.shape_params import Kind

Ints = NDArray[np.int64]
PARTS = ("D1", "D2", "D3", "all")
HISTORY = 0  # of PARTS
N_PARTS = len(PARTS)
SORTED_AT_ONCE = 8_000_000  # cells
MERGED_AT_ONCE = 16_000_000


@dataclass(frozen=True)
class CellNumbers:
    """One number for a job, a part, and a bin of each kind, bin -1 being a missing one; they sort by job."""

    n_ratio_bins: int
    n_delta_bins: int

    def sql(self, group: str, part: str, ratio_bin: str, delta_bin: str) -> str:
        """The number of a run as SQL; the arguments are expressions."""
        row = f"({group}::BIGINT * {N_PARTS} + {part})"
        ratio, delta = (f"coalesce({bin_} + 1, 0)" for bin_ in (ratio_bin, delta_bin))
        return f"({row} * {self.n_ratio_bins + 1} + {ratio}) * {self.n_delta_bins + 1} + {delta}"

    def of(self, rows: Ints, ratio_bins: Ints, delta_bins: Ints) -> Ints:
        """The numbers of runs: (n,). rows: (n,) job times N_PARTS plus part; bins: (n,), -1 for a missing one."""
        return (rows * (self.n_ratio_bins + 1) + (ratio_bins + 1)) * (self.n_delta_bins + 1) + (delta_bins + 1)

    def read(self, cells: Ints) -> tuple[Ints, dict[Kind, Ints]]:
        """Rows, job times N_PARTS plus part, and the bins of each kind; all (n_cells,)."""
        rest, delta = np.divmod(cells, self.n_delta_bins + 1)
        rows, ratio = np.divmod(rest, self.n_ratio_bins + 1)
        return rows, {"ratio": ratio - 1, "delta": delta - 1}


@dataclass(frozen=True)
class GroupCounts:
    """keys: (n_groups,) sorted; medians_s: (n_groups,) of D1, missing without one; n_history, n_runs: (n_groups,).

    rows: (n_cells,) ascending, job times N_PARTS plus part; cell_bins: (n_cells,) by kind, -1 for a run without a
    ratio; n_in_cell: (n_cells,). Runs without a median are in no cell."""

    keys: NDArray[np.object_]
    medians_s: Floats
    n_history: Ints
    n_runs: Ints
    bins: dict[Kind, Bins]
    rows: Ints
    cell_bins: dict[Kind, Ints]
    n_in_cell: Ints

    @property
    def n_groups(self) -> int:
        """Jobs with at least one finished run."""
        return len(self.keys)

    def dense(self, kind: Kind, groups: Ints, part: int = HISTORY) -> Counts:
        """n_h, the runs of some jobs, by number, in each bin, in one of PARTS, the last being all: (n, n_bins)."""
        places, n_bins = np.full(self.n_groups, -1), self.bins[kind].n_bins
        places[groups] = np.arange(len(groups))
        cells = self._cells(kind, part)
        place = places[self.rows[cells] // N_PARTS]
        cells, place = cells[place >= 0], place[place >= 0]
        weights = self.n_in_cell[cells]
        found = np.bincount(place * n_bins + self.cell_bins[kind][cells], weights, minlength=len(groups) * n_bins)
        return found.astype(np.int64).reshape(len(groups), n_bins)  # exact below 2^53

    def support(self, kind: Kind, part: int = HISTORY) -> Ints:
        """Normalised runs of each job in one of PARTS: (n_groups,)."""
        cells = self._cells(kind, part)
        found = np.bincount(self.rows[cells] // N_PARTS, self.n_in_cell[cells], minlength=self.n_groups)
        return found.astype(np.int64)

    def log_posteriors(
        self, kind: Kind, centres: Floats, *, empty_bin_prior: float, prior: Floats | None = None
    ) -> Floats:
        """log_posterior of each job in each of PARTS: (n_groups, N_PARTS, K); with no run there it is the prior."""
        from scipy.sparse import csr_array

        cells = self._cells(kind, N_PARTS - 1)
        shape, n_h = (self.n_groups * N_PARTS, self.bins[kind].n_bins), self.n_in_cell[cells].astype(float)
        starts = np.searchsorted(self.rows[cells], np.arange(shape[0] + 1))
        counts = csr_array((n_h, self.cell_bins[kind][cells], starts), shape=shape)
        found = counts @ log_shapes(centres, empty_bin_prior=empty_bin_prior).T  # equation 8: (n_groups * N_PARTS, K)
        by_part = found.reshape(self.n_groups, N_PARTS, -1)
        by_part[:, -1] = by_part.sum(axis=1)
        return posterior_of(by_part.reshape(shape[0], -1), prior).reshape(by_part.shape)

    def _cells(self, kind: Kind, part: int) -> Ints:
        """Places of the cells of one part, the last being all, that have a bin."""
        is_there = self.cell_bins[kind] >= 0
        return np.flatnonzero(is_there if part == N_PARTS - 1 else is_there & (self.rows % N_PARTS == part))


def count_cells(batches: Iterable[Ints]) -> tuple[Ints, Ints]:
    """The different cells, ascending, and how often each came: both (n_cells,). Only a few batches are held.

    Sorted and counted, since that is several times faster than a hash table of so many different cells."""
    waiting: list[Ints] = []
    counted = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))]
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= SORTED_AT_ONCE:
            counted.append(sort_and_count(np.concatenate(waiting)))
            waiting = []
        if sum(len(cells) for cells, _ in counted) >= MERGED_AT_ONCE and len(counted) > 1:
            counted = [merge_cells(counted)]
    if waiting:
        counted.append(sort_and_count(np.concatenate(waiting)))
    return merge_cells(counted)


def sort_and_count(cells: Ints) -> tuple[Ints, Ints]:
    """The different cells, ascending, and how often each came: both (n_cells,); (0,) of none."""
    cells = np.sort(cells)
    starts = _starts(cells)
    return cells[starts], np.diff(np.append(starts, len(cells)))


def merge_cells(counted: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """The same over several such pairs, at least one, together: both (n_cells,)."""
    counted = [one for one in counted if len(one[0])] or counted[:1]
    if len(counted) == 1:
        return counted[0]
    cells, n = (np.concatenate(columns) for columns in zip(*counted, strict=True))
    order = np.argsort(cells, kind="stable")  # made for parts that are sorted already
    cells, n = cells[order], n[order]
    starts = _starts(cells)
    return cells[starts], np.add.reduceat(n, starts)


def _starts(cells: Ints) -> Ints:
    return np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]])[: len(cells)])
