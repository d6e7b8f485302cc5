"""Piecewise-constant densities, one a row, in normalised units: cdf, quantiles and the CRPS in closed form."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tasks.jobs.distribution import Floats, row_numbers


@dataclass(frozen=True)
class Pieces:
    """Densities that are constant in each bin; the last bin can be open, with an exponential tail.

    edges: (n_bins + 1,), where bins are looked up; lower, width: (n, n_bins), where each bin begins and how wide it is
    in this row (0: cut away); mass: (n, n_bins), rows sum to 1; tail: mean of the excess over the start of the last
    bin, None if that bin is closed. All in the same normalised unit, u. u: (n,) or (n, m)."""

    edges: Floats
    lower: Floats
    width: Floats
    mass: Floats
    tail: float | None

    @cached_property
    def _below(self) -> Floats:
        """Probability below each bin, and 1 at the end: (n, n_bins + 1)."""
        below = np.zeros((len(self.mass), self.mass.shape[1] + 1))
        np.cumsum(self.mass, axis=1, out=below[:, 1:])
        np.minimum(below, 1.0, out=below)
        below[:, -1] = 1.0
        return below

    @cached_property
    def _areas(self) -> tuple[Floats, Floats]:
        """The integral of F² from the start up to each edge, and of (1 - F)² from each edge on: (n, n_bins + 1) each.

        In a bin where F goes straight from f0 to f1 it is width (f0² + f0 f1 + f1²) / 3; beyond the start of an
        open bin of mass m, (1 - F)² = m² exp(-2 z / tail), and the integral is m² tail / 2."""
        f0, f1 = self._below[:, :-1], self._below[:, 1:]
        left, right = np.zeros(self._below.shape), np.zeros(self._below.shape)
        squares = self.width * (f0 * f0 + f0 * f1 + f1 * f1) / 3
        np.cumsum(squares, axis=1, out=left[:, 1:])
        s0, s1 = 1 - f0, 1 - f1
        squares = self.width * (s0 * s0 + s0 * s1 + s1 * s1) / 3
        if self.tail is not None:
            squares[:, -1] = s0[:, -1] ** 2 * self.tail / 2
        right[:, :-1] = np.cumsum(squares[:, ::-1], axis=1)[:, ::-1]
        return left, right

    def _at(self, u: Floats) -> tuple[Any, Any, Floats, Floats, Floats, Floats]:
        """Row, bin, distance into the bin, its width and the cdf at its start and at u."""
        rows = row_numbers(u)
        bins = np.clip(np.searchsorted(self.edges, u, side="right") - 1, 0, self.mass.shape[1] - 1)
        width, f0 = self.width[rows, bins], self._below[rows, bins]
        into = u - self.lower[rows, bins]
        share = np.clip(into / np.where(width > 0, width, 1.0), 0.0, 1.0)
        if self.tail is not None:
            share = np.where(bins == self.mass.shape[1] - 1, -np.expm1(-np.maximum(into, 0) / self.tail), share)
        return rows, bins, into, width, f0, np.minimum(f0 + share * self.mass[rows, bins], 1.0)

    def cdf(self, u: Floats) -> Floats:
        """P(value <= u)."""
        return self._at(u)[-1]

    def log_density(self, u: Floats) -> Floats:
        """Log of the density per normalised unit; -inf outside the bins and where there is no mass."""
        rows, bins, into, width, _, _ = self._at(u)
        mass = self.mass[rows, bins]
        is_inside = (into >= 0) & (into <= width)
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Floats = np.where(is_inside & (width > 0) & (mass > 0), np.log(mass / width), -np.inf)
            if self.tail is not None:
                in_tail = np.log(mass / self.tail) - into / self.tail
                found = np.where((bins == self.mass.shape[1] - 1) & (into >= 0), in_tail, found)
        return found

    def quantile(self, q: Floats) -> Floats:
        """The smallest u with cdf(u) >= q."""
        rows, n_bins = row_numbers(q), self.mass.shape[1]
        # rows are laid end to end, each 2 above the one before, so that one search serves all of them
        laid = (self._below[:, 1:] + 2.0 * np.arange(len(q))[:, None]).ravel()
        bins = np.clip(np.searchsorted(laid, q + 2.0 * rows) - rows * n_bins, 0, n_bins - 1)
        mass = self.mass[rows, bins]
        share = np.clip((q - self._below[rows, bins]) / np.where(mass > 0, mass, 1.0), 0.0, 1.0)
        found: Floats = self.lower[rows, bins] + share * self.width[rows, bins]
        if self.tail is not None:
            # in the tail 1 - q = mass exp(-z / tail)
            z = -self.tail * np.log(np.minimum((1 - q) / np.where(mass > 0, mass, 1.0), 1.0))
            found = np.where(bins == n_bins - 1, self.lower[rows, bins] + z, found)
        return found

    def crps(self, u: Floats) -> Floats:
        """The integral of F² below u plus that of (1 - F)² above it."""
        left, right = self._areas
        rows, bins, into, width, f0, f = self._at(u)
        to_u = np.clip(into, 0.0, width)
        s1, s = 1 - self._below[rows, bins + 1], 1 - f
        below = left[rows, bins] + to_u * (f0 * f0 + f0 * f + f * f) / 3
        above = right[rows, bins + 1] + (width - to_u) * (s * s + s * s1 + s1 * s1) / 3
        if self.tail is not None:
            is_tail, z, m = bins == self.mass.shape[1] - 1, np.maximum(into, 0), 1 - f0
            # F² = 1 - 2 m exp(-z / tail) + m² exp(-2 z / tail), from 0 to z
            squares = (
                z + 2 * m * self.tail * np.expm1(-z / self.tail) - m**2 * self.tail / 2 * np.expm1(-2 * z / self.tail)
            )
            below = np.where(is_tail, left[rows, bins] + squares, below)
            above = np.where(is_tail, s * s * self.tail / 2, above)
        outside = np.maximum(self.lower[:, 0][rows] - u, 0)
        if self.tail is None:
            outside = outside + np.maximum(u - (self.lower[:, -1] + self.width[:, -1])[rows], 0)
        return np.asarray(below + above + outside)
