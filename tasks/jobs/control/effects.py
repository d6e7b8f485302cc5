"""What is predicted to follow from a change: measures of Table 2 and cost, moves between shapes, and its support.

Outside the training data an answer is a guess of the nearest training rows."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.control.scenarios import Scenario, apply, changed_columns
from tasks.jobs.distribution import Empirical
from tasks.jobs.normalisation import Counts, Floats
from tasks.jobs.params import MEASURES, Kind, WhatIfParams
from tasks.jobs.predict.predicting import pooled
from tasks.jobs.scores import bootstrap_difference
from tasks.quantities import digits

LEVELS = (0.25, 0.5, 0.75, 0.95)
SECONDS_PER_HOUR = 3600
N_ATOMS = 100  # values that stand for a distribution in its mean and standard deviation
OUTLIER_RATIO, OUTLIER_DELTA_S = 10.0, 900.0  # against the historic median. Source: footnote 3
UNITS: dict[Kind, str] = {"ratio": "", "delta": " s"}
OF_SHAPE = {"outlier_percent": "outliers", "p25_p75": "25th-75th gap", "p95": "95th percentile"}
MOST_MOVES = 3
MAX_ROWS = 2000  # rows that a change is tried on, and training rows that they are compared with
MAX_UNLIKE_SHARE = 0.01  # of the unchanged rows would count as unlike all that the model was trained on
BLOCK = 64  # rows compared with all training rows at once
MOST_TREES = 100  # evenly spaced over all, of which a boosted model of many classes has thousands
Leaves = Callable[[pd.DataFrame], NDArray[Any]]  # (n, p) features -> (n, n_trees) number of the leaf of each tree


@dataclass(frozen=True)
class ShapeModel:
    """classify: (n, p) features -> (n, k) probabilities of the shapes; table: OF_SHAPE, one row a shape."""

    classify: Callable[[pd.DataFrame], Floats]
    table: pd.DataFrame


@dataclass(frozen=True)
class ShapeMigration:
    """counts: (k, k) runs or jobs, rows the shape before, columns the shape after."""

    counts: Counts

    @property
    def n(self) -> int:
        """Runs, or jobs."""
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


@dataclass(frozen=True)
class ShapeMoves:
    """Moves of runs, by their most probable shape, and of jobs, by that of all their runs; the first also in words."""

    runs: ShapeMigration
    groups: ShapeMigration
    words: list[str]


@dataclass(frozen=True)
class Support:
    """How many of the n_changed rows that a change touches lie outside the training data; shares are None without any.

    share_outside: with a changed feature outside its training values; share_unlike: in leaves that no training row
    shares; share: either; outside: by feature, the share outside its range."""

    n_changed: int
    share: float | None
    share_outside: float | None
    share_unlike: float | None
    outside: dict[str, float]


@dataclass(frozen=True)
class ChangeOutcome:
    """before, after: `measure` of each instance, of the jobs `groups`; changes: their means with intervals; moves: by
    normalisation; features: the names that were changed."""

    features: list[str]
    before: pd.DataFrame
    after: pd.DataFrame
    changes: pd.DataFrame
    groups: NDArray[Any]
    moves: dict[Kind, ShapeMoves]
    support: Support


def assess(
    scenario: Scenario,
    frame: pd.DataFrame,
    predict: Callable[[pd.DataFrame], Empirical],
    groups: Any,
    medians_s: Floats,
    params: WhatIfParams,
    rng: np.random.Generator,
    *,
    training: pd.DataFrame,
    leaves: Leaves,
    models: Mapping[Kind, ShapeModel],
    is_single_run: bool = False,
) -> ChangeOutcome:
    """What `predict` says of the frame with the change made, beside what it says of it as it is.

    frame: (n, p) features in order of submission; groups, medians_s: (n,); training: the features that the model was
    trained on; leaves: of its trees; is_single_run: the rows are conditions of one run, whose
    distribution is their mean. Raises BadInput as `apply` does."""
    edited, jobs = apply(scenario, frame), np.asarray(groups)[: 1 if is_single_run else None]

    def measured(rows: pd.DataFrame) -> pd.DataFrame:
        predicted, medians, tokens = predict(rows), medians_s, tokens_of(rows)
        if is_single_run:
            predicted, medians = pooled(predicted, np.zeros(len(rows), dtype=np.int64)), medians[:1]
            tokens = tokens.mean(keepdims=True)
        return measure(predicted, medians, tokens, params)

    before, after = measured(frame), measured(edited)
    support = support_of(frame, edited, training, leaves)
    moves = {kind: moves_of(model, frame, edited, groups, UNITS[kind]) for kind, model in models.items()}
    compared = changes(before, after, jobs, rng)
    return ChangeOutcome(changed_columns(frame, edited), before, after, compared, jobs, moves, support)


def measure(predicted: Empirical, medians_s: Floats, tokens: Floats, params: WhatIfParams) -> pd.DataFrame:
    """One row an instance, the columns of MEASURES. medians_s: (n,) historic medians in seconds, the same before and
    after a change; tokens: (n,), such as tokens_of(frame).

    NaN where it needs a median that is unknown or 0, or unknown tokens. Mean and standard deviation are over
    N_ATOMS values (Predicted.atoms); the far tail beyond the last of them is not in the deviation."""
    median = np.where(np.isfinite(medians_s) & (medians_s > 0), medians_s, np.nan)
    p25, p50, p75, p95 = predicted.quantiles(LEVELS).T
    mean, sd = moments(*predicted.atoms(N_ATOMS))
    known, token_s = np.nan_to_num(median), tokens * mean
    over = 1 - predicted.cdf_below(known * OUTLIER_RATIO)
    # the two outer bins of Delta-normalisation: |runtime - median| >= delta
    beyond = 1 - predicted.cdf_below(known + OUTLIER_DELTA_S) + predicted.cdf(known - OUTLIER_DELTA_S)
    measures = {
        "outlier_share": np.where(np.isnan(median), np.nan, over),
        "outlier_share_delta": np.where(np.isnan(median), np.nan, np.clip(beyond, 0.0, 1.0)),
        **{"gap_s": p75 - p25, "gap_ratio": (p75 - p25) / median},
        **{"p95_s": p95, "p95_ratio": p95 / median, "sd_s": sd, "sd_ratio": sd / median},
        **{"median_s": p50, "mean_s": mean, "token_s": token_s},
        "money": token_s / SECONDS_PER_HOUR * params.price_per_token_hour,
    }
    return pd.DataFrame(measures, columns=list(MEASURES))


def tokens_of(frame: pd.DataFrame) -> Floats:
    """Tokens that a run is charged for, (n,), by a frame of features; NaN where the log says nothing of tokens.

    The mean in use over earlier runs, times what this run requests over what they did; the request where there was no
    earlier run."""
    unknown = pd.Series(np.nan, index=frame.index)
    used = frame.get("mean_tokens_mean", unknown) * frame.get("tokens_ratio", unknown).fillna(1.0)
    return np.asarray(used.fillna(frame.get("requested_tokens", unknown)), dtype=np.float64)


def moments(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each row: (n,) each; values, weights: (n, m), weights sum to 1 in each row."""
    mean = (values * weights).sum(axis=1)
    return mean, np.sqrt((weights * (values - mean[:, None]) ** 2).sum(axis=1))


