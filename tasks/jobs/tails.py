"""How the two outer bins of a distribution, which hold the outliers, are spread; and the edges that go with it."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tasks.jobs.distribution import Floats, checked_times

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
