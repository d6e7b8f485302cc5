"""What a predictor must beat: the job's own earlier runs, one shape for all jobs, and a random-forest regression."""

import numpy as np
import pandas as pd

from tasks.jobs.distribution import Floats
from tasks.jobs.empirical import Empirical, gather_history
from tasks.jobs.predict.features_earlier import EarlierRuns
from tasks.jobs.predict.filling import learn_filling
from tasks.jobs.predict.own_runs import own_values

STAND_INS = 200  # quantiles of all runs, for a job without earlier runs


def history_prediction(earlier: EarlierRuns, runtime_s: Floats, all_s: Floats, *, most: int) -> Empirical:
    """For each row the runtimes of the last `most` runs of its job that had ended before it was submitted.

    runtime_s: (n_past,) in the order of earlier.past; all_s: runtimes whose quantiles stand in for a job without
    earlier runs. So the baseline knows as much as the model does, up to the same moment."""
    values, rows = own_values(earlier, runtime_s, most=most)
    unseen = np.flatnonzero(earlier.n == 0)
    quantiles = np.quantile(all_s, (np.arange(STAND_INS) + 0.5) / STAND_INS)
    values = np.concatenate([values, np.tile(quantiles, len(unseen))])
    rows = np.concatenate([rows, np.repeat(unseen, STAND_INS)])
    return Empirical(gather_history(values, rows), np.arange(len(earlier.n)))


def global_prediction(earlier: EarlierRuns, ratios: Floats, medians_s: Floats) -> Empirical:
    """One shape for all jobs: quantiles of all ratios to the median, times the median of each row's job (n,)."""
    quantiles = np.quantile(ratios, (np.arange(STAND_INS) + 0.5) / STAND_INS)
    n = len(earlier.n)
    values = (medians_s[:, None] * quantiles).ravel()
    return Empirical(gather_history(values, np.repeat(np.arange(n), STAND_INS)), np.arange(n))


def forest_prediction(
    features: pd.DataFrame, runtime_s: Floats, asked: pd.DataFrame, *, n_trees: int, min_leaf: int, seed: int
) -> Empirical:
    """A random-forest regression of the runtime in seconds, as Zhu et al. extend Shao et al. 2019: one sure value.

    features, runtime_s: training rows; asked: (n, p). Its pooled runtimes are what Figure 8 compares."""
    from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped, unused-ignore]

    filling = learn_filling(features, indicator_share=1e-9)
    model = RandomForestRegressor(n_trees, min_samples_leaf=min_leaf, max_features=1 / 3, n_jobs=1, random_state=seed)
    # where no feature varies there is one column of nothing: the forest wants a feature
    known, new = (filling.apply(one) if filling.names else np.zeros((len(one), 1)) for one in (features, asked))
    model.fit(known, runtime_s)
    told = np.maximum(np.asarray(model.predict(new), dtype=float), 0.0)
    return Empirical(gather_history(told, np.arange(len(told))), np.arange(len(told)))
