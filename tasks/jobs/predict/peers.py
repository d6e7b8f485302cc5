"""What a submission may be compared with: runs that had ended before it, of its job, its user, its request, its log.

Each kind of peers shares some columns with the submission; their last runtimes are features of the trees, and the
distributions of some of them stand in the pool of the predictor by themselves."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.indexers import BaseIndexer

from tasks.jobs.distribution import Floats, Rows

Ints = NDArray[np.int64]
OVERTAKEN = 14  # later submissions that may have ended before a run, for it to count as one of the last
ROWS_AT_ONCE = 1_000  # whose last runs are found together: 2 MB for 200 of them stay in the cache


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

    def by_job(self, figures: Mapping[str, float] | pd.Series) -> Floats:
        """A figure of each job, NaN where there is none: (n_jobs,)."""
        return np.asarray(pd.Series(figures, dtype=float).reindex(self.keys), dtype=float)

    def at_last(self, after_each: ArrayLike) -> Floats:
        """What stood after the last known run: after_each (n_past, …) to (n_rows, …), NaN without one."""
        values = np.asarray(after_each, dtype=float)
        last_values = np.full((len(self.last), *values.shape[1:]), np.nan)
        last_values[self.last >= 0] = values[self.last[self.last >= 0]]
        return last_values

    def since_last_s(self, times: pd.Series) -> Floats:
        """Seconds from the end of the last known run to the time of each row: (n_rows,), NaN without one."""
        since_s, is_known = np.full(len(times), np.nan), self.last >= 0
        ended_at = self.known_at.to_numpy()[self.last[is_known]]
        since_s[is_known] = (times.to_numpy()[is_known] - ended_at) / np.timedelta64(1, "s")
        return since_s

    def latest(self, values: Floats, most: int) -> Floats:
        """Values (n_past,) of the last `most` known runs, the newest first: (n_rows, most), NaN beyond the first."""
        last_values, values = np.full((len(self.n), most), np.nan), np.append(values, np.nan)
        for block, places in self._latest_places(most):
            last_values[block, : places.shape[1]] = values[places]
        return last_values

    def latest_places(self, most: int) -> Ints:
        """Places of the last `most` known runs by submission, the newest first: (n_rows, most), -1 beyond the first."""
        last_places = np.full((len(self.n), most), -1, dtype=np.int64)
        for block, places in self._latest_places(most):
            last_places[block, : places.shape[1]] = places
        return last_places

    def _latest_places(self, most: int) -> Iterator[tuple[slice, Ints]]:
        """The same of some rows after the other, as wide as these need.

        They are among the 14 more that ended last: a run that took a year and ends today is no recent one."""
        submitted = _microseconds(self.past["submitted_at"])[self.order]
        overtaken = np.append(0, np.cumsum(submitted[:-1] > submitted[1:]))  # up to each place
        oldest = self.last - np.minimum(self.n, most + OVERTAKEN) + 1
        is_mixed = (self.n > 1) & (overtaken[self.last] > overtaken[np.minimum(oldest, self.last)])
        for first in range(0, len(self.n), ROWS_AT_ONCE):
            block = slice(first, first + ROWS_AT_ONCE)
            back = np.arange(min(most + OVERTAKEN, int(self.n[block].max()) + 1))
            places = np.where(back < self.n[block, None], self.last[block, None] - back, -1)
            mixed = np.flatnonzero(is_mixed[block])
            times = np.where(places[mixed] >= 0, submitted[places[mixed]], np.iinfo(np.int64).min).astype(float)
            places[mixed] = np.take_along_axis(places[mixed], np.argsort(-times, axis=1, kind="stable"), axis=1)
            yield block, places[:, :most]

    def sums(self, values: Floats) -> Floats:
        """Sums over the known runs: values (n_past, c), finite, to (n_rows, c).

        They run within each job, so that no other job and no later run touches even their rounding."""
        return self.sums_and_recent(values, len(values))[0]

    def sums_and_recent(self, values: Floats, window: int) -> tuple[Floats, Floats]:
        """The same, and those over the last `window` known runs."""
        running = np.asarray(pd.DataFrame(values).groupby(self.starts, sort=False).cumsum(), dtype=float)
        sums = np.nan_to_num(self.at_last(running))
        recent, is_long = sums.copy(), self.n > window
        recent[is_long] -= running[self.last[is_long] - window]
        return sums, recent

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


def values_at(places: Ints, values: Floats) -> Floats:
    """Values (n_past,) at places (n, m), NaN at -1."""
    return np.asarray(np.append(values, np.nan)[places])


def earlier_runs(runs: pd.DataFrame, past: pd.DataFrame) -> EarlierRuns:
    """For each row of `runs`, the runs of the same group in `past` that ended strictly before its submission.

    runs: group_key, submitted_at; past: group_key, submitted_at, ended_at, runtime_s, of which rows without an end or
    a finite runtime are left out. A run that ended before it was submitted counts from its submission. A row without
    a submission or a group knows nothing."""
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
    times = np.sort(past_at)
    of_past = past_codes * (len(times) + 1) + np.searchsorted(times, past_at)
    first = np.searchsorted(of_past, codes * (len(times) + 1))
    after = np.searchsorted(of_past, codes * (len(times) + 1) + np.searchsorted(times, at))  # left: strictly before
    return after - first, after - 1


def _microseconds(times: pd.Series) -> Ints:
    return np.asarray(times.to_numpy().astype("datetime64[us]").view(np.int64))


JOB, USER, USER_REQUEST, REQUEST, LOG = "job", "user", "user_request", "request", "log"
SHARED: dict[str, tuple[str, ...]] = {
    JOB: ("group_key",),
    USER: ("user_name",),
    USER_REQUEST: ("user_name", "requested_cpus", "requested_runtime_s"),
    REQUEST: ("requested_cpus", "requested_runtime_s", "queue"),
    LOG: (),
}
NEEDED = {USER: ("user_name",), USER_REQUEST: ("user_name",), REQUEST: ("requested_cpus", "requested_runtime_s")}
OF_THE_POOL = (JOB, USER_REQUEST, LOG)
MOST_RUNS = 50  # of the peers of each submission, the last ones
MOST_OF_JOB = 200  # of its job
LEAST_RUNTIME_S = 0.001  # shorter runs count as this long in logarithms
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
FEW_RUNS, SOME_RUNS = 5, 10
SINCE = "{}_since"
INPUT_USUAL = "input_usual"  # log of the seconds that the job usually takes for so many bytes


@dataclass(frozen=True)
class Histories:
    """log_s: by kind of peers the logs of the last runtimes in seconds that each of n submissions knows, the newest
    first, NaN beyond the first: (n, MOST_RUNS) each, (n, MOST_OF_JOB) of its job."""

    log_s: Mapping[str, Floats]

    def rows(self, which: Rows) -> Self:
        """The same for some of the submissions."""
        return type(self)({peers: values[which] for peers, values in self.log_s.items()})

    def shifted(self, by: Floats) -> Self:
        """Every runtime longer by a factor exp(by), (n,)."""
        return type(self)({peers: values + by[:, None] for peers, values in self.log_s.items()})


def peers_of(runs: pd.DataFrame, past: pd.DataFrame, kinds: Collection[str] = tuple(SHARED)) -> dict[str, EarlierRuns]:
    """The runs of `past` that each row of `runs` may know, by kind of peers, of those kinds that the log tells apart.

    runs, past: as `earlier_runs` takes them, with the columns of SHARED as far as the log has them."""
    by_kind: dict[str, EarlierRuns] = {}
    for peers in (kind for kind in SHARED if kind in kinds):
        needed = NEEDED.get(peers, ())
        if peers == JOB:
            by_kind[peers] = earlier_runs(runs, past)
        elif not needed or any(_has(runs, column) or _has(past, column) for column in needed):
            by_kind[peers] = earlier_runs(*_keyed(runs, past, list(SHARED[peers]), list(needed)))
    return by_kind


def histories(peers: Mapping[str, EarlierRuns], kinds: Collection[str] = OF_THE_POOL) -> Histories:
    """The last runtimes that each submission knows of these kinds of peers; peers: of peers_of."""
    most, of_kinds = {JOB: MOST_OF_JOB}, {name: earlier for name, earlier in peers.items() if name in kinds}
    return Histories(
        {name: earlier.latest(_log_s(earlier), most.get(name, MOST_RUNS)) for name, earlier in of_kinds.items()}
    )


def peer_features(runs: pd.DataFrame, peers_of_runs: Mapping[str, EarlierRuns]) -> dict[str, Floats]:
    """How long the last runs of each kind of peers took, as logs of seconds, and how long ago: (n,) by name.

    peers_of_runs: of peers_of. Names begin with the kind of peers."""
    features: dict[str, Floats] = {}
    limits = _logs(runs["requested_runtime_s"]) if _has(runs, "requested_runtime_s") else None
    for peers, earlier in peers_of_runs.items():
        places = earlier.latest_places(MOST_RUNS)
        latest = values_at(places, _log_s(earlier))
        features[f"{peers}_runs"] = np.log1p(earlier.n)
        features[f"{peers}_last"], features[f"{peers}_before_last"] = latest[:, 0], latest[:, 1]
        features[f"{peers}_mean{FEW_RUNS}"] = _mean(latest[:, :FEW_RUNS])
        features[f"{peers}_median{SOME_RUNS}"] = _median(latest[:, :SOME_RUNS])
        quantiles = quantiles_of(latest, tuple(QUANTILES.values())).T
        features |= {f"{peers}_{name}": values for name, values in zip(QUANTILES, quantiles, strict=True)}
        features[SINCE.format(peers)] = log_since(earlier, runs["submitted_at"])
        if limits is not None and earlier.has("requested_runtime_s"):
            shares = _log_s(earlier) - _logs(earlier.values("requested_runtime_s"))
            features[f"{peers}_limit_share"] = _median(values_at(places, shares))
        if peers == JOB and _has(runs, "input_bytes") and earlier.has("input_bytes"):
            rates = _log_s(earlier) - np.log1p(earlier.values("input_bytes"))
            usual = _median(values_at(places, rates))
            features[INPUT_USUAL] = usual + np.log1p(runs["input_bytes"].to_numpy(dtype=float))
    return features


def log_since(earlier: EarlierRuns, at: pd.Series) -> Floats:
    """Log of the seconds from the end of the last known run to the time of each row: (n,), NaN without one."""
    return np.asarray(np.log1p(np.maximum(earlier.since_last_s(at), 0.0)))


def quantiles_of(latest: Floats, levels: Sequence[float]) -> Floats:
    """Quantiles of the finite values of each row, interpolated: (n, m) to (n, n_levels), NaN for a row without any."""
    ordered, n = np.sort(latest, axis=1), np.isfinite(latest).sum(axis=1)
    last, rows = np.maximum(n - 1, 0), np.arange(len(latest))
    quantiles = np.empty((len(latest), len(levels)))
    for column, level in enumerate(levels):
        low = (level * last).astype(int)
        below, above = ordered[rows, low], ordered[rows, np.minimum(low + 1, last)]
        quantiles[:, column] = below + (level * last - low) * (above - below)
    return quantiles


def _keyed(
    runs: pd.DataFrame, past: pd.DataFrame, shared: list[str], needed: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both with a number for each combination of shared values as group_key; missing where nothing needed is known."""
    values = pd.concat([frame.reindex(columns=shared) for frame in (runs, past)], ignore_index=True)
    keys = pd.Series(0, index=values.index)
    if shared:
        keys = values.groupby(shared, dropna=False, sort=False).ngroup().where(values[needed].notna().any(axis=1))
    return runs.assign(group_key=keys[: len(runs)].to_numpy()), past.assign(group_key=keys[len(runs) :].to_numpy())


def _has(frame: pd.DataFrame, column: str) -> bool:
    return column in frame and bool(frame[column].notna().any())


def _logs(values: pd.Series | Floats) -> Floats:
    numbers = np.asarray(values, dtype=float)
    return np.asarray(np.log(np.maximum(numbers, LEAST_RUNTIME_S)))  # a missing one stays missing


def _log_s(earlier: EarlierRuns) -> Floats:
    return _logs(earlier.values("runtime_s"))


def _median(latest: Floats) -> Floats:
    return quantiles_of(latest, [QUANTILES["median"]])[:, 0]


def _mean(latest: Floats) -> Floats:
    is_there = np.isfinite(latest)
    n = is_there.sum(axis=1)
    sums = np.where(is_there, latest, 0.0).sum(axis=1)
    return np.where(n > 0, sums / np.maximum(n, 1), np.nan)
