"""What a predictor must beat besides boosted quantiles: the runs of the job, and of its user with the same request; one
shape for all jobs; and a random-forest regression."""

import numpy as np
import pandas as pd

from tasks.jobs.distribution import Floats
from tasks.jobs.empirical import Empirical, gather_history
from tasks.jobs.predict.features_earlier import EarlierRuns
from tasks.jobs.predict.filling import learn_filling
from tasks.jobs.predict.peers import Histories
from tasks.jobs.predict.pool import order_quantiles

STAND_INS = 200  # quantiles that stand for the shape of all runs


def history_prediction(known: Histories, peers: str, stand_in: Floats) -> Floats:
    """For each row the (n + 1) rule over the last runs of its peers that had ended before it was submitted.

    So the baseline knows as much as the model does, up to the same moment. stand_in: (n, n_levels) quantiles in logs
    of seconds for rows without such runs; so is what is returned."""
    found = order_quantiles(known.log_s[peers])
    return np.where(np.isfinite(found), found, stand_in)


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
