"""Bins of runtime over expected runtime: narrow around 1, where stable jobs differ, and wide in the tails."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter1d

from tasks.jobs.distribution import Floats
from tasks.jobs.predict.predictor_params import SpreadParams


@dataclass(frozen=True)
class ResidualGrid:
    """log_edges: (n_bins + 1,), ascending and symmetric about 0; beyond them lie the outer bins' values as well."""

    log_edges: Floats

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.log_edges) - 1

    @property
    def edges(self) -> Floats:
        """Edges as ratios, the first 0: a run of no time has a bin, too. (n_bins + 1,)."""
        edges = np.exp(self.log_edges)
        edges[0] = 0.0
        return np.asarray(edges)

    def index(self, log_residuals: ArrayLike) -> NDArray[np.int64]:
        """The bin of each log of runtime over expected runtime, from 0; those beyond the ends in the outer bins."""
        found = np.searchsorted(self.log_edges, np.asarray(log_residuals, dtype=float), side="right") - 1
        return np.clip(found, 0, self.n_bins - 1).astype(np.int64)

    def smoothed(self, masses: ArrayLike, smoothing_bins: float) -> Floats:
        """Masses (n, n_bins) shared with neighbouring bins by a Gaussian; sums of rows stay."""
        found = np.asarray(masses, dtype=float)
        if smoothing_bins <= 0 or not found.size:
            return found
        return np.asarray(gaussian_filter1d(found, smoothing_bins, axis=-1, mode="reflect"))

    def widened(self, masses: Floats, width: float) -> Floats:
        """Masses, (n, n_bins), of residuals raised to the power `width`: below 1 narrower; bins stay as they are."""
        if width == 1 or not masses.size:
            return masses
        position = np.interp(self.log_edges / width, self.log_edges, np.arange(self.n_bins + 1))
        left = np.minimum(position.astype(np.int64), self.n_bins - 1)
        below = np.concatenate([np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)], axis=1)
        found = below[:, left] + (position - left) * (below[:, left + 1] - below[:, left])
        found[:, 0], found[:, -1] = 0.0, below[:, -1]
        return np.diff(found, axis=1)


def make_grid(params: SpreadParams) -> ResidualGrid:
    """Edges at finest_log · sinh(u) for even steps of u, out to reach_log on both sides."""
    furthest = np.arcsinh(params.reach_log / params.finest_log)
    return ResidualGrid(params.finest_log * np.sinh(np.linspace(-furthest, furthest, params.n_bins + 1)))