def changes(before: pd.DataFrame, after: pd.DataFrame, groups: Any, rng: np.random.Generator) -> pd.DataFrame:
    """Mean of each measure before and after, and the change with its paired interval over groups, (n,).

    Index: MEASURES; columns before, after, change, low, high, relative (change over before), n_runs, n_groups, reason
    (why there is no figure or no interval). The interval is of the mean prediction over jobs like these. Source: Efron
    & Tibshirani 1993, 13.3."""
    rows = []
    for name in MEASURES:
        old, new = before[name].to_numpy(), after[name].to_numpy()
        difference, both = bootstrap_difference(new, old, groups, rng), np.isfinite(old) & np.isfinite(new)
        was, now = (float(side[both].mean()) if both.any() else None for side in (old, new))
        relative = difference.value / was if difference.value is not None and was else None
        figures = asdict(difference)
        rows.append({"before": was, "after": now, "change": figures.pop("value"), "relative": relative, **figures})
    return pd.DataFrame(rows, index=pd.Index(list(MEASURES), name="measure"))


def changes_by_group(outcome: ChangeOutcome) -> pd.DataFrame:
    """Mean change of each measure in each group: one row a group; which jobs a change helps most."""
    by_group = (outcome.after - outcome.before).groupby(outcome.groups)
    return by_group.mean().assign(n_runs=by_group.size()).rename_axis("group_key")


def moves_of(model: ShapeModel, before: pd.DataFrame, after: pd.DataFrame, groups: Any, unit: str) -> ShapeMoves:
    """From which shape to which runs and jobs move, by their features before and after; groups: (n,)."""
    old, new = model.classify(before), model.classify(after)
    runs = migrate(old.argmax(axis=1), new.argmax(axis=1), old.shape[1])
    was, is_now = (
        pd.DataFrame(probabilities).groupby(np.asarray(groups)).sum().to_numpy().argmax(axis=1)
        for probabilities in (old, new)
    )
    return ShapeMoves(runs, migrate(was, is_now, old.shape[1]), describe_moves(runs, model.table, unit))


