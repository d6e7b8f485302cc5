"""What every predicted runtime distribution answers, for many instances at once; and how instances are gone through.

Two kinds: `binned.Binned` (bins of normalised runtime) and `empirical.Empirical` (past runs)."""

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.int64]

BLOCK = 4000  # instances worked on together: a matrix of 200 bins is then 6 MB


class Predicted(Protocol):
    """Distributions of runtime in seconds, one for each of `n` instances.

    x: runtimes in seconds, (n,) or (n, m): row i is asked of instance i; the answer has the shape of x.
    All methods raise ValueError for NaN, an infinite x or a wrong shape."""

    @property
    def n(self) -> int:
        """Number of instances."""
        ...

    def rows(self, which: Rows) -> Self:
        """The same for some of the instances."""
        ...

    def cdf(self, x: Any) -> Floats:
        """P(runtime <= x)."""
        ...

    def cdf_below(self, x: Any) -> Floats:
        """P(runtime < x); less than the cdf only where single values have a probability."""
        ...

    def quantile(self, q: Any) -> Floats:
        """Seconds: the smallest x with cdf(x) >= q. q: a level for all, (n,) or (n, m), between 0 and 1."""
        ...

    def log_density(self, x: Any) -> Floats:
        """Log of the density of log runtime, x f(x): free of units, so all kinds compare. -inf where there is none."""
        ...

    def crps(self, x: Any) -> Floats:
        """Seconds: the integral over t of (cdf(t) - 1{t >= x})²; 0 is perfect. Source: Gneiting & Raftery 2007, 4.2."""
        ...

    def sample(self, rng: np.random.Generator, n_draws: int) -> Floats:
        """Independent draws in seconds, (n, n_draws)."""
        ...

    def atoms(self, most: int) -> tuple[Floats, Floats]:
        """At most `most` values in seconds that stand for each distribution, and their weights: (n, m) each.

        Rows of weights sum to 1. Exact for an empirical distribution of at most `most` values, otherwise the
        quantiles at (k + 1/2) / most."""
        ...


P = TypeVar("P", bound=Predicted)


def in_blocks(predicted: P, asked: Floats, answer: Callable[[P, Floats], Floats], *, block: int = BLOCK) -> Floats:
    """answer(part of predicted, the same rows of asked), joined: bounded memory. asked: (n, ...)."""
    n = predicted.n
    if n <= block:
        return answer(predicted, asked)
    starts = range(0, n, block)
    return np.concatenate([answer(predicted.rows(slice(i, i + block)), asked[i : i + block]) for i in starts])


def checked_times(name: str, values: Any, n: int) -> Floats:
    """values as float64 of shape (n,) or (n, m). Raises ValueError for another shape, NaN or infinite values."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim not in (1, 2) or found.shape[0] != n:
        raise ValueError(f"{name}: shape {found.shape}; expected ({n},) or ({n}, m), a row for each instance")
    refuse(name, found, ~np.isfinite(found), "a finite number of seconds")
    return found


def checked_levels(q: Any, n: int) -> Floats:
    """q as levels of shape (n,) or (n, m); one level counts for all. Raises ValueError outside (0, 1)."""
    levels = np.asarray(q, dtype=np.float64)
    if levels.ndim == 0:
        levels = np.full(n, levels)
    if levels.ndim > 2 or levels.shape[0] != n:
        raise ValueError(f"q: shape {levels.shape}; expected one level, ({n},) or ({n}, m)")
    refuse("q", levels, ~((levels > 0) & (levels < 1)), "a level between 0 and 1")
    return levels


def refuse(name: str, values: Floats, is_wrong: NDArray[np.bool_], expected: str) -> None:
    """Raise ValueError if any value is wrong, with how many, the first of them and what was expected."""
    if is_wrong.any():
        place = tuple(int(i) for i in np.argwhere(is_wrong)[0])
        where = ", ".join(map(str, place))
        raise ValueError(
            f"{name}: {int(is_wrong.sum())} of {values.size} values cannot be used, the first at row {where} "
            f"({values[place]:g}); expected {expected}"
        )


def row_numbers(x: NDArray[Any]) -> NDArray[np.int64]:
    """0 ... n - 1 in a shape that goes with x: (n,) or (n, 1)."""
    numbers = np.arange(len(x))
    return numbers[:, None] if x.ndim == 2 else numbers
