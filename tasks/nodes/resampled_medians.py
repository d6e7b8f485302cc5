"""Medians of bootstrap resamples, drawn from their exact distribution without drawing the resamples.

The k-th smallest of n draws with replacement from n sorted values is the value at place floor(n·U), where U is the k-th
smallest of n uniform numbers: U ~ Beta(k, n - k + 1). Given it, the next one is U + (1 - U)·Beta(1, n - k). So a
resample's median costs two draws, however many values there are (Efron 1979, section 3; David & Nagaraja 2003, 2.5)."""

import numpy as np

from tasks.nodes.type_tables import Floats


def resampled_medians(values: Floats, n_drawn: int, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Medians of n_resamples resamples of n_drawn values each: (n_resamples,).

    values: (n,) finite, in any order; n_drawn is n for a bootstrap. Raises ValueError without values."""
    if not len(values) or n_drawn < 1:
        raise ValueError(f"{n_drawn} draws from {len(values)} values; at least one of each is needed")
    ordered = np.sort(values)
    middle = (n_drawn + 1) // 2  # the lower of the two middle ones where there are two
    lower = rng.beta(middle, n_drawn - middle + 1, n_resamples)
    if n_drawn % 2:
        return np.asarray(ordered[_places(lower, len(ordered))])
    upper = lower + (1 - lower) * rng.beta(1, n_drawn - middle, n_resamples)
    return np.asarray((ordered[_places(lower, len(ordered))] + ordered[_places(upper, len(ordered))]) / 2)


def _places(uniform: Floats, n: int) -> np.ndarray:
    return np.minimum((uniform * n).astype(np.int64), n - 1)
