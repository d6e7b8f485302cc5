"""What a predictor must beat: the runs of the job, and of its user with the same request; boosted quantiles; one shape
for all jobs; and a random-forest regression."""

import numpy as np
import pandas as pd

from tasks.boosters import matrix, train_booster
from tasks.jobs.distribution import Floats
from tasks.jobs.empirical import Empirical, gather_history
from tasks.jobs.predict.features_earlier import EarlierRuns
from tasks.jobs.predict.filling import learn_filling
from tasks.jobs.predict.peers import Histories
from tasks.jobs.predict.pool import LEVELS, order_quantiles

STAND_INS = 200  # quantiles that stand for the shape of all runs
BOOSTED = np.arange(1, 20) / 20  # levels of the gradient-boosted quantiles


def history_prediction(known: Histories, peers: str, stand_in: Floats) -> Floats:
    """For each row the (n + 1) rule over the last runs of its peers that had ended before it was submitted.

    So the baseline knows as much as the model does, up to the same moment. stand_in: (n, n_levels) quantiles in logs
    of seconds for rows without such runs; so is what is returned."""
    found = order_quantiles(known.log_s[peers])
    return np.where(np.isfinite(found), found, stand_in)


def lightgbm_prediction(
    features: pd.DataFrame, log_s: Floats, asked: pd.DataFrame, *, n_trees: int, seed: int
) -> Floats:
    """Gradient-boosted quantiles of log runtime at LEVELS, as an expert writes them in an hour: (n, n_levels).

    features, log_s: training rows, (n_training,) log seconds; asked: (n, p). One booster for each of 19 levels, sorted
    (Chernozhukov et al. 2010) and interpolated; the ends go on as the last two levels do."""
    settings = {"objective": "quantile", "num_leaves": 31, "learning_rate": 0.06, "min_data_in_leaf": 20}
    shares = {"feature_fraction": 0.7, "bagging_fraction": 0.7, "bagging_freq": 1, "lambda_l2": 1.0}
    told = np.column_stack(
        [
            train_booster(features, log_s, settings | shares | {"alpha": level}, n_trees, seed).predict(
                matrix(asked), num_threads=1
            )
            for level in BOOSTED
        ]
    )
    told = np.sort(told, axis=1)
    place = np.clip(np.searchsorted(BOOSTED, LEVELS), 1, len(BOOSTED) - 1)
    share = (LEVELS - BOOSTED[place - 1]) / (BOOSTED[place] - BOOSTED[place - 1])
    return np.sort(told[:, place - 1] + share * (told[:, place] - told[:, place - 1]), axis=1)


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
