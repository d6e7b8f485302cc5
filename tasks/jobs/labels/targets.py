"""What a classifier learns: the most probable shape of each job in a period; and what is known of it on the way."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.normalisation import Counts, Floats, histogram, normalise
from tasks.jobs.predict.earlier import Ints, earlier_runs
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import (
    NO_LABEL,
    Labels,
    ShapeSet,
    hard_labels,
    log_posterior,
    log_shapes,
    posterior_of,
    prior_weights,
)

POSTERIOR = "posterior_"


def count_runs(runs: pd.DataFrame, shapes: ShapeSet, keys: pd.Index | None = None) -> tuple[pd.Index, Counts]:
    """The runs of each job in each bin of the shapes: keys (n_groups,) and counts (n_groups, n_bins).

    runs: group_key, runtime_s, median_s (seconds); the shapes say if ratios or deltas are counted. Runs without a
    median are left out, but their job has a row. keys: the jobs of the rows, default all of `runs` in sorted order;
    runs of others are left out. Raises BadInput if a column is missing."""
    missing = [name for name in ("group_key", "runtime_s", "median_s") if name not in runs]
    if missing:
        raise BadInput("runs", f"no column {', '.join(missing)}", "a frame with group_key, runtime_s and median_s")
    index = pd.Index(sorted(runs["group_key"].unique()), dtype=object) if keys is None else keys
    values = normalise(runs["runtime_s"], runs["median_s"], shapes.bins.kind)
    return index, histogram(values, index.get_indexer(pd.Index(runs["group_key"])), len(index), shapes.bins)


def label_groups(runs: pd.DataFrame, shapes: ShapeSet, min_support: int, posterior: PosteriorParams) -> pd.DataFrame:
    """The shape of each job from its runs of one period, by group_key in sorted order.

    runs: as count_runs takes them, of the period. Columns: n_runs (that were counted), label (-1 below min_support
    runs) and posterior_0 … posterior_<k-1>, which sum to 1. Source: Zhu et al. 2023, section 5.2, equations 7 and 8."""
    keys, counts = count_runs(runs, shapes)
    log_p, n_runs = log_posteriors(counts, shapes, posterior), counts.sum(axis=1)
    labels = np.where(n_runs >= min_support, hard_labels(log_p), NO_LABEL)
    table = pd.DataFrame({"n_runs": n_runs, "label": labels}, index=keys.rename("group_key"))
    names = [f"{POSTERIOR}{shape}" for shape in range(log_p.shape[1])]
    return pd.concat([table, pd.DataFrame(np.exp(log_p), index=table.index, columns=names)], axis=1)


def log_posteriors(counts: Counts, shapes: ShapeSet, params: PosteriorParams) -> Floats:
    """log_posterior with the prior that the parameters ask for: counts (n_groups, n_bins) to (n_groups, k)."""
    prior = prior_weights(params.prior, shapes.n_groups)
    return log_posterior(counts, shapes.centres, empty_bin_prior=params.empty_bin_prior, prior=prior)


def label_instances(keys: pd.Series, by_group: pd.DataFrame) -> Labels:
    """The label of the job of each run, (n,); -1 where it has none. keys: group keys; by_group: of label_groups."""
    labels = by_group["label"].reindex(keys.to_numpy()).fillna(NO_LABEL)
    return labels.to_numpy().astype(np.intp)


def posteriors_in(by_group: pd.DataFrame) -> Floats:
    """The posterior columns of label_groups as they stand: (n_groups, k)."""
    return by_group.filter(regex=f"^{POSTERIOR}\\d+$").to_numpy(dtype=float)


def posterior_instances(keys: pd.Series, by_group: pd.DataFrame) -> Floats:
    """The posterior of the job of each run, (n, k); missing for a job that by_group does not know."""
    found = posteriors_in(by_group)
    rows = by_group.index.get_indexer(pd.Index(keys))
    return np.where(rows[:, None] >= 0, found[rows] if len(found) else np.nan, np.nan)


@dataclass(frozen=True)
class SoFar:
    """Of each run: n_known, (n,), runs of its job in its period that had ended strictly before its submission, and
    probabilities, (n, k), of the shapes given those; the prior where there are none."""

    n_known: Ints
    probabilities: Floats


def known_so_far(runs: pd.DataFrame, shapes: ShapeSet, params: PosteriorParams) -> SoFar:
    """What is known of a period while it goes on: the label of a run is of all runs of its job in its period, and some
    of them have ended when the run is submitted. They are no forecast, so each figure says whether it knows them.

    runs: group_key, submitted_at, ended_at, runtime_s, median_s (seconds) and part. Counted as label_groups counts
    them, so that after the last run of a period hardly anything of its label is open. Source: equations 7 and 8."""
    earlier = earlier_runs(runs, runs)
    bins = shapes.bins.index(normalise(earlier.values("runtime_s"), earlier.values("median_s"), shapes.bins.kind))
    log_theta = log_shapes(shapes.centres, empty_bin_prior=params.empty_bin_prior)
    says = np.where((bins >= 0)[:, None], np.column_stack([log_theta.T[bins], np.ones(len(bins))]), 0.0)
    part = pd.Categorical(runs["part"]).codes
    sums = np.zeros((len(runs), says.shape[1]))
    for one in np.unique(part):
        in_part = part == one
        sums[in_part] = earlier.sums(says * in_part[earlier.order][:, None])[in_part]
    with np.errstate(divide="ignore"):  # a shape without groups, where they set the prior
        log_p = posterior_of(sums[:, :-1], prior_weights(params.prior, shapes.n_groups))
    return SoFar(np.rint(sums[:, -1]).astype(np.int64), np.exp(log_p))
