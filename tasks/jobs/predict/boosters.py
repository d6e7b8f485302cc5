"""LightGBM models of one number: trained deterministically, kept as text."""

import math
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats

ONE_THREAD = {"num_threads": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1}


def train_booster(features: pd.DataFrame, target: Floats, params: dict[str, Any], n_rounds: int, seed: int) -> Any:
    """A lightgbm.Booster; features: (n, p), NaN is a value of its own; target: (n,). One thread, seeded.

    Raises BadInput without a row."""
    import lightgbm

    if not len(features):
        raise BadInput("training rows", "none", "at least one run that has ended", "give more of the log")
    # a tree sees a whole number of rows and at least one: of a handful each counts several times
    times = math.ceil(1 / (params.get("bagging_fraction", 1.0) * len(features)))
    x, y = np.repeat(matrix(features), times, axis=0), np.repeat(np.asarray(target, dtype=float), times)
    data = lightgbm.Dataset(x, y, free_raw_data=True)
    return lightgbm.train({**ONE_THREAD, **params, "seed": seed}, data, n_rounds)


def matrix(features: pd.DataFrame) -> Floats:
    """The features as LightGBM takes them, without names: some of ours it refuses."""
    return np.ascontiguousarray(features.to_numpy(dtype=float))


def booster_from(text: str, n_features: int) -> Any:
    """A booster out of its text. Raises BadInput if it is none, or has other features."""
    from lightgbm import Booster
    from lightgbm.basic import LightGBMError

    try:
        booster = Booster(model_str=text)
    except (LightGBMError, ValueError) as error:
        problem = f"no LightGBM model ({' '.join(str(error).split())[:120]})"
        raise BadInput("model", problem, "the text that whorl wrote", "train the model again") from error
    if booster.num_feature() != n_features:
        problem = f"trees of {booster.num_feature()} features beside the names of {n_features}"
        raise BadInput("model", problem, "files of the same model", "train the model again")
    return booster
