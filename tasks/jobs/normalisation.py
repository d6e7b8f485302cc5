"""Runtimes against the historic median of their job: ratio and delta, and where the median comes from."""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.indexers import BaseIndexer

from tasks.errors import BadInput
from tasks.jobs.shape_params import (
    Kind,
    NormalisationParams,
)

Ints = NDArray[np.int64]


class LastRuns(BaseIndexer):
    """Windows of at most `size` runs up to and with each run, which never reach into another job."""

    def __init__(self, starts: Ints, size: int) -> None:
        super().__init__()
        self.starts, self.size = starts, size

    def get_window_bounds(  # pandas asks for these names
        self,
        num_values: int = 0,
        min_periods: int | None = None,  # noqa: ARG002
        center: bool | None = None,  # noqa: ARG002
        closed: str | None = None,  # noqa: ARG002
        step: int | None = None,  # noqa: ARG002
    ) -> tuple[Ints, Ints]:
        ends = np.arange(1, num_values + 1, dtype=np.int64)
        return np.maximum(self.starts, ends - self.size), ends


MedianSource = Literal["history", "before", "predicted", "none"]
SOURCES: tuple[MedianSource, ...] = ("history", "before", "predicted", "none")
Predicted = Callable[[pd.DataFrame], ArrayLike] | ArrayLike


def normalise(runtime_s: ArrayLike, median_s: ArrayLike, kind: Kind) -> NDArray[np.float64]:
    """Runtime over median (ratio, no unit) or runtime minus median (delta, seconds).

    runtime_s, median_s: (n,). Returns (n,); missing where either is missing, and a ratio where the median is 0.
    Source: Zhu et al. 2023, Definition 4.1."""
    runtimes, medians = np.asarray(runtime_s, dtype=float), np.asarray(median_s, dtype=float)
    if kind == "delta":
        return np.asarray(runtimes - medians)
    return np.asarray(runtimes / np.where(medians > 0, medians, np.nan))


def historic_medians(
    runs: pd.DataFrame,
    history: Mapping[str, float] | pd.Series,
    params: NormalisationParams,
    *,
    past: pd.DataFrame | None = None,
    predicted: Predicted | None = None,
) -> pd.DataFrame:
    """The median that each run is compared with, and its source: median_s, median_source, on the index of `runs`.

    - history: the job is in `history` (group key to median of period D1, seconds): that median, whenever the run was.
    - before: it is not; the median of the runs of the job in `past` (default: `runs` themselves) that ended strictly
      before this one was submitted, if there are at least params.min_before.
    - predicted: neither; `predicted`, an array (n_runs,) or a function of the rows without a median yet.
    - none: nothing is known, the median is missing.

    runs: group_key, submitted_at; past: group_key, ended_at, runtime_s, of which rows without an end or a finite
    runtime are left out. A run without submitted_at has no before. Medians that are missing, infinite or below 0
    count as absent. Raises BadInput if a column is missing, or predictions are not one a run.
    Source: Zhu et al. 2023, section 4.2 (D1); the fallbacks are ours."""
    _need(runs, "runs", "group_key", "submitted_at")
    by_key = history if isinstance(history, pd.Series) else pd.Series(history, dtype=float)
    medians = _usable(runs["group_key"].map(by_key))
    codes = np.where(np.isnan(medians), SOURCES.index("none"), SOURCES.index("history"))
    steps: list[tuple[MedianSource, Callable[[NDArray[np.bool_]], ArrayLike]]] = [
        ("before", lambda is_open: _before(runs[is_open], runs if past is None else past, params.min_before)),
        ("predicted", lambda is_open: _predictions(runs, is_open, predicted)),
    ]
    for source, find in steps:
        is_open = np.isnan(medians)
        if is_open.any():
            found = _usable(find(is_open))
            medians[is_open] = found
            codes[is_open] = np.where(np.isnan(found), SOURCES.index("none"), SOURCES.index(source))
    sources = pd.Categorical.from_codes(codes, categories=pd.Index(SOURCES))
    return pd.DataFrame({"median_s": medians, "median_source": sources}, index=runs.index)


def _need(frame: pd.DataFrame, name: str, *columns: str) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise BadInput(name, f"no column {', '.join(missing)}", f"a frame with {', '.join(columns)}")


def _usable(medians: ArrayLike) -> NDArray[np.float64]:
    """A copy without medians that no runtime can have."""
    values = np.array(medians, dtype=float)
    values[~(np.isfinite(values) & (values >= 0))] = np.nan
    return values


def _before(rows: pd.DataFrame, past: pd.DataFrame, min_before: int) -> NDArray[np.float64]:
    """The median of the runs of the same group that ended strictly before each row was submitted: (n_rows,)."""
    _need(past, "past", "group_key", "ended_at", "runtime_s")
    past = past[past["group_key"].isin(rows["group_key"].unique())]
    past = past[past["ended_at"].notna() & np.isfinite(past["runtime_s"].astype(float))]
    medians = np.full(len(rows), np.nan)
    at = np.flatnonzero(rows["submitted_at"].notna())
    if not len(at) or past.empty:
        return medians
    codes, keys = pd.factorize(rows["group_key"])
    known = _medians_so_far(pd.Index(keys).get_indexer(past["group_key"]), past)
    asked = pd.DataFrame({"code": codes[at], "at": rows["submitted_at"].to_numpy()[at], "row": at})
    asked["at"] = asked["at"].astype(known["at"].dtype)
    found = pd.merge_asof(asked.sort_values("at"), known, on="at", by="code", allow_exact_matches=False)
    is_enough = found["n"].to_numpy() >= min_before  # missing is not
    medians[found["row"].to_numpy()[is_enough]] = found["median_s"].to_numpy()[is_enough]
    return medians


def _medians_so_far(codes: NDArray[np.int64], past: pd.DataFrame) -> pd.DataFrame:
    """After each run of `past`: the median of the n runs of its group that had ended by then; sorted by `at`."""
    frame = pd.DataFrame(
        {"code": codes, "at": past["ended_at"].to_numpy(), "runtime_s": past["runtime_s"].to_numpy(dtype=float)}
    ).sort_values(["code", "at"], ignore_index=True)
    by_group = frame["code"].to_numpy()
    is_first = np.r_[True, by_group[1:] != by_group[:-1]]
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(frame)), 0))
    window = LastRuns(starts, len(frame))
    frame["median_s"] = frame["runtime_s"].rolling(window, min_periods=1).median()
    frame["n"] = np.arange(len(frame)) - starts + 1
    # stable: of runs that ended at the same moment the last knows them all, and stays the last
    return frame.drop(columns="runtime_s").sort_values("at", kind="stable", ignore_index=True)


def _predictions(runs: pd.DataFrame, is_open: NDArray[np.bool_], predicted: Predicted | None) -> ArrayLike:
    if predicted is None:
        return np.full(int(is_open.sum()), np.nan)
    values = np.asarray(predicted(runs[is_open]) if callable(predicted) else predicted, dtype=float)
    n_expected = int(is_open.sum()) if callable(predicted) else len(runs)
    if values.shape != (n_expected,):
        raise BadInput("predicted medians", f"shape {values.shape}", f"one a run, ({n_expected},)")
    return values if callable(predicted) else values[is_open]
