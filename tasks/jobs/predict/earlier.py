"""The earlier runs that each row may know: of its job, ended strictly before it was submitted."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tasks.errors import BadInput
from tasks.jobs.normalisation import LastRuns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OF_RUNS = ("group_key", "submitted_at")
OVERTAKEN = 14  # later submissions that may have ended before a run, for it to count as one of the last
ROWS_AT_ONCE = 10_000  # whose last runs are found together: 17 MB for 200 of them
OF_PAST = ("group_key", "submitted_at", "ended_at", "runtime_s")


@dataclass(frozen=True)
class EarlierRuns:
    """keys: (n_jobs,) the jobs of the rows; codes: (n_rows,) the job of each, -1 for none.
    order: (n_past,) rows of `past` by job and by the time when they were known, known_at; past_codes: (n_past,) their
    jobs; starts: (n_past,) place of the first run of the same job. n: (n_rows,) runs that each row knows; last:
    (n_rows,) place of the last of them, -1 without one: they stand at last - n + 1 … last. Made by `earlier_runs`."""

    keys: pd.Index
    codes: Ints
    past: pd.DataFrame
    order: Ints
    past_codes: Ints
    known_at: pd.Series
    starts: Ints
    n: Ints
    last: Ints

    def has(self, column: str) -> bool:
        """The log has this column, with a value for at least one run."""
        return column in self.past and bool(self.past[column].notna().any())

    def values(self, column: str) -> Floats:
        """A column of `past` in this order: (n_past,)."""
        return np.asarray(self.past[column].to_numpy(dtype=float, na_value=np.nan)[self.order])

    def by_job(self, figures: Mapping[str, float]) -> Floats:
        """A figure of each job, NaN where there is none: (n_jobs,)."""
        return np.asarray(pd.Series(figures, dtype=float).reindex(self.keys), dtype=float)

    def at_last(self, after_each: ArrayLike) -> Floats:
        """What stood after the last known run: after_each (n_past, …) to (n_rows, …), NaN without one."""
        values = np.asarray(after_each, dtype=float)
        found = np.full((len(self.last), *values.shape[1:]), np.nan)
        found[self.last >= 0] = values[self.last[self.last >= 0]]
        return found

    def since_last_s(self, times: pd.Series) -> Floats:
        """Seconds from the end of the last known run to the time of each row: (n_rows,), NaN without one."""
        found, is_known = np.full(len(times), np.nan), self.last >= 0
        ended_at = self.known_at.to_numpy()[self.last[is_known]]
        found[is_known] = (times.to_numpy()[is_known] - ended_at) / np.timedelta64(1, "s")
        return found

    def latest(self, values: Floats, most: int) -> Floats:
        """Values (n_past,) of the last `most` known runs, the newest first: (n_rows, most), NaN beyond the first."""
        return values_at(self.latest_places(most), values)

    def latest_places(self, most: int) -> Ints:
        """Places of the last `most` known runs by submission, the newest first: (n_rows, most), -1 beyond the first.

        They are among the 14 more that ended last: a run that took a year and ends today is no recent one."""
        submitted = _microseconds(self.past["submitted_at"])[self.order]
        found = np.full((len(self.n), most), -1, dtype=np.int64)
        for first in range(0, len(found), ROWS_AT_ONCE):
            block = slice(first, first + ROWS_AT_ONCE)
            back = np.arange(min(most + OVERTAKEN, int(self.n[block].max()) + 1))
            places = np.where(back < self.n[block, None], self.last[block, None] - back, -1)
            times = np.where(places >= 0, submitted[places] if len(submitted) else 0, np.iinfo(np.int64).min)
            is_mixed = np.flatnonzero((np.diff(times, axis=1) > 0).any(axis=1))
            newest = np.argsort(-times[is_mixed].astype(float), axis=1, kind="stable")
            places[is_mixed] = np.take_along_axis(places[is_mixed], newest, axis=1)
            found[block, : min(len(back), most)] = places[:, :most]
        return found

    def sums(self, values: Floats, *, window: int | None = None) -> Floats:
        """Sums over the known runs, or over the last `window` of them: values (n_past, c), finite, to (n_rows, c).

        They run within each job, so that no other job and no later run touches even their rounding."""
        running = self._running(values)
        upto = np.nan_to_num(self.at_last(running))
        if window is None:
            return upto
        is_long = self.n > window
        upto[is_long] -= running[self.last[is_long] - window]
        return upto

    def mean_sd(self, values: ArrayLike) -> tuple[Floats, Floats]:
        """Mean, and standard deviation (n - 1), over the known runs that have a value: values (n_past,).

        Returns (n_rows,) twice; NaN without a run, the deviation also with one."""
        x = np.asarray(values, dtype=float)
        is_there = np.isfinite(x)
        # from the first value of the job: squares of bytes would drown small differences
        origin = pd.Series(np.where(is_there, x, np.nan)).groupby(self.starts, sort=False).transform("first").to_numpy()
        shifted = np.where(is_there, x - origin, 0.0)
        n, total, squares = self.sums(np.column_stack([is_there, shifted, shifted**2])).T
        n = np.where(n > 0, n, np.nan)
        mean = total / n
        variance = (squares - n * mean**2) / np.where(n > 1, n - 1, np.nan)
        return mean + self.at_last(origin), np.sqrt(np.maximum(variance, 0.0))

    def mean(self, values: ArrayLike) -> Floats:
        """Mean over the known runs that have a value: (n_past,) to (n_rows,); NaN without one."""
        return self.mean_sd(values)[0]

    def quantile(self, values: ArrayLike, level: float, *, window: int) -> Floats:
        """Quantile over the last `window` known runs, interpolated, missing values left out: (n_past,) to (n_rows,)."""
        rolling = pd.Series(np.asarray(values, dtype=float)).rolling(LastRuns(self.starts, window), min_periods=1)
        return self.at_last(rolling.median() if level == 0.5 else rolling.quantile(level))

    def recent_mean(self, values: Floats, *, half_life: float) -> Floats:
        """Mean in which a run counts half as much as one `half_life` runs later: (n_past,), finite, to (n_rows,)."""
        decay = 0.5 ** (1 / half_life)
        sums = np.column_stack([values, np.ones(len(values))])
        place = np.arange(len(values)) - self.starts  # number of the run within its job, from 0
        step = 1
        # sums over 1, 2, 4, … runs, each out of two of half the length, until what is added no longer counts
        while step <= place.max(initial=0) and decay**step > np.finfo(float).eps:
            before = np.zeros_like(sums)
            before[step:] = np.where((place >= step)[step:, None], sums[:-step], 0.0)
            sums = sums + decay**step * before
            step *= 2
        return self.at_last(sums[:, 0] / sums[:, 1])

    def _running(self, values: Floats) -> Floats:
        return np.asarray(pd.DataFrame(values).groupby(self.starts, sort=False).cumsum(), dtype=float)


def values_at(places: Ints, values: Floats) -> Floats:
    """Values (n_past,) at places (n, m), NaN at -1."""
    return np.where(places >= 0, values[places] if len(values) else np.nan, np.nan)


def earlier_runs(runs: pd.DataFrame, past: pd.DataFrame) -> EarlierRuns:
    """For each row of `runs`, the runs of the same group in `past` that ended strictly before its submission.

    runs: group_key, submitted_at; past: group_key, submitted_at, ended_at, runtime_s, of which rows without an end or
    a finite runtime are left out. A run that ended before it was submitted counts from its submission. A row without
    a submission or a group knows nothing. Raises BadInput if a column is missing."""
    _need(runs, "runs", OF_RUNS)
    _need(past, "past", OF_PAST)
    codes, keys = pd.factorize(runs["group_key"])
    of_past = pd.Index(keys).get_indexer(pd.Index(past["group_key"]))
    ended_at, submitted_at = _microseconds(past["ended_at"]), _microseconds(past["submitted_at"])
    known_at, runtimes_s = np.maximum(ended_at, submitted_at), past["runtime_s"].to_numpy(dtype=float)
    is_used = (of_past >= 0) & past["ended_at"].notna().to_numpy() & np.isfinite(runtimes_s)
    used = np.flatnonzero(is_used)
    # runs that ended together stand by length and submission, whatever the order of the rows
    order = used[np.lexsort([keys[used] for keys in (submitted_at, runtimes_s, known_at, of_past)])]
    of_past, known_at = of_past[order], known_at[order]
    n, last = _places(codes, _microseconds(runs["submitted_at"]), of_past, known_at)
    n[runs["submitted_at"].isna().to_numpy() | (codes < 0)] = 0
    starts = np.searchsorted(of_past, of_past)
    times = pd.Series(known_at.view("datetime64[us]"))
    return EarlierRuns(pd.Index(keys), codes, past, order, of_past, times, starts, n, np.where(n > 0, last, -1))


def _places(codes: Ints, at: Ints, past_codes: Ints, past_at: Ints) -> tuple[Ints, Ints]:
    """How many runs of its code each row comes after, and the place of the last: both (n_rows,).

    past_codes, past_at: (n_past,), by code and time. One binary search over pairs (code, rank of the time)."""
    times = np.unique(past_at)
    of_past = past_codes * (len(times) + 1) + np.searchsorted(times, past_at)
    first = np.searchsorted(of_past, codes * (len(times) + 1))
    after = np.searchsorted(of_past, codes * (len(times) + 1) + np.searchsorted(times, at))  # left: strictly before
    return after - first, after - 1


def _microseconds(times: pd.Series) -> Ints:
    return np.asarray(times.to_numpy().astype("datetime64[us]").view(np.int64))


def _need(frame: pd.DataFrame, name: str, columns: tuple[str, ...]) -> None:
    if missing := [column for column in columns if column not in frame]:
        raise BadInput(name, f"no column {', '.join(missing)}", f"a frame with {', '.join(columns)}")
