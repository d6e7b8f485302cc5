"""Runtimes predicted as probabilities of bins of normalised runtime: a shape, stretched or shifted by a median."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, TypeVar

import numpy as np

from tasks.jobs.distribution import Floats, Rows, checked_levels, checked_times, in_blocks, refuse, row_numbers


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


Normalisation = Literal["ratio", "delta"]


@dataclass(frozen=True)
class Tails:
    """How the two outer bins, which hold the outliers, are spread; means in normalised units, None: a bin like others.

    upper_mean: the last bin has no end; beyond its start the excess is exponential with this mean.
    lower_mean: the first bin is uniform over twice this mean below its upper edge, or down to 0 s if that is further:
    no runtime is below 0 s, so this side ends."""

    upper_mean: float | None = None
    lower_mean: float | None = None


def fit_tails(values: Any, edges: Any, normalisation: Normalisation) -> Tails:
    """Tails with the mean excess of the training values in the outer bins; values: (n,), normalised runtimes.

    Without a value there the mean is the width of the bin. A ratio has no lower tail. Raises ValueError for NaN."""
    found = checked_times("values", values, len(values))
    bounds = np.asarray(edges, dtype=np.float64)
    upper, lower = found[found >= bounds[-2]] - bounds[-2], bounds[1] - found[found < bounds[1]]
    upper_mean = float(upper.mean()) if upper.sum() > 0 else float(bounds[-1] - bounds[-2])
    if normalisation == "ratio":
        return Tails(upper_mean)
    return Tails(upper_mean, float(lower.mean()) if lower.size else float(bounds[1] - bounds[0]))


def outer_edges(low: float, high: float, n_bins: int, normalisation: Normalisation) -> Floats:
    """Edges for n_bins bins of which the first and last are open and the others cut [low, high] evenly: (n_bins + 1,).

    The outermost edges are one width further out, where only a bin without a tail ends; a ratio begins at 0 at the
    latest. A ratio whose low is 0 has runs of no length in its first bin: see `without_zero_bin`."""
    inner = np.linspace(low, high, n_bins - 1)
    width = inner[1] - inner[0]
    return np.concatenate([[0.0 if normalisation == "ratio" and low > 0 else low - width], inner, [high + width]])


def without_zero_bin(edges: Any, probabilities: Any) -> tuple[Floats, Floats]:
    """Edges and probabilities with the first bin, of runs of no length, put into the second, for a ratio from 0 on.

    edges: (n_bins + 1,); probabilities: (k, n_bins). Unchanged if the first bin does not end at 0."""
    bounds, mass = np.asarray(edges, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    if bounds[1] != 0:
        return bounds, mass
    joined = mass[:, 1:].copy()
    joined[:, 0] += mass[:, 0]
    return bounds[1:], joined


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
