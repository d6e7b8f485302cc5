"""The three faults of the COV that section 4.1 of the paper names, each on jobs of the log at hand."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from tasks.jobs.normalisation import Floats

MIN_RUNS = 20
SAME_COV = 0.05  # COVs that differ by no more than this share count as the same
N_BANDS = 4
MOST_PAIRED = 400  # jobs with the most runs that are compared with one another
FIRST = 10  # runs before the first COV of the second panel
GRID_POINTS = 64


@dataclass(frozen=True)
class Biased:
    """Bias. median_s, cov: (n_jobs,); bands: of jobs from short to long, alike in size: median_s, median COV."""

    median_s: Floats
    cov: Floats
    bands: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Unstable:
    """Instability. Of one job, after each of its runs from FIRST on: cov, and gap, the 25th-75th over the median.

    both: (n_runs - FIRST + 1,); jump_at: place of the run that changed the COV most; runtime_ratio: of that run over
    the median of the job."""

    group_key: str
    cov: Floats
    gap: Floats
    jump_at: int
    runtime_ratio: float


@dataclass(frozen=True)
class Coarse:
    """Coarseness. Two jobs whose COVs are the same and whose distributions differ most: runtimes over the mean."""

    keys: tuple[str, str]
    covs: tuple[float, float]
    ratios: tuple[Floats, Floats]


@dataclass(frozen=True)
class CovFaults:
    """What each panel shows; n_jobs with at least min_runs runs. A fault that the log cannot show is None."""

    n_jobs: int
    min_runs: int
    biased: Biased | None
    unstable: Unstable | None
    coarse: Coarse | None

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n_jobs:,} jobs with at least {self.min_runs} runs; the jobs shown are chosen by rule"


def find_cov_faults(runs: pd.DataFrame, *, min_runs: int = MIN_RUNS) -> CovFaults | None:
    """Where the log shows the faults, by fixed rules; None if no job has min_runs finished runs above 0 s.

    runs: group_key, submitted_at, runtime_s. Unstable: the job whose COV one run changed most, upwards. Coarse: of
    jobs next to one another in COV, the two whose runtimes over their mean differ most (Kolmogorov–Smirnov)."""
    runs = runs[np.isfinite(runs["runtime_s"].astype(float)) & (runs["runtime_s"] > 0)]
    runs = runs.sort_values(["group_key", "submitted_at", "runtime_s"], kind="stable")
    times = {
        str(key): group.to_numpy(dtype=float)
        for key, group in runs.groupby("group_key", sort=True)["runtime_s"]
        if len(group) >= max(min_runs, FIRST + 1)
    }
    if not times:
        return None
    return CovFaults(len(times), min_runs, _bias(times), _instability(times), _coarseness(times))


def _cov(values: Floats) -> float:
    return float(np.std(values, ddof=1) / np.mean(values))


def _bias(times: dict[str, Floats]) -> Biased | None:
    if len(times) < 2:
        return None
    medians = np.array([np.median(values) for values in times.values()])
    covs = np.array([_cov(values) for values in times.values()])
    parts = np.array_split(np.argsort(medians, kind="stable"), min(N_BANDS, len(times)))
    bands = tuple((float(np.median(medians[part])), float(np.median(covs[part]))) for part in parts)
    return Biased(medians, covs, bands)


def _running_cov(values: Floats) -> Floats:
    """COV of the first FIRST, FIRST + 1 … runs."""
    n = np.arange(1, len(values) + 1)
    mean = np.cumsum(values) / n
    centred = values - values.mean()
    variance = (np.cumsum(centred**2) - np.cumsum(centred) ** 2 / n) / np.maximum(n - 1, 1)
    return np.asarray((np.sqrt(np.maximum(variance, 0)) / mean)[FIRST - 1 :])


def _instability(times: dict[str, Floats]) -> Unstable | None:
    best: tuple[float, str, int] | None = None
    for key, values in times.items():
        steps = np.diff(_running_cov(values))
        place = int(steps.argmax())
        if steps[place] > 0 and (best is None or steps[place] > best[0]):
            best = (float(steps[place]), key, place + FIRST)
    if best is None:
        return None
    _, key, place = best
    values = times[key]
    quartiles = np.array([np.quantile(values[:n], [0.25, 0.5, 0.75]) for n in range(FIRST, len(values) + 1)])
    gap = (quartiles[:, 2] - quartiles[:, 0]) / quartiles[:, 1]
    return Unstable(key, _running_cov(values), gap, place, float(values[place] / np.median(values)))


def _coarseness(times: dict[str, Floats]) -> Coarse | None:
    most_first = sorted(times, key=lambda key: (-len(times[key]), key))[:MOST_PAIRED]
    covs = {key: _cov(times[key]) for key in most_first}
    ordered = sorted((key for key in most_first if covs[key] > 0), key=lambda key: (covs[key], key))
    levels = (np.arange(GRID_POINTS) + 0.5) / GRID_POINTS
    best: tuple[float, str, str] | None = None
    for one, other in pairwise(ordered):
        if covs[other] > (1 + SAME_COV) * covs[one]:
            continue
        a, b = (np.sort(times[key] / times[key].mean()) for key in (one, other))
        at = np.unique(np.quantile(np.r_[a, b], levels))
        distance = np.abs(
            np.searchsorted(a, at, side="right") / len(a) - np.searchsorted(b, at, side="right") / len(b)
        ).max()
        if best is None or distance > best[0]:
            best = (float(distance), one, other)
    if best is None:
        return None
    _, one, other = best
    ratios = (times[one] / times[one].mean(), times[other] / times[other].mean())
    return Coarse((one, other), (covs[one], covs[other]), ratios)
