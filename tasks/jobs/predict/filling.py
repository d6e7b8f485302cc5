"""Features for models that take no missing values: filled, scaled, with a column for being missing where it varies."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.pmf import Floats

MISSING = "?missing"


@dataclass(frozen=True)
class Filling:
    """names: (p,) of the columns that come out, `<feature>?missing` for an indicator; feature: (p,) where each comes
    from. medians fill, means and sds scale; clip_sd: where values are cut after that, None for nowhere."""

    names: tuple[str, ...]
    feature: tuple[str, ...]
    medians: Floats
    means: Floats
    sds: Floats
    clip_sd: float | None

    def apply(self, frame: pd.DataFrame) -> Floats:
        """(n, p): no missing value, about mean 0 and standard deviation 1."""
        x = _columns(frame, self.names, self.feature)
        x = (np.where(np.isnan(x), self.medians, x) - self.means) / self.sds
        return x if self.clip_sd is None else np.clip(x, -self.clip_sd, self.clip_sd)


def learn_filling(frame: pd.DataFrame, *, indicator_share: float, clip_sd: float | None = None) -> Filling:
    """How to fill and scale features like these: (n, p) with NaN or infinity for unknown.

    A column of being missing is made where at least indicator_share of the values are missing and as many are known.
    Columns that do not vary are left out."""
    features = [str(name) for name in frame]
    raw = frame.to_numpy(dtype=float)
    share = np.mean(~np.isfinite(raw), axis=0) if len(raw) else np.zeros(len(features))
    least = max(indicator_share, 1 / max(len(raw), 1))
    marked = [name for name, s in zip(features, share, strict=True) if least <= s <= 1 - least]
    names, sources = (*features, *(name + MISSING for name in marked)), (*features, *marked)
    x = _columns(frame, names, sources)
    medians = np.array([np.median(column[~np.isnan(column)]) if s else 0.0 for column, s in _known(x)])
    x = np.where(np.isnan(x), medians, x)
    is_varying = np.ptp(x, axis=0) > 0 if len(x) else np.zeros(len(names), dtype=bool)
    scale = np.abs(x).max(axis=0, initial=1.0)  # so that squares of very large values stay finite
    means, sds = (x / scale).mean(axis=0) * scale, (x / scale).std(axis=0) * scale
    keep = np.flatnonzero(is_varying & (sds > 0))
    picked = [tuple(values[at] for at in keep) for values in (names, sources)]
    return Filling(picked[0], picked[1], medians[keep], means[keep], sds[keep], clip_sd)


def _columns(frame: pd.DataFrame, names: tuple[str, ...], features: tuple[str, ...]) -> Floats:
    """The columns asked for, with NaN for what is not finite: (n, p)."""
    x = np.array(frame[list(features)], dtype=float)
    x[~np.isfinite(x)] = np.nan
    is_indicator = np.array([name.endswith(MISSING) for name in names], dtype=bool)
    x[:, is_indicator] = np.isnan(x[:, is_indicator])
    return x


def _known(x: Floats) -> list[tuple[Floats, NDArray[np.bool_]]]:
    """Each column, and if it has a known value."""
    return [(column, ~np.isnan(column).all()) for column in x.T]
