"""What a classifier learns: the most probable shape of each job in a period, for each of its runs."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.normalisation import (
    SOURCES,
    normalise,
)
from tasks.jobs.pmf import Counts, Floats, histogram
from tasks.jobs.posterior import hard_labels, log_posterior, prior_weights
from tasks.jobs.predict.classifier_params import LabelParams
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import (
    NO_LABEL,
    Labels,
    ShapeSet,
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


def label_groups(runs: pd.DataFrame, shapes: ShapeSet, params: LabelParams, posterior: PosteriorParams) -> pd.DataFrame:
    """The shape of each job from its runs of one period, by group_key in sorted order.

    runs: as count_runs takes them, of the period; median_source if known. Columns: n_runs (that were counted), label
    (-1 below params.min_support), median_source (of most of its runs; missing where it is not given) and
    posterior_0 … posterior_<k-1>, which sum to 1. Source: Zhu et al. 2023, section 5.2, equations 7 and 8."""
    keys, counts = count_runs(runs, shapes)
    log_p = log_posteriors(counts, shapes, posterior)
    n_runs = counts.sum(axis=1)
    labels = np.where(n_runs >= params.min_support, hard_labels(log_p), NO_LABEL)
    table = pd.DataFrame({"n_runs": n_runs, "label": labels}, index=keys.rename("group_key"))
    table["median_source"] = _main_source(runs, keys)
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


def posterior_of(by_group: pd.DataFrame) -> Floats:
    """The posterior columns of label_groups as they stand: (n_groups, k)."""
    return by_group.filter(regex=f"^{POSTERIOR}\\d+$").to_numpy(dtype=float)


def posterior_instances(keys: pd.Series, by_group: pd.DataFrame) -> Floats:
    """The posterior of the job of each run, (n, k); missing for a job that by_group does not know."""
    found = posterior_of(by_group)
    rows = by_group.index.get_indexer(pd.Index(keys))
    return np.where(rows[:, None] >= 0, found[rows] if len(found) else np.nan, np.nan)


def labels_by_part(
    runs: pd.DataFrame,
    is_later: NDArray[np.bool_],
    shapes: ShapeSet,
    params: LabelParams,
    posterior: PosteriorParams,
) -> Labels:
    """Labels for a rehearsal of the test: those of earlier rows from earlier runs only, of later from later: (n,).

    With one label for both parts a model would be scored on what it was told. is_later: (n,)."""
    labels = np.full(len(runs), NO_LABEL, dtype=np.intp)
    for is_part in (is_later, ~is_later):
        if is_part.any():
            part = runs[is_part]
            labels[is_part] = label_instances(part["group_key"], label_groups(part, shapes, params, posterior))
    return labels


def _main_source(runs: pd.DataFrame, keys: pd.Index) -> pd.Categorical:
    """The median source that most runs of a job have; of equally many the earlier in SOURCES."""
    categories: pd.Index = pd.Index(list[object](SOURCES))
    if "median_source" not in runs or runs.empty:
        return pd.Categorical.from_codes(np.full(len(keys), -1), categories=categories)
    codes = categories.get_indexer(pd.Index(runs["median_source"].astype(object)))
    rows = keys.get_indexer(pd.Index(runs["group_key"]))
    is_known = codes >= 0
    cells = rows[is_known] * len(SOURCES) + codes[is_known]
    counts = np.bincount(cells, minlength=len(keys) * len(SOURCES)).reshape(len(keys), len(SOURCES))
    main = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
    return pd.Categorical.from_codes(main, categories=categories)
