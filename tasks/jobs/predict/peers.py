"""What a submission may be compared with: runs that had ended before it, of its job, its user, its request, its log.

Each kind of peers shares some columns with the submission; their last runtimes are features of the trees, and the
distributions of some of them stand in the pool of the predictor by themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats, Rows
from tasks.jobs.predict.earlier import EarlierRuns, earlier_runs, values_at

JOB, USER, USER_REQUEST, REQUEST, LOG = "job", "user", "user_request", "request", "log"
SHARED: dict[str, tuple[str, ...]] = {
    JOB: ("group_key",),
    USER: ("user_name",),
    USER_REQUEST: ("user_name", "requested_cpus", "requested_runtime_s"),
    REQUEST: ("requested_cpus", "requested_runtime_s", "queue"),
    LOG: (),
}
NEEDED = {USER: ("user_name",), USER_REQUEST: ("user_name",), REQUEST: ("requested_cpus", "requested_runtime_s")}
MOST_RUNS = 50  # of the peers of each submission, the last ones
MOST_OF_JOB = 200  # of its job
LEAST_RUNTIME_S = 0.001  # shorter runs count as this long in logarithms
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
FEW_RUNS, SOME_RUNS = 5, 10
SEPARATOR = "\x1f"  # of the values of a key: pandas drops a null character from a text
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


def peers_of(runs: pd.DataFrame, past: pd.DataFrame) -> dict[str, EarlierRuns]:
    """The runs of `past` that each row of `runs` may know, by kind of peers, of those kinds that the log tells apart.

    runs, past: as `earlier_runs` takes them, with the columns of SHARED as far as the log has them."""
    found: dict[str, EarlierRuns] = {}
    for peers, shared in SHARED.items():
        needed = NEEDED.get(peers, ())
        if not needed or any(_has(runs, column) or _has(past, column) for column in needed):
            keyed = (frame.assign(group_key=_keys(frame, shared, needed)) for frame in (runs, past))
            found[peers] = earlier_runs(*keyed)
    return found


def histories(runs: pd.DataFrame, past: pd.DataFrame) -> Histories:
    """The last runtimes that each row of `runs` knows of the peers of JOB, USER_REQUEST and REQUEST."""
    asked = {peers: earlier for peers, earlier in peers_of(runs, past).items() if peers not in (USER, LOG)}
    most = {JOB: MOST_OF_JOB}
    return Histories({peers: one.latest(_log_s(one), most.get(peers, MOST_RUNS)) for peers, one in asked.items()})


def peer_features(runs: pd.DataFrame, past: pd.DataFrame) -> dict[str, Floats]:
    """How long the last runs of each kind of peers took, as logs of seconds, and how long ago: (n,) by name.

    runs, past: as peers_of takes them. Names begin with the kind of peers."""
    found: dict[str, Floats] = {}
    limits = _logs(runs["requested_runtime_s"]) if _has(runs, "requested_runtime_s") else None
    for peers, earlier in peers_of(runs, past).items():
        places = earlier.latest_places(MOST_RUNS)
        latest = values_at(places, _log_s(earlier))
        found[f"{peers}_runs"] = np.log1p(earlier.n)
        found[f"{peers}_last"], found[f"{peers}_before_last"] = latest[:, 0], latest[:, 1]
        found[f"{peers}_mean{FEW_RUNS}"] = _mean(latest[:, :FEW_RUNS])
        found[f"{peers}_median{SOME_RUNS}"] = _median(latest[:, :SOME_RUNS])
        quantiles = quantiles_of(latest, tuple(QUANTILES.values())).T
        found |= {f"{peers}_{name}": values for name, values in zip(QUANTILES, quantiles, strict=True)}
        found[f"{peers}_since"] = np.log1p(np.maximum(earlier.since_last_s(runs["submitted_at"]), 0.0))
        if limits is not None and earlier.has("requested_runtime_s"):
            shares = _log_s(earlier) - _logs(earlier.values("requested_runtime_s"))
            found[f"{peers}_limit_share"] = _median(values_at(places, shares))
        if peers == JOB and _has(runs, "input_bytes") and earlier.has("input_bytes"):
            rates = _log_s(earlier) - np.log1p(earlier.values("input_bytes"))
            usual = _median(values_at(places, rates))
            found[INPUT_USUAL] = usual + np.log1p(runs["input_bytes"].to_numpy(dtype=float))
    return found


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


def _keys(frame: pd.DataFrame, shared: tuple[str, ...], needed: tuple[str, ...]) -> pd.Series:
    """One text of the shared values for each row; missing where none of the needed columns has a value."""
    keys = np.full(len(frame), "", dtype=object)
    for column in shared:
        keys = keys + SEPARATOR + _texts(_column(frame, column))
    texts = pd.Series(keys, index=frame.index, dtype=object)
    known = [_column(frame, column).notna() for column in needed or shared]
    return texts.where(np.logical_or.reduce(known), None) if known else texts


def _texts(values: pd.Series) -> NDArray[np.object_]:
    """One text for each value, the same for 4 and 4.0, and for all ways to miss one."""
    if pd.api.types.is_numeric_dtype(values):
        values = values.astype(float)
    codes, different = pd.factorize(values)
    return np.array([*map(str, different.tolist()), ""], dtype=object)[codes]


def _column(frame: pd.DataFrame, column: str) -> pd.Series:
    return frame[column] if column in frame else pd.Series(None, index=frame.index, dtype=object)


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