def migrate(before: Any, after: Any, k: int) -> ShapeMigration:
    """The migration between two labels of the same runs or jobs; (n,) shapes 0 ... k - 1."""
    counts = np.bincount(np.asarray(before, np.int64) * k + np.asarray(after, np.int64), minlength=k * k)
    return ShapeMigration(counts.reshape(k, k).astype(np.int64))


def describe_moves(migration: ShapeMigration, shapes: pd.DataFrame, unit: str = "") -> list[str]:
    """The most frequent moves of runs to another shape in sentences, as 7.1 to 7.3 of the paper.

    shapes: one row a shape with columns of OF_SHAPE; unit: of those but the percent."""
    counts = migration.counts * (1 - np.eye(len(migration.counts), dtype=np.int64))
    moved = sorted(np.argwhere(counts).tolist(), key=lambda move: -int(counts[tuple(move)]))
    sentences = []
    for old, new in moved[:MOST_MOVES]:
        parts = [
            f"{words} from {digits(shapes[name].iloc[old])} to {digits(shapes[name].iloc[new])}"
            f"{' %' if name == 'outlier_percent' else unit}"
            for name, words in OF_SHAPE.items()
            if name in shapes and np.isfinite(shapes[name].iloc[[old, new]]).all()
        ]
        n, details = counts[old, new], f": {', '.join(parts)}" if parts else ""
        sentences.append(
            f"{100 * migration.shares[old, new]:.1f} % of the runs of shape {old} are now in shape {new} "
            f"({n}, {100 * n / migration.n:.1f} % of all){details}."
        )
    return sentences or ["No runs change their shape."]


def support_of(before: pd.DataFrame, after: pd.DataFrame, training: pd.DataFrame, leaves: Leaves) -> Support:
    """How far the training rows support the changed rows. before, after: the same rows; training: the same features.

    Outside: a changed feature below the least or above the largest of its training values, or unknown where no
    training row is. Unlike: the training row that shares most leaves with the changed row shares fewer than with all
    but MAX_UNLIKE_SHARE of the unchanged rows; that catches values that are common one by one and never met together.
    Source: the proximity of trees' leaves, Breiman 2001."""
    names = changed_columns(before, after)
    old, new, known = (frame[names].to_numpy(dtype=float) for frame in (before, after, training))  # (n, m)
    differs = ~np.isclose(old, new, rtol=0, atol=0, equal_nan=True)
    is_changed = differs.any(axis=1)
    n_changed = int(is_changed.sum())
    if not n_changed:
        return Support(0, None, None, None, {})
    low = np.where(np.isnan(known), np.inf, known).min(axis=0, initial=np.inf)
    high = np.where(np.isnan(known), -np.inf, known).max(axis=0, initial=-np.inf)
    is_odd = (new < low) | (new > high) | (np.isnan(new) & ~np.isnan(known).any(axis=0))
    is_outside = (differs & is_odd)[is_changed]
    seen = leaves(training)
    usual = likeness(leaves(before), seen)
    least = np.quantile(usual, MAX_UNLIKE_SHARE, method="lower")
    is_unlike = likeness(leaves(after.iloc[np.flatnonzero(is_changed)]), seen) < least
    is_out = is_outside.any(axis=1)
    either, out, unlike = (float(flags.mean()) for flags in (is_out | is_unlike, is_out, is_unlike))
    by_feature = dict(zip(names, is_outside.mean(axis=0).tolist(), strict=True))
    return Support(n_changed, either, out, unlike, {name: share for name, share in by_feature.items() if share > 0})


def likeness(leaves: NDArray[Any], training: NDArray[Any]) -> Floats:
    """The largest share of trees in which a row has its leaf in common with one training row: (n,), 1 for a twin.

    leaves: (n, n_trees); training: (n_training, n_trees). Of more than MOST_TREES trees, so many evenly spaced."""
    n_trees = leaves.shape[1]
    trees = np.unique(np.linspace(0, n_trees - 1, min(n_trees, MOST_TREES)).round().astype(int))
    mine, theirs = _small(leaves[:, trees]), np.ascontiguousarray(_small(training[:, trees]).T)
    shares = np.empty(len(mine))
    for first in range(0, len(mine), BLOCK):
        block = mine[first : first + BLOCK]
        alike = np.zeros((len(block), len(training)), dtype=np.uint8)  # at most MOST_TREES
        for tree, leaf in enumerate(theirs):
            alike += block[:, tree, None] == leaf
        shares[first : first + BLOCK] = alike.max(axis=1, initial=0) / len(trees)
    return shares


def _small(leaves: NDArray[Any]) -> NDArray[Any]:
    """In as few bytes as the numbers need: comparing them is all the work."""
    return leaves.astype(np.uint16) if leaves.size and leaves.min() >= 0 and leaves.max() < 2**16 else leaves
