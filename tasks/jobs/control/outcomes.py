"""What is predicted to follow from a change: the measures of Table 2 and cost, and moves between shapes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.control.edits import (
    apply,
    changed_columns,
)
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.scenarios import Scenario
from tasks.jobs.control.support import (
    Leaves,
    Support,
    find_companions,
    support_of,
)
from tasks.jobs.distribution import Predicted
from tasks.jobs.pmf import Counts, Floats
from tasks.jobs.predict.predicting import pooled
from tasks.jobs.scores import bootstrap_difference
from tasks.jobs.shape_params import Kind
from tasks.quantities import digits

LEVELS = (0.25, 0.5, 0.75, 0.95)
SECONDS_PER_HOUR = 3600
N_ATOMS = 100  # values that stand for a distribution in its mean and standard deviation
OUTLIER_RATIO, OUTLIER_DELTA_S = 10.0, 900.0  # against the historic median. Source: footnote 3
MEASURES: dict[str, str] = {  # name -> words, in the order of every table
    "outlier_share": "probability of an outlier, over the ratio to the historic median",
    "outlier_share_delta": "probability of an outlier, by seconds from the historic median",
    "gap_s": "25th-75th gap, in seconds",
    "gap_ratio": "25th-75th gap, over the historic median",
    "p95_s": "95th percentile, in seconds",
    "p95_ratio": "95th percentile, over the historic median",
    "sd_s": "standard deviation, in seconds",
    "sd_ratio": "standard deviation, over the historic median",
    "median_s": "median runtime, in seconds",
    "mean_s": "mean runtime, in seconds",
    "token_s": "token-seconds, tokens times the mean runtime",
    "money": "price of a run, at the price of a token-hour",
}


def measure(predicted: Predicted, medians_s: Any, tokens: Any, params: WhatIfParams) -> pd.DataFrame:
    """One row an instance, the columns of MEASURES. medians_s: (n,) historic medians in seconds, the same before and
    after a change; tokens: (n,), such as tokens_of(frame).

    NaN where it needs a median that is unknown or 0, or unknown tokens. Mean and standard deviation are over
    N_ATOMS values (Predicted.atoms); the far tail beyond the last of them is not in the deviation.
    Raises ValueError for arrays of another length."""
    n = predicted.n
    median = _column("medians_s", medians_s, n)
    held = _column("tokens", tokens, n)
    median = np.where(np.isfinite(median) & (median > 0), median, np.nan)
    p25, p50, p75, p95 = predicted.quantile(np.broadcast_to(LEVELS, (n, len(LEVELS)))).T
    mean, sd = moments(*predicted.atoms(N_ATOMS))
    token_s = held * mean
    found = {
        "outlier_share": _over(predicted, median * OUTLIER_RATIO),
        "outlier_share_delta": _beyond(predicted, median, OUTLIER_DELTA_S),
        **{"gap_s": p75 - p25, "gap_ratio": (p75 - p25) / median},
        **{"p95_s": p95, "p95_ratio": p95 / median, "sd_s": sd, "sd_ratio": sd / median},
        **{"median_s": p50, "mean_s": mean, "token_s": token_s},
        "money": token_s / SECONDS_PER_HOUR * params.price_per_token_hour,
    }
    return pd.DataFrame(found, columns=list(MEASURES))


def price_words(params: WhatIfParams) -> str:
    """What money is in, and of which day the price is."""
    price = f"{params.price_per_token_hour:g} {params.currency}"
    return f"{params.currency}, at {price} a token-hour of {params.price_date}"


def tokens_of(frame: pd.DataFrame, params: WhatIfParams) -> Floats:
    """Tokens that a run is charged for, (n,), by a frame of features; NaN where the log says nothing of tokens.

    used: the mean in use over earlier runs, times what this run requests over what they did; the request where
    there was no earlier run. requested: the request, of spare tokens nothing."""
    unknown = pd.Series(np.nan, index=frame.index)
    requested = frame.get("requested_tokens", unknown)
    if params.charged == "requested" or "mean_tokens_mean" not in frame:
        return np.asarray(requested, dtype=np.float64)
    ratio = frame.get("tokens_ratio", unknown).fillna(1.0)
    return np.asarray((frame["mean_tokens_mean"] * ratio).fillna(requested), dtype=np.float64)


def changes(before: pd.DataFrame, after: pd.DataFrame, groups: Any, rng: np.random.Generator) -> pd.DataFrame:
    """Mean of each measure before and after, and the change with its paired interval over groups.

    before, after: `measure` of the same instances; groups: (n,). Index: MEASURES; columns before, after, change, low,
    high, relative (change over before), share_below (of the resamples: below 0), n_runs, n_groups, n_left_out, reason
    (why there is no figure or no interval). The interval is of the mean prediction over jobs like these: it holds
    nothing of the model's own error. Source: Efron & Tibshirani 1993, 13.3."""
    rows = []
    for name in MEASURES:
        old, new = before[name].to_numpy(), after[name].to_numpy()
        found = bootstrap_difference(new, old, groups, rng)
        both = np.isfinite(old) & np.isfinite(new)
        was = float(old[both].mean()) if both.any() else None
        rows.append(
            {
                "before": was,
                "after": float(new[both].mean()) if both.any() else None,
                **{"change": found.value, "low": found.low, "high": found.high},
                "relative": found.value / was if found.value is not None and was else None,
                **{"share_below": found.share_below, "n_runs": found.n_runs, "n_groups": found.n_groups},
                **{"n_left_out": found.n_left_out, "reason": found.reason},
            }
        )
    return pd.DataFrame(rows, index=pd.Index(list(MEASURES), name="measure"))


