"""What tells two shapes apart, for one run and over many, and the points of a beeswarm plot of one shape."""

from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions

CLIP = (0.05, 0.95)  # quantiles of a feature at the ends of the colours
MOST_RUNS = 1000
MOST_FEATURES = 15


def push(parts: Contributions, a: int, b: int) -> Floats:
    """What each feature adds to log(P(b) / P(a)) of each run, (n, p): above 0 it pushes from shape a to shape b.

    Exactly additive, since both raw scores are. Raises ValueError if a and b are the same, not of the k shapes, or if
    the model knows only one of them."""
    k = parts.k
    if a == b or not (0 <= a < k and 0 <= b < k):
        raise ValueError(f"shapes {a} and {b}: expected two different ones from 0 to {k - 1}")
    if not parts.knows[[a, b]].all():
        raise ValueError(f"shapes {a} and {b}: the model was not trained on both; expected shapes that it knows")
    return parts.to_score(b) - parts.to_score(a)


def explain_push(parts: Contributions, row: int, frame: pd.DataFrame, a: int, b: int) -> pd.DataFrame:
    """Features that push one run from shape a to shape b, strongest first: feature, value, push (log-odds of b
    against a), odds (e^push). One row a feature; the pushes add up to the run's log-odds less those of the base."""
    of_run = push(parts.rows(np.array([row])), a, b)[0]
    values = frame[list(parts.features)].iloc[row].to_numpy(dtype=np.float64)
    table = pd.DataFrame({"feature": parts.features, "value": values, "push": of_run, "odds": np.exp(of_run)})
    return table.sort_values("push", key=np.abs, ascending=False, kind="stable", ignore_index=True)


def compare_shapes(parts: Contributions, frame: pd.DataFrame, labels: Any, a: int, b: int) -> pd.DataFrame:
    """Table of features, those that tell shapes a and b apart best first: one row a feature.

    frame: (n, p); labels: (n,), the shape of each run. Columns: push_in_a, push_in_b: mean push from a to b over the
    runs of each shape; difference: push_in_b - push_in_a, by whose size rows are ordered; median_in_a, median_in_b:
    of the feature. n_a, n_b: runs. NaN where a shape has no run. Source: Zhu et al. 2023, 6.1 (clusters 0 and 2)."""
    pushes, found = push(parts, a, b), np.asarray(labels)
    columns = frame[list(parts.features)].reset_index(drop=True)
    table = pd.DataFrame({"feature": parts.features})
    for name, shape in (("a", a), ("b", b)):
        mine = found == shape
        table[f"push_in_{name}"] = pushes[mine].mean(axis=0) if mine.any() else np.nan
        table[f"median_in_{name}"] = columns[mine].median().to_numpy()
        table[f"n_{name}"] = int(mine.sum())
    table["difference"] = table["push_in_b"] - table["push_in_a"]
    ordered = table.sort_values("difference", key=np.abs, ascending=False, kind="stable", ignore_index=True)
    first = ["feature", "push_in_a", "push_in_b", "difference", "median_in_a", "median_in_b", "n_a", "n_b"]
    return ordered[first]


def beeswarm_points(
    parts: Contributions,
    frame: pd.DataFrame,
    shape: int,
    rng: np.random.Generator,
    *,
    most_features: int = MOST_FEATURES,
    most_runs: int = MOST_RUNS,
) -> pd.DataFrame:
    """Points of a beeswarm plot of one shape: feature, rank (0 the most important), run, contribution, value, scaled.

    Features by mean absolute contribution over all runs; at most `most_runs` of them, drawn without replacement, are
    shown, the same in each feature. run: row of `parts`. contribution: to the raw score of the shape. scaled: value
    from 0 (at the 5th percentile of all runs or below) to 1 (at the 95th or above), 0.5 if these are equal, NaN for
    an unknown value. Raises ValueError for a shape that the model does not know."""
    if not (0 <= shape < parts.k and parts.knows[shape]):
        raise ValueError(f"shape {shape}: the model was not trained on it; expected one that it knows")
    of_shape = parts.to_score(shape)  # (n, p)
    n = len(of_shape)
    shown = np.sort(rng.choice(n, size=most_runs, replace=False)) if n > most_runs else np.arange(n)
    importance = np.abs(of_shape).mean(axis=0) if n else np.zeros(len(parts.features))
    points = []
    for rank, place in enumerate(np.argsort(-importance, kind="stable")[:most_features]):
        values = frame[parts.features[place]].to_numpy(dtype=np.float64)
        points.append(
            pd.DataFrame(
                {
                    "feature": parts.features[place],
                    "rank": rank,
                    "run": shown,
                    "contribution": of_shape[shown, place],
                    "value": values[shown],
                    "scaled": _scaled(values)[shown],
                }
            )
        )
    return pd.concat(points, ignore_index=True)


def _scaled(values: Floats) -> Floats:
    known = values[~np.isnan(values)]
    if not len(known):
        return np.full(len(values), np.nan)
    low, high = np.quantile(known, CLIP)
    if low == high:
        low, high = known.min(), known.max()  # a rare value, such as an operator of few plans
    if low == high:
        return np.where(np.isnan(values), np.nan, 0.5)
    scaled: Floats = np.clip((values - low) / (high - low), 0.0, 1.0)
    return scaled
