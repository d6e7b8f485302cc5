"""Runtimes predicted as probabilities of bins of normalised runtime: a shape, stretched or shifted by a median."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from tasks.jobs.distribution import Floats, Rows, checked_levels, checked_times, in_blocks, refuse
from tasks.jobs.pieces import Pieces
from tasks.jobs.tails import Normalisation, Tails

ROUNDING = 1e-6  # how far a sum of probabilities may be from 1


@dataclass(frozen=True)
class Binned:
    """Runtime = median × u (ratio) or median + u (delta), u with a constant density inside each bin.

    edges: (n_bins + 1,), ascending. shapes: (k, n_bins), rows sum to 1. medians_s: (n,), above 0 for a ratio.
    weights: (n, k), rows sum to 1: the bins of instance i are weights[i] @ shapes, made block by block; None if k = n
    and row i of shapes is instance i. With delta, what would lie below 0 s is cut away and the rest scaled up.
    Raises ValueError for NaN, wrong shapes, sums other than 1, a ratio to a median of 0, or an instance that has
    nothing left above 0 s. Source: Zhu et al. 2023, 4.2; the tails are ours."""

    edges: Floats
    shapes: Floats
    medians_s: Floats
    normalisation: Normalisation
    tails: Tails = field(default_factory=Tails)
    weights: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("edges", "shapes", "medians_s", "weights"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        _check(self)

    @property
    def n(self) -> int:
        """Number of instances."""
        return len(self.medians_s)

    def rows(self, which: Rows) -> Self:
        """The same for some of the instances."""
        if self.weights is None:
            return _unchecked(self, shapes=self.shapes[which], medians_s=self.medians_s[which])
        return _unchecked(self, weights=self.weights[which], medians_s=self.medians_s[which])

    def mass(self) -> Floats:
        """Probability of each bin before anything is cut at 0 s: (n, n_bins)."""
        return self.shapes if self.weights is None else self.weights @ self.shapes

    @cached_property
    def _pieces(self) -> Pieces:
        """Only ever made for one block of instances."""
        edges, mass, tail = self.edges, self.mass(), self.tails.upper_mean
        if self.normalisation == "ratio":
            lower = np.broadcast_to(edges[:-1], mass.shape)
            return Pieces(edges, lower, np.broadcast_to(np.diff(edges), mass.shape), mass, tail)
        zero = -self.medians_s[:, None]  # where 0 s lies
        starts = np.repeat(edges[None, :-1], self.n, axis=0)
        if self.tails.lower_mean is not None:
            starts[:, :1] = np.minimum(edges[1] - 2 * self.tails.lower_mean, zero)
        lower, upper = np.maximum(starts, zero), np.maximum(edges[1:], zero)
        mass = mass * ((upper - lower) / (edges[1:] - starts))
        left = mass.sum(axis=1)
        refuse("medians_s", self.medians_s, left <= 0, "a median whose shape leaves some probability above 0 s")
        return Pieces(edges, lower, upper - lower, mass / left[:, None], tail)

    def _unit(self, x: Floats) -> Any:
        """Seconds of one normalised unit, in a shape that goes with x."""
        unit = self.medians_s if self.normalisation == "ratio" else np.ones(self.n)
        return unit[:, None] if x.ndim == 2 else unit

    def _normalised(self, x: Floats) -> Floats:
        medians_s = self.medians_s[:, None] if x.ndim == 2 else self.medians_s
        return x / medians_s if self.normalisation == "ratio" else x - medians_s

    def cdf(self, x: Any) -> Floats:
        """P(runtime <= x)."""
        times = checked_times("x", x, self.n)
        return in_blocks(self, times, lambda part, t: part._pieces.cdf(part._normalised(t)))

    def cdf_below(self, x: Any) -> Floats:
        """The cdf: no single value has a probability."""
        return self.cdf(x)

    def quantile(self, q: Any) -> Floats:
        """Seconds, the inverse of the cdf."""

        def answer(part: Binned, levels: Floats) -> Floats:
            u = part._pieces.quantile(levels)
            if part.normalisation == "ratio":
                return np.asarray(u * part._unit(levels))
            return np.asarray(u + (part.medians_s[:, None] if levels.ndim == 2 else part.medians_s))

        return in_blocks(self, checked_levels(q, self.n), answer)

    def log_density(self, x: Any) -> Floats:
        """Log of x f(x), the density of log runtime; -inf at 0 s and where a bin is empty."""

        def answer(part: Binned, t: Floats) -> Floats:
            with np.errstate(divide="ignore"):
                log_x = np.log(np.maximum(t, 0) / part._unit(t))
            return np.asarray(part._pieces.log_density(part._normalised(t)) + log_x)

        return in_blocks(self, checked_times("x", x, self.n), answer)

    def crps(self, x: Any) -> Floats:
        """Seconds, in closed form."""

        def answer(part: Binned, t: Floats) -> Floats:
            return np.asarray(part._pieces.crps(part._normalised(t)) * part._unit(t))

        return in_blocks(self, checked_times("x", x, self.n), answer)

    def sample(self, rng: np.random.Generator, n_draws: int) -> Floats:
        """Independent draws in seconds: (n, n_draws)."""
        return self.quantile(rng.uniform(np.finfo(float).tiny, 1.0, (self.n, n_draws)))

    def atoms(self, most: int) -> tuple[Floats, Floats]:
        """Quantiles at (k + 1/2) / most, of equal weight."""
        levels = (np.arange(most) + 0.5) / most
        values = self.quantile(np.broadcast_to(levels, (self.n, most)))
        return values, np.full(values.shape, 1 / most)


B = TypeVar("B", bound=Binned)


def _unchecked(binned: B, **changes: Any) -> B:
    """A part of what was checked before: not checked again, and without the pieces of the whole."""
    part = object.__new__(type(binned))
    for name in binned.__dataclass_fields__:
        object.__setattr__(part, name, changes.get(name, getattr(binned, name)))
    return part


def _check(binned: Binned) -> None:
    edges, shapes, medians_s, weights = binned.edges, binned.shapes, binned.medians_s, binned.weights
    refuse("edges", edges, ~np.isfinite(edges), "finite edges; an outer bin is opened by tails")
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(f"edges: shape {edges.shape}; expected at least two, each above the one before")
    if shapes.ndim != 2 or shapes.shape[1] != len(edges) - 1:
        raise ValueError(f"shapes: shape {shapes.shape}; expected (k, {len(edges) - 1}), a column for each bin")
    if medians_s.ndim != 1 or (shapes if weights is None else weights).shape[0] != len(medians_s):
        raise ValueError(f"medians_s: shape {medians_s.shape}; expected one for each row of shapes, or of weights")
    if weights is not None and weights.shape != (len(medians_s), len(shapes)):
        raise ValueError(f"weights: shape {weights.shape}; expected ({len(medians_s)}, {len(shapes)})")
    is_ratio = binned.normalisation == "ratio"
    refuse("medians_s", medians_s, ~np.isfinite(medians_s) | (medians_s < 0), "a finite median of 0 s or more")
    refuse("medians_s", medians_s, is_ratio & (medians_s == 0), "above 0 s, since a ratio to 0 is nothing; use delta")
    if is_ratio and (edges[0] < 0 or binned.tails.lower_mean is not None):
        raise ValueError("edges: a ratio is 0 or more and has no lower tail; expected edges from 0 on")
    if binned.tails.upper_mean is not None and edges[-2] < 0:
        raise ValueError(f"edges: the open bin begins at {edges[-2]:g}; expected 0 or more")
    for name, table in (("shapes", shapes), ("weights", weights)):
        if table is not None:
            refuse(name, table, ~(table >= 0) | np.isinf(table), "probabilities of 0 or more")
            sums = table.sum(axis=1)
            refuse(f"sums of {name}", sums, np.abs(sums - 1) > ROUNDING, "1 in each row")
