"""Which jobs have changed since a moment, and which of them have drifted to another shape.

Two questions with two kinds of evidence. Changed: a permutation test of the runtimes before and since, held at a false
discovery rate over all jobs. Another shape: a changed job whose runs are also min_bayes_factor times likelier under
two different shapes than under one. The Bayes factor alone would not do: a job between two shapes, with many runs, is
drawn to one of them by luck, and firmly."""

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from tasks.jobs.distribution import Floats
from tasks.jobs.normalisation import normalise
from tasks.jobs.outlook.params import DriftParams
from tasks.jobs.outlook.shape_change import log_bayes_factors
from tasks.jobs.outlook.sides import RESOLUTION, Sides, split_runs
from tasks.jobs.outlook.two_samples import permutation_test
from tasks.jobs.pmf import Counts, histogram
from tasks.jobs.posterior import log_posterior
from tasks.jobs.shapes import ShapeSet

MEASURES = (
    "group_key", "n_before", "n_after", "stretches_before", "stretches_after", "median_before_s", "median_after_s",
    "median_factor", "spread_before_s", "spread_after_s", "statistic", "p_value",
)  # fmt: skip
COLUMNS = (
    *MEASURES, "q_value", "has_changed", "shape_before", "shape_after", "p_shape_before", "p_shape_after",
    "log_bayes_factor", "has_drifted",
)  # fmt: skip


@dataclass(frozen=True)
class Drift:
    """table: one row a job that could be compared, the surest drift first. n_small: jobs with too few runs.

    since_at: the moment; runs submitted at or after it are `after`."""

    table: pd.DataFrame
    since_at: pd.Timestamp | None
    n_small: int


def find_drift(
    runs: pd.DataFrame,
    params: DriftParams,
    *,
    shapes: ShapeSet | None = None,
    medians_s: Mapping[str, float] | None = None,
    empty_bin_prior: float = 0.001,
    since_at: pd.Timestamp | None = None,
) -> Drift:
    """Compare each job's finished runs before and since a moment; the order of the rows changes nothing.

    runs: group_key, submitted_at, runtime_s in seconds; rows without a finite runtime or a submission are left out.
    shapes: those of period D1; medians_s: historic median by job, of runs before the moment where it has none.
    since_at: default params.since_days before the last submission. Columns of the table:
    - group_key; n_before, n_after: runs; stretches_before, stretches_after: stretches of time that these are of;
    - median_before_s, median_after_s, median_factor (after over before); spread_before_s, spread_after_s (25th to
      75th percentile);
    - statistic, p_value, q_value (Benjamini-Hochberg), has_changed;
    - shape_before, shape_after (most probable, -1 without shapes), p_shape_before, p_shape_after (their posteriors),
      log_bayes_factor (natural, two shapes against one); has_drifted: changed, and to another shape.
    The time since the moment is cut into stretches of params.stretch_days, or into params.n_stretches if that gives
    more, and the time before into as long ones: the runs of a job in one of them are one piece of evidence.
    Raises BadInput if a column is missing."""
    since_at, sides, n_small = split_runs(runs, params, since_at=since_at)
    # so many that the smallest p-value is a tenth of what the strictest step of Benjamini-Hochberg asks for
    n_deals = min(params.max_permutations, int(np.ceil(RESOLUTION * len(sides) / params.false_discovery_rate)))
    table = pd.DataFrame([_measures(one, params, n_deals) for one in sides], columns=list(MEASURES))
    table["q_value"] = false_discovery_control(table["p_value"].to_numpy()) if len(table) else np.zeros(0)
    table["has_changed"] = table["q_value"] <= params.false_discovery_rate
    table = pd.concat([table, _shapes(sides, shapes, medians_s or {}, empty_bin_prior)], axis=1)
    is_other = table["shape_before"] != table["shape_after"]
    is_sure = table["log_bayes_factor"] >= np.log(params.min_bayes_factor)
    table["has_drifted"] = table["has_changed"] & is_other & is_sure
    order = ["has_drifted", "has_changed", "q_value", "p_value", "log_bayes_factor", "group_key"]
    ascending = [False, False, True, True, False, True]
    table = table.sort_values(order, ascending=ascending, kind="stable", ignore_index=True)
    return Drift(table[list(COLUMNS)], since_at, n_small)


def _measures(sides: Sides, params: DriftParams, n_deals: int) -> tuple[object, ...]:
    """The row of one job, as in MEASURES. Its permutations depend on the seed and its own key only."""
    before, after = sides.before, sides.after
    rng = np.random.default_rng([params.seed, crc32(sides.group_key.encode())])
    found = permutation_test(sides.runtime_s, sides.stretch, sides.is_after, params.test, rng, max_permutations=n_deals)
    quartiles = [np.quantile(part, [0.25, 0.5, 0.75]) for part in (before, after)]
    (low, median_before, high), (low_after, median_after, high_after) = quartiles
    factor = median_after / median_before if median_before > 0 else np.nan
    spreads = (high - low, high_after - low_after)
    return (
        sides.group_key,
        len(before),
        len(after),
        *sides.n_stretches,
        median_before,
        median_after,
        factor,
        *spreads,
        *found,
    )


def _shapes(
    sides: list[Sides], shapes: ShapeSet | None, medians_s: Mapping[str, float], empty_bin_prior: float
) -> pd.DataFrame:
    """The shape of each job before and since, and the Bayes factor: one row a job."""
    n = len(sides)
    table = pd.DataFrame(
        {"shape_before": np.full(n, -1), "shape_after": -1, "p_shape_before": np.nan, "p_shape_after": np.nan,
         "log_bayes_factor": np.nan}
    )  # fmt: skip
    if shapes is None or not n:
        return table
    medians = [_median_of(one, medians_s) for one in sides]
    counts = [_counts([getattr(one, side) for one in sides], medians, shapes) for side in ("before", "after")]
    is_known = (counts[0].sum(axis=1) > 0) & (counts[1].sum(axis=1) > 0)
    for side, found in zip(("before", "after"), counts, strict=True):
        posterior = np.exp(log_posterior(found, shapes.centres, empty_bin_prior=empty_bin_prior))
        table[f"shape_{side}"] = np.where(is_known, posterior.argmax(axis=1), -1)
        table[f"p_shape_{side}"] = np.where(is_known, posterior.max(axis=1), np.nan)
    factors = log_bayes_factors(counts[0], counts[1], shapes, empty_bin_prior=empty_bin_prior)
    table["log_bayes_factor"] = np.where(is_known, factors, np.nan)
    return table


def _median_of(sides: Sides, medians_s: Mapping[str, float]) -> float:
    found = medians_s.get(sides.group_key, np.nan)
    return float(found) if np.isfinite(found) and found >= 0 else float(np.median(sides.before))


def _counts(times: list[Floats], medians: list[float], shapes: ShapeSet) -> Counts:
    """Runs in each bin of the shapes: (n_groups, n_bins). A job whose median is 0 has no ratios, so none."""
    groups = np.repeat(np.arange(len(times)), [len(found) for found in times])
    values = normalise(np.concatenate(times), np.repeat(medians, [len(f) for f in times]), shapes.bins.kind)
    return histogram(values, groups, len(times), shapes.bins)
