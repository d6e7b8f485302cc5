"""A log made ready to learn from: its periods D1, D2 and D3, historic medians, shapes of the history, features."""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from tasks.errors import BadInput
from tasks.jobs.normalisation import Bins, bins_of, histogram, historic_medians, normalise, pmfs_of, smooth
from tasks.jobs.predict.feature_words import is_of_peers
from tasks.jobs.predict.features import History, make_features
from tasks.jobs.predict.rows import OWN
from tasks.jobs.shape_params import CharacteriseParams, Kind, ShapeParams, SplitParams
from tasks.jobs.shapes import ShapeSet, fit_shapes, rank_by_runs

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
RESULT = re.compile(  # how a run went, in the name of a column
    r"(?:^|_)(?:end(?:ed|s)?|finish(?:ed)?|stop(?:ped)?|completed?|status|state|exit(?:_?code)?|results?|outcome"
    r"|conclusion|success|fail(?:ed|ure)?|errors?|duration|runtime|elapsed|wall_?(?:time|clock)|cpu_?time)(?:_|$)"
)
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a word begins in exitCode
NEAR, SAME_SHARE, SAME_RANK = 0.01, 0.9, 0.99
LEAST_COMPARED = 10  # runs with a value
MOST_CATEGORIES = 200  # of a column of texts, the most frequent
SUPPORTS = (20, 10, 5, 3, 2, 1)  # what is tried where no job has as many runs as asked for


@dataclass(frozen=True)
class Prepared:
    """runs: of read_runs in order of submission, with part (D1, D2, D3), ended_at filled, median_s and median_source;
    history_s: median of each group of D1 by group_key, seconds; shapes: by kind, of D1; features: (n, p);
    tables: Table 2 of the shapes, by kind; categories: as History has them; left_out: own columns that are no features,
    and why."""

    runs: pd.DataFrame
    history_s: pd.Series
    shapes: Mapping[Kind, ShapeSet]
    features: pd.DataFrame
    tables: Mapping[Kind, pd.DataFrame] = field(default_factory=dict)
    categories: Mapping[str, list[str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def job_features(self) -> pd.DataFrame:
        """The features without those of peers: what shapes are learnt from, (n, p)."""
        return self.features[[name for name in self.features if not is_of_peers(str(name))]]

    def is_part(self, *parts: str) -> NDArray[np.bool_]:
        """Which runs belong to these parts: (n,)."""
        return np.asarray(self.runs["part"].isin(parts))


def prepare(
    runs: pd.DataFrame, params: CharacteriseParams, *, named: Collection[str] = (), known_before: Collection[str] = ()
) -> Prepared:
    """Split, normalise and describe the runs of a log; runs: of read_runs, index 0 … n - 1.

    named, known_before: own columns that may be features, as leaks takes them; others are left out.

    Raises BadInput for a log with fewer than three times of submission or without a run of a positive length."""
    runs = with_ends(runs.assign(part=assign_periods(runs, params.split)))
    old = runs[runs["part"] != "D3"]
    left_out = leaks(old, named, known_before)
    runs = runs.drop(columns=[OWN + name for name in left_out])
    texts = [str(name) for name in runs if str(name).startswith(OWN) and not is_numeric_dtype(runs[name])]
    categories = {name: old[name].value_counts().index[:MOST_CATEGORIES].astype(str).tolist() for name in texts}
    history = runs[runs["part"] == "D1"]
    history_s = history.groupby("group_key")["runtime_s"].median()
    if not (history_s > 0).any():
        raise BadInput("job log", "all runs of its first part took 0 s", "runtimes to compare", "give more of the log")
    medians = historic_medians(runs, history_s, params.normalisation)
    runs = runs.assign(median_s=medians["median_s"], median_source=medians["median_source"])
    fitted = {kind: _shapes(runs[runs["part"] == "D1"], kind, params) for kind in KINDS}
    shapes = {kind: found for kind, (found, _) in fitted.items()}
    tables = {kind: table for kind, (_, table) in fitted.items()}
    known = history_of(shapes, history_s, params, categories)
    return Prepared(runs, history_s, shapes, make_features(runs, runs, known), tables, categories, left_out)


def leaks(old: pd.DataFrame, named: Collection[str], known_before: Collection[str]) -> dict[str, str]:
    """The own columns that must not be features, by name, with the reason: they tell of the run's outcome, or may.

    old: runs before the test. Columns of known_before are features whatever they look like. Others have to be named,
    must not be called like an outcome, and must not nearly be the runtime: within NEAR of it in SAME_SHARE of the
    runs, or with a rank correlation of at least SAME_RANK."""
    found: dict[str, str] = {}
    for column in [str(name) for name in old if str(name).startswith(OWN)]:
        name = column.removeprefix(OWN)
        if name in known_before:
            continue
        if same := _is_runtime(old[column], old["runtime_s"]):
            found[name] = same
        elif RESULT.search(re.sub(r"[^a-z]+", "_", CAPITAL.sub("_", name).lower())):
            found[name] = "is called like a result of the run"
        elif name not in named:
            found[name] = "is not said to be known before the run"
    return found


def _is_runtime(values: pd.Series, runtime_s: pd.Series) -> str:
    """In which respect a column nearly is the runtime; empty for none. Units do not matter."""
    numbers = pd.to_numeric(values, errors="coerce")
    is_known = (numbers.notna() & (numbers > 0) & (runtime_s > 0)).to_numpy()
    if is_known.sum() < LEAST_COMPARED:
        return ""
    x, y = numbers.to_numpy(dtype=float)[is_known], runtime_s.to_numpy(dtype=float)[is_known]
    ratio = x / y
    share = float((np.abs(ratio / np.median(ratio) - 1) <= NEAR).mean())
    if share >= SAME_SHARE:
        return f"is the runtime in {share:.1%} of the runs"
    from scipy.stats import rankdata  # not above: it takes a second to import

    rank = float(np.corrcoef(rankdata(x), rankdata(y))[0, 1]) if np.ptp(x) and np.ptp(y) else 0.0
    return f"rises with the runtime (rank correlation {rank:.3f})" if abs(rank) >= SAME_RANK else ""


def history_of(
    shapes: Mapping[Kind, ShapeSet],
    history_s: pd.Series,
    params: CharacteriseParams,
    categories: Mapping[str, Sequence[str]],
) -> History:
    """Shapes and medians of D1, history_s by group_key in seconds, as features are made of them."""
    medians_s = {str(key): float(value) for key, value in history_s.items()}
    return History(shapes, medians_s, params.posterior.empty_bin_prior, params.normalisation, categories)


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
