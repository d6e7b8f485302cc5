"""Predicted runtimes that mix several kinds, such as shapes and a group's own history, with weights per instance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from tasks.jobs.distribution import (
    Floats,
    Predicted,
    Rows,
    checked_levels,
    checked_times,
    in_blocks,
    refuse,
)
from tasks.jobs.empirical import Empirical

ROUNDING = 1e-6
HALVINGS = 27  # of the interval between the quantiles of the parts: to 1e-8 of its length
ATOMS = 64  # values gone through for the distance of two parts


@dataclass(frozen=True)
class Mixture:
    """P(runtime <= x) = sum_k weights[:, k] parts[k].cdf(x). parts: each of n instances; weights: (n, n_parts).

    Raises ValueError for no part, parts of different n, or rows of weights that are no probabilities."""

    parts: Sequence[Predicted]
    weights: Floats

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        object.__setattr__(self, "weights", weights)
        sizes = [part.n for part in self.parts]
        if not sizes or len(set(sizes)) > 1:
            raise ValueError(f"parts: of {sizes} instances; expected at least one part, all of the same instances")
        if weights.shape != (sizes[0], len(sizes)):
            raise ValueError(f"weights: shape {weights.shape}; expected ({sizes[0]}, {len(sizes)})")
        refuse("weights", weights, ~(weights >= 0), "probabilities of 0 or more")
        sums = weights.sum(axis=1)
        refuse("sums of weights", sums, ~(np.abs(sums - 1) <= ROUNDING), "1 in each row")

    @property
    def n(self) -> int:
        """Number of instances."""
        return len(self.weights)

    def rows(self, which: Rows) -> Self:
        """The same for some of the instances."""
        return type(self)([part.rows(which) for part in self.parts], self.weights[which])

    def _weights(self, x: Floats) -> list[Floats]:
        """One array a part, in a shape that goes with x."""
        return [column[:, None] if x.ndim == 2 else column for column in self.weights.T]

    def cdf(self, x: Any) -> Floats:
        """P(runtime <= x)."""
        times = checked_times("x", x, self.n)
        return np.minimum(sum(w * p.cdf(times) for w, p in zip(self._weights(times), self.parts, strict=True)), 1.0)

    def cdf_below(self, x: Any) -> Floats:
        """P(runtime < x)."""
        times = checked_times("x", x, self.n)
        found = sum(w * p.cdf_below(times) for w, p in zip(self._weights(times), self.parts, strict=True))
        return np.minimum(found, 1.0)

    def quantile(self, q: Any) -> Floats:
        """Seconds, by halving the interval between the smallest and the largest quantile of the parts with weight."""

        def answer(mixture: Mixture, levels: Floats) -> Floats:
            found = np.stack([part.quantile(levels) for part in mixture.parts])  # (n_parts, n, ...)
            has_weight = np.stack([np.broadcast_to(w > 0, levels.shape) for w in mixture._weights(levels)])
            low, high = (
                np.where(has_weight, found, np.inf).min(axis=0),
                np.where(has_weight, found, -np.inf).max(axis=0),
            )
            rounding = 1e-12
            high = np.where(mixture.cdf(low) >= levels - rounding, low, high)  # low itself, such as a step
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                is_enough = mixture.cdf(middle) >= levels - rounding
                low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
            return np.asarray(high)

        return in_blocks(self, checked_levels(q, self.n), answer)

    def log_density(self, x: Any) -> Floats:
        """Log of sum_k weights f_k(x) x, the density of log runtime."""
        times = checked_times("x", x, self.n)
        with np.errstate(divide="ignore"):
            logs = [np.log(w) + p.log_density(times) for w, p in zip(self._weights(times), self.parts, strict=True)]
            return np.asarray(logsumexp(np.stack(logs), axis=0))

    def crps(self, x: Any) -> Floats:
        """Seconds: sum_k w_k CRPS_k(x) - sum_{j<k} w_j w_k D_jk, with D_jk the integral of (F_j - F_k)².

        D_jk = E[CRPS_j(V) - CRPS_k(V)] for V drawn from part k: exact if a part is a history of at most 64 runs;
        otherwise over 64 quantiles of part k: within 4e-4 of the mean CRPS for three pairs of log-normal shapes."""

        def answer(mixture: Mixture, times: Floats) -> Floats:
            wide = times if times.ndim == 2 else times[:, None]
            found = sum(w[:, None] * p.crps(wide) for w, p in zip(mixture.weights.T, mixture.parts, strict=True))
            return np.asarray(np.maximum(found - mixture._shared()[:, None], 0.0)).reshape(times.shape)

        return in_blocks(self, checked_times("x", x, self.n), answer)

    def _shared(self) -> Floats:
        """sum_{j<k} w_j w_k D_jk: (n,)."""
        total = np.zeros(self.n)
        for k in range(1, len(self.parts)):
            for j in range(k):
                both = self.weights[:, j] * self.weights[:, k]
                is_mixed = np.flatnonzero(both > 0)
                if is_mixed.size:
                    total[is_mixed] += both[is_mixed] * _distance(
                        self.parts[j].rows(is_mixed), self.parts[k].rows(is_mixed)
                    )
        return total

    def sample(self, rng: np.random.Generator, n_draws: int) -> Floats:
        """Independent draws in seconds: (n, n_draws)."""
        chosen = (rng.uniform(size=(self.n, n_draws))[:, :, None] >= np.cumsum(self.weights, axis=1)[:, None, :-1]).sum(
            2
        )
        drawn = np.stack([part.sample(rng, n_draws) for part in self.parts])  # (n_parts, n, n_draws)
        return np.asarray(np.take_along_axis(drawn, chosen[None], axis=0)[0])

    def atoms(self, most: int) -> tuple[Floats, Floats]:
        """Quantiles at (k + 1/2) / most, of equal weight."""
        values = self.quantile(np.broadcast_to((np.arange(most) + 0.5) / most, (self.n, most)))
        return values, np.full(values.shape, 1 / most)


def _distance(one: Predicted, other: Predicted) -> Floats:
    """The integral of (F_one - F_other)²: (n,). A history, if there is one, gives the values that are gone through."""
    if isinstance(one, Empirical) and not isinstance(other, Empirical):
        one, other = other, one
    values, weights = other.atoms(ATOMS)
    distance = (weights * (one.crps(values) - other.crps(values))).sum(axis=1)
    return np.asarray(np.maximum(distance, 0.0))