def changes_by_group(before: pd.DataFrame, after: pd.DataFrame, groups: Any) -> pd.DataFrame:
    """Mean change of each measure in each group, and n_runs: one row a group; which jobs a change helps most."""
    keys = np.asarray(groups)
    found = (after - before).groupby(keys).mean()
    return found.assign(n_runs=pd.Series(keys).groupby(keys).size()).rename_axis("group_key")


def moments(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each row: (n,) each; values, weights: (n, m), weights sum to 1 in each row."""
    mean = (values * weights).sum(axis=1)
    return mean, np.sqrt((weights * (values - mean[:, None]) ** 2).sum(axis=1))


def _over(predicted: Predicted, limit_s: Floats) -> Floats:
    """P(runtime >= limit), NaN where the limit is."""
    asked = np.where(np.isnan(limit_s), 0.0, limit_s)
    return np.where(np.isnan(limit_s), np.nan, 1 - predicted.cdf_below(asked))


def _beyond(predicted: Predicted, median_s: Floats, delta_s: float) -> Floats:
    """P(|runtime - median| >= delta): the two outer bins of Delta-normalisation."""
    known = np.where(np.isnan(median_s), 0.0, median_s)
    share = 1 - predicted.cdf_below(known + delta_s) + predicted.cdf(known - delta_s)
    return np.where(np.isnan(median_s), np.nan, np.clip(share, 0.0, 1.0))


def _column(name: str, values: Any, n: int) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (n,):
        raise ValueError(f"{name}: shape {found.shape}; expected ({n},), one for each instance")
    return found


Labels = NDArray[np.int64]
TOLD = {"outlier_percent": "outliers", "p25_p75": "25th-75th gap", "p95": "95th percentile", "std": "deviation"}
PERCENT = ("outlier_percent",)


@dataclass(frozen=True)
class Migration:
    """counts: (k, k), rows the shape before, columns the shape after; n_unlabelled: without a shape in either."""

    counts: Counts
    n_unlabelled: int

    @property
    def n(self) -> int:
        """Runs, or jobs, with a shape before and after."""
        return int(self.counts.sum())

    @property
    def shares(self) -> Floats:
        """Of those that were in the shape of the row: (k, k); rows sum to 1, a shape that had none is all NaN."""
        sums = self.counts.sum(axis=1, keepdims=True)
        return np.where(sums > 0, self.counts / np.maximum(sums, 1), np.nan)

    @property
    def share_moved(self) -> float | None:
        """Share in another shape than before; None without any."""
        return 1 - float(np.trace(self.counts)) / self.n if self.n else None


def migrate(before: Any, after: Any, k: int) -> Migration:
    """The migration between two labels of the same runs or jobs; (n,) shapes 0 ... k - 1, -1 for none.

    Raises ValueError for shapes that differ and labels of k or more."""
    old, new = np.asarray(before, dtype=np.int64), np.asarray(after, dtype=np.int64)
    if old.ndim != 1 or old.shape != new.shape:
        raise ValueError(f"labels: shapes {old.shape}, {new.shape}; expected (n,) for both")
    if max(old.max(initial=-1), new.max(initial=-1)) >= k:
        raise ValueError(f"labels: up to {max(old.max(), new.max())}; expected 0 to {k - 1}")
    is_there = (old >= 0) & (new >= 0)
    counts = np.bincount(old[is_there] * k + new[is_there], minlength=k * k).reshape(k, k)
    return Migration(counts.astype(np.int64), int((~is_there).sum()))


def group_labels(probabilities: Floats, groups: Any) -> pd.Series:
    """The shape of each group: the one most probable over its runs, all counted alike; a tie goes to the lower number.

    probabilities: (n, k), rows sum to 1; groups: (n,). Indexed by group, in order of its keys."""
    summed = pd.DataFrame(probabilities).groupby(np.asarray(groups)).sum()
    labels = summed.to_numpy().argmax(axis=1)
    return pd.Series(labels, index=summed.index.rename("group_key"), name="shape", dtype=np.int64)


def moves(migration: Migration, shapes: pd.DataFrame) -> pd.DataFrame:
    """The moves to another shape, the most frequent first: one row for each that any run or job makes.

    shapes: one row a shape with columns of Table 2 (outlier_percent, p25_p75, p95, std; more are ignored).
    Columns: before, after, n, share (of all), share_of_shape (of those that were in it), and of each column of Table 2
    its value in the shape before and after (p25_p75_before, p25_p75_after, …)."""
    counts = migration.counts * (1 - np.eye(len(migration.counts), dtype=np.int64))
    before, after = np.nonzero(counts)
    n = counts[before, after]
    order = np.lexsort((after, before, -n))
    before, after, n = before[order], after[order], n[order]
    found = {"before": before, "after": after, "n": n, "share": n / max(migration.n, 1)}
    table = pd.DataFrame({**found, "share_of_shape": migration.shares[before, after]})
    for name in [name for name in TOLD if name in shapes]:
        values = shapes[name].to_numpy(dtype=float)
        table[f"{name}_before"], table[f"{name}_after"] = values[before], values[after]
    return table


def describe_moves(table: pd.DataFrame, *, unit: str = "", what: str = "runs", most: int = 3) -> list[str]:
    """The most frequent moves in sentences, as 7.1 to 7.3 of the paper. table: of `moves`; unit: s for Delta."""
    if table.empty:
        return [f"No {what} change their shape."]
    return [_sentence(row, unit, what) for _, row in table.head(most).iterrows()]


def _sentence(row: pd.Series, unit: str, what: str) -> str:
    parts = []
    for name, words in TOLD.items():
        old, new = row.get(f"{name}_before"), row.get(f"{name}_after")
        if old is not None and new is not None and np.isfinite([old, new]).all():
            of = " %" if name in PERCENT else f" {unit}".rstrip()
            parts.append(f"{words} from {digits(old)} to {digits(new)}{of}")
    told = f": {', '.join(parts)}" if parts else ""
    return (
        f"{100 * row['share_of_shape']:.1f} % of the {what} of shape {int(row['before'])} are now in shape "
        f"{int(row['after'])} ({int(row['n'])}, {100 * row['share']:.1f} % of all){told}."
    )


Predict = Callable[[pd.DataFrame], Predicted]
Classify = Callable[[pd.DataFrame], Floats]


@dataclass(frozen=True)
class ShapeModel:
    """classify: (n, p) features -> (n, k) probabilities of the shapes; table: Table 2, one row a shape."""

    classify: Classify
    table: pd.DataFrame


@dataclass(frozen=True)
class ShapeMoves:
    """Moves of runs, by their most probable shape, and of jobs, by that of all their runs; run_moves: of `moves`."""

    runs: Migration
    groups: Migration
    run_moves: pd.DataFrame


@dataclass(frozen=True)
class Outcome:
    """before, after: `measure` of each instance, of the jobs `groups`; changes: their means with intervals; moves: by
    normalisation.

    features: the names that were changed; support: which of the changed rows the training data do not reach;
    companions: of `find_companions`; both None without training data."""

    scenario: Scenario
    features: list[str]
    before: pd.DataFrame
    after: pd.DataFrame
    changes: pd.DataFrame
    groups: NDArray[Any]
    moves: dict[Kind, ShapeMoves]
    support: Support | None
    companions: pd.DataFrame | None


def assess(
    scenario: Scenario,
    frame: pd.DataFrame,
    predict: Predict,
    groups: Any,
    medians_s: Any,
    params: WhatIfParams,
    rng: np.random.Generator,
    *,
    models: Mapping[Kind, ShapeModel] | None = None,
    training: pd.DataFrame | None = None,
    leaves: Leaves | None = None,
    is_one: bool = False,
) -> Outcome:
    """What `predict` says of the frame with the change made, beside what it says of it as it is.

    frame: (n, p) features in order of submission; groups, medians_s: (n,); training: the features that the model was
    trained on, without which nothing is said of support; leaves: of its trees; is_one: the rows are conditions of one
    run, whose distribution is their mean. Raises BadInput as `apply` does."""
    edited = apply(scenario, frame)
    jobs = np.asarray(groups)[: 1 if is_one else None]

    def measured(rows: pd.DataFrame) -> pd.DataFrame:
        predicted, medians, tokens = predict(rows), np.asarray(medians_s), tokens_of(rows, params)
        if is_one:
            predicted, medians = pooled(predicted, np.zeros(len(rows), dtype=np.int64)), medians[:1]
            tokens = tokens.mean(keepdims=True)
        return measure(predicted, medians, tokens, params)

    before, after = measured(frame), measured(edited)
    support = None if training is None else support_of(frame, edited, training, rng, leaves=leaves)
    companions = None if training is None else find_companions(frame, edited, training)
    return Outcome(
        scenario,
        changed_columns(frame, edited),
        before,
        after,
        changes(before, after, jobs, rng),
        jobs,
        {kind: _moves(model, frame, edited, groups) for kind, model in (models or {}).items()},
        support,
        companions,
    )


def _moves(model: ShapeModel, frame: pd.DataFrame, edited: pd.DataFrame, groups: Any) -> ShapeMoves:
    old, new = model.classify(frame), model.classify(edited)
    k = old.shape[1]
    runs = migrate(old.argmax(axis=1), new.argmax(axis=1), k)
    jobs = migrate(group_labels(old, groups), group_labels(new, groups), k)
    return ShapeMoves(runs, jobs, moves(runs, model.table))
