"""Median, average, 95th percentile and COV of every job, and what is wrong with the COV, from the runs themselves."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.pmf import Bins, histogram, pmfs_of

SAME_COV = 0.02  # relative difference below which two COVs count as the same
NEIGHBOURS = 50  # in the order of COV, that a job is compared with
FEW_RUNS = (3, 5, 10)
N_QUARTERS = 4
RATIOS = Bins(kind="ratio", low=0, high=10)


@dataclass(frozen=True)
class CovFaults:
    """What section 4.1 says of the coefficient of variation (COV), the standard deviation over the mean.

    jumps: group_key, n_runs, cov_without, cov, times: without the slowest run of each job and with it, the largest
    jump first. few: n_runs, n_samples, share: COV of so many consecutive runs over that of all runs of their job,
    averaged; below 1 is bias. short: median_s, cov, n_groups of each quarter of the jobs by median runtime, the
    shortest first. pairs: group_key, cov, other_key, other_cov, distance: jobs of the same COV whose ratios are
    distributed most differently, as the largest difference between their cumulative distributions over 200 bins; each
    job is in one pair at most."""

    jumps: pd.DataFrame
    few: pd.DataFrame
    short: pd.DataFrame
    pairs: pd.DataFrame


def scalar_metrics(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a job, by group_key: n_runs, median_s, mean_s, p95_s, std_s (sample), cov, missing for a mean of 0.

    runs: group_key, runtime_s, finite. Source: Zhu et al. 2023, section 4.1."""
    by_group = runs.groupby("group_key", observed=True)["runtime_s"]
    columns = {"n_runs": by_group.size(), "median_s": by_group.median(), "mean_s": by_group.mean()}
    table = pd.DataFrame({**columns, "std_s": by_group.std(), "p95_s": by_group.quantile(0.95)})
    table["cov"] = table["std_s"] / table["mean_s"].where(table["mean_s"] > 0)
    return table


def cov_faults(runs: pd.DataFrame, *, min_support: int = 20) -> CovFaults:
    """The faults of the COV shown on the jobs with min_support runs.

    runs: group_key, runtime_s, in the order in which they were submitted. Raises BadInput without such a job."""
    metrics = scalar_metrics(runs)
    metrics = metrics[(metrics["n_runs"] >= min_support) & (metrics["median_s"] > 0)]
    if metrics.empty:
        raise BadInput("jobs", f"none has {min_support} runs and a median above 0", "one at least", "lower min_support")
    used = runs[runs["group_key"].isin(metrics.index)]
    codes = metrics.index.get_indexer(pd.Index(used["group_key"]))
    runtimes = used["runtime_s"].to_numpy(dtype=float)
    return CovFaults(
        _jumps(metrics, codes, runtimes),
        _few(metrics, codes, runtimes),
        _short(metrics),
        _pairs(metrics, codes, runtimes),
    )


def _jumps(metrics: pd.DataFrame, codes: NDArray[np.intp], runtimes: NDArray[np.float64]) -> pd.DataFrame:
    order = np.lexsort((runtimes, codes))
    is_slowest = np.append(np.diff(codes[order]) > 0, True)
    rest = order[~is_slowest]
    without = pd.Series(runtimes[rest]).groupby(codes[rest]).agg(["mean", "std"])
    table = metrics[["n_runs", "cov"]].reset_index()
    table.insert(2, "cov_without", (without["std"] / without["mean"].where(without["mean"] > 0)).to_numpy())
    table["times"] = table["cov"] / table["cov_without"].where(table["cov_without"] > 0)
    return table.sort_values("times", ascending=False, kind="stable", ignore_index=True)


def _few(metrics: pd.DataFrame, codes: NDArray[np.intp], runtimes: NDArray[np.float64]) -> pd.DataFrame:
    order = np.argsort(codes, kind="stable")
    codes, runtimes = codes[order], runtimes[order]
    place = np.arange(len(codes)) - np.searchsorted(codes, codes)
    cov, sizes = metrics["cov"].to_numpy(), metrics["n_runs"].to_numpy()
    rows = []
    for n in FEW_RUNS:
        is_whole = (place < sizes[codes] // n * n) & (cov[codes] > 0)
        samples = runtimes[is_whole].reshape(-1, n)
        means, of = samples.mean(axis=1), codes[is_whole][::n]
        shares = samples.std(axis=1, ddof=1) / np.where(means > 0, means, np.nan) / cov[of]
        by_job = pd.Series(shares).groupby(of).mean()  # a job counts once, however often it ran
        rows.append((n, len(samples), float(by_job.mean())))
    return pd.DataFrame(rows, columns=["n_runs", "n_samples", "share"])


def _short(metrics: pd.DataFrame) -> pd.DataFrame:
    ranks = metrics["median_s"].rank(method="first").to_numpy().astype(int) - 1
    quarter = ranks * N_QUARTERS // len(metrics)
    table = metrics.groupby(quarter).agg(
        median_s=("median_s", "median"), cov=("cov", "median"), n_groups=("cov", "size")
    )
    return table.reset_index(drop=True)


def _pairs(metrics: pd.DataFrame, codes: NDArray[np.intp], runtimes: NDArray[np.float64]) -> pd.DataFrame:
    medians, cov = metrics["median_s"].to_numpy(), metrics["cov"].to_numpy()
    counts = histogram(runtimes / medians[codes], codes, len(metrics), RATIOS)
    order = np.argsort(cov, kind="stable")
    cumulative, cov, keys = np.cumsum(pmfs_of(counts), axis=1)[order], cov[order], metrics.index.to_numpy()[order]
    found = []
    for step in range(1, min(NEIGHBOURS, len(order) - 1) + 1):
        distance = np.abs(cumulative[step:] - cumulative[:-step]).max(axis=1)
        at = np.flatnonzero(cov[step:] <= (1 + SAME_COV) * cov[:-step])
        found += [(float(distance[i]), int(i), int(i) + step) for i in at]
    rows: list[tuple[object, ...]] = []
    paired: set[int] = set()
    for distance, one, other in sorted(found, key=lambda pair: (-pair[0], pair[1:])):
        if not {one, other} & paired:
            paired |= {one, other}
            rows.append((keys[one], cov[one], keys[other], cov[other], distance))
    return pd.DataFrame(rows, columns=["group_key", "cov", "other_key", "other_cov", "distance"])
