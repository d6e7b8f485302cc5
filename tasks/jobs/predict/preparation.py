"""A log made ready to learn from: its periods D1, D2 and D3, historic medians, shapes of the history, features."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.normalisation import (
    historic_medians,
    normalise,
)
from tasks.jobs.pmf import Bins, bins_of, histogram, pmfs_of, smooth
from tasks.jobs.predict.feature_words import is_of_peers
from tasks.jobs.predict.features import History, make_features
from tasks.jobs.shape_params import (
    CharacteriseParams,
    Kind,
    ShapeParams,
    SplitParams,
)
from tasks.jobs.shapes import (
    ShapeSet,
    fit_shapes,
    rank_by_runs,
)

Period = Literal["D1", "D2", "D3"]
PERIODS: tuple[Period, ...] = ("D1", "D2", "D3")


def assign_periods(runs: pd.DataFrame, params: SplitParams) -> pd.Series:
    """D1 (history), D2 (training) or D3 (test) for each run, a categorical on the index of `runs`.

    runs: submitted_at, period. The periods of a recording are taken as they are if there are at least three, the
    first three in the order of their first submissions, later ones counting as D3; a run without one is given its
    place by its time. Otherwise the runs are split by submission, and runs submitted at the same moment stay together.
    Raises BadInput for fewer than three distinct times of submission. Source: Zhu et al. 2023, Table 1."""
    times = runs["submitted_at"]
    if params.use_periods and "period" in runs and runs["period"].nunique() >= len(PERIODS):
        starts = times.groupby(runs["period"]).min().sort_values(kind="stable")
        codes = np.searchsorted(starts.to_numpy()[: len(PERIODS)], times.to_numpy(), side="right") - 1
        codes = np.maximum(codes, 0)  # before the first period is history, too
        named = runs["period"].map({name: min(place, 2) for place, name in enumerate(starts.index)})
        codes = np.where(named.notna(), named.fillna(0), codes).astype(int)
    else:
        distinct = np.sort(times.unique())
        if len(distinct) < len(PERIODS):
            raise BadInput(
                "job log",
                f"runs of {len(distinct)} different times of submission",
                "at least three, for history, training and test",
                "give more of the log",
            )
        shares = np.array([params.history_share, params.history_share + params.training_share])
        at = np.sort(times.to_numpy())[np.minimum((shares * len(times)).astype(int), len(times) - 1)]
        # each period has at least one time of submission, however uneven the log
        first = min(max(int(np.searchsorted(distinct, at[0])), 1), len(distinct) - 2)
        second = min(max(int(np.searchsorted(distinct, at[1])), first + 1), len(distinct) - 1)
        codes = np.searchsorted(distinct[[first, second]], times.to_numpy(), side="right")
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(PERIODS)), index=runs.index, name="part")


logger = logging.getLogger(__name__)
KINDS: tuple[Kind, ...] = ("ratio", "delta")
SUPPORTS = (20, 10, 5, 3, 2, 1)  # what is tried where no job has as many runs as asked for


@dataclass(frozen=True)
class Prepared:
    """runs: of read_runs in order of submission, with part (D1, D2, D3), ended_at filled, median_s and median_source;
    history_s: median of each group of D1 by group_key, seconds; shapes: by kind, of D1; features: (n, p);
    tables: Table 2 of the shapes, by kind."""

    runs: pd.DataFrame
    history_s: pd.Series
    shapes: Mapping[Kind, ShapeSet]
    features: pd.DataFrame
    tables: Mapping[Kind, pd.DataFrame] = field(default_factory=dict)

    @property
    def job_features(self) -> pd.DataFrame:
        """The features without those of peers: what shapes are learnt from, (n, p)."""
        return self.features[[name for name in self.features if not is_of_peers(str(name))]]

    def is_part(self, *parts: str) -> NDArray[np.bool_]:
        """Which runs belong to these parts: (n,)."""
        return np.asarray(self.runs["part"].isin(parts))


def prepare(runs: pd.DataFrame, params: CharacteriseParams) -> Prepared:
    """Split, normalise and describe the runs of a log; runs: of read_runs, index 0 … n - 1.

    Raises BadInput for a log with fewer than three times of submission or without a run of a positive length."""
    runs = with_ends(runs.assign(part=assign_periods(runs, params.split)))
    history = runs[runs["part"] == "D1"]
    history_s = history.groupby("group_key")["runtime_s"].median()
    if not (history_s > 0).any():
        raise BadInput("job log", "all runs of its first part took 0 s", "runtimes to compare", "give more of the log")
    medians = historic_medians(runs, history_s, params.normalisation)
    runs = runs.assign(median_s=medians["median_s"], median_source=medians["median_source"])
    fitted = {kind: _shapes(runs[runs["part"] == "D1"], kind, params) for kind in KINDS}
    shapes = {kind: found for kind, (found, _) in fitted.items()}
    tables = {kind: table for kind, (_, table) in fitted.items()}
    return Prepared(runs, history_s, shapes, make_features(runs, runs, history_of(shapes, history_s, params)), tables)


def history_of(shapes: Mapping[Kind, ShapeSet], history_s: pd.Series, params: CharacteriseParams) -> History:
    """Shapes and medians of D1, history_s by group_key in seconds, as features are made of them."""
    medians_s = {str(key): float(value) for key, value in history_s.items()}
    return History(shapes, medians_s, params.posterior.empty_bin_prior, params.normalisation)


def with_ends(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs whose log tells no end end after their runtime."""
    if runs["ended_at"].notna().all():
        return runs
    starts = runs["started_at"].fillna(runs["submitted_at"])
    ends = starts + pd.to_timedelta(runs["runtime_s"], unit="s").dt.round("us")
    return runs.assign(ended_at=runs["ended_at"].fillna(ends).astype("datetime64[us]"))


def _shapes(history: pd.DataFrame, kind: Kind, params: CharacteriseParams) -> tuple[ShapeSet, pd.DataFrame]:
    """The shapes of the jobs of a history, and their Table 2; fewer, or of shorter ones, where the log has no more."""
    values = normalise(history["runtime_s"], history["median_s"], kind)
    numbers, keys = pd.factorize(history["group_key"])
    sizes = np.bincount(numbers[np.isfinite(values)], minlength=len(keys))
    support = _possible_support(sizes, params.shapes)
    bins = bins_of(kind, params.bins, values[sizes[numbers] >= support])
    counts = histogram(values, numbers, len(keys), bins)
    asked = params.shapes.model_copy(update={"min_support": support})
    k = min(params.shapes.k, _n_distinct(counts, bins, asked))
    if (k, support) != (params.shapes.k, params.shapes.min_support):
        logger.warning("%s: %d shapes of jobs with at least %d runs: this log has no more", kind, k, support)
    fit = fit_shapes(counts, bins, asked.model_copy(update={"k": k}))
    ranked, table = rank_by_runs(fit, values, numbers)
    return ranked.shapes, table


def _possible_support(sizes: NDArray[np.int64], params: ShapeParams) -> int:
    """The support asked for, or the next lower one that at least k jobs have, or any has."""
    tried = [params.min_support, *(support for support in SUPPORTS if support < params.min_support)]
    n_groups = [int((sizes >= support).sum()) for support in tried]
    enough = [support for support, n in zip(tried, n_groups, strict=True) if n >= params.k]
    return enough[0] if enough else 1


def _n_distinct(counts: NDArray[np.int64], bins: Bins, params: ShapeParams) -> int:
    is_used = counts.sum(axis=1) >= params.min_support
    return len(np.unique(smooth(pmfs_of(counts[is_used]), bins, params.smoothing_bins), axis=0))
