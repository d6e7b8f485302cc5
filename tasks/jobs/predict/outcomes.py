"""How a run will end: the chances that it completes, that it is stopped, and that it still runs at some time.

A run that its time limit stops is a censored observation: what it would have taken is unknown, so it says nothing of
the runtime of runs that complete, and all of how often the limit strikes. Two chances are learnt over all runs that
ended: to complete, and to run for at least REACHED of the limit. Of k in the last n runs of the job, and what boosted
trees say of this run, which stands for m runs (a Beta prior with that mean; m foretold the latest training runs best),

    P(event) = (k + m P_trees) / (n + m).

With F the predictor's distribution of the runtime if the run completes, and G that of the times of stopped runs as
shares of their limits, competing risks give (Fine & Gray 1999, section 1)

    P(ended by t) = P(completes) F(t) + P(stopped) G(t / limit)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from tasks.boosters import booster_from, matrix, train_booster
from tasks.jobs.distribution import Empirical, Floats
from tasks.jobs.outlook import REACHED
from tasks.jobs.predict.peers import JOB, LEAST_RUNTIME_S, USER_REQUEST, EarlierRuns, peers_of
from tasks.jobs.predict.preparation import FINISHED, with_ends
from tasks.jobs.scores import Figures, bootstrap_difference, known

ENDED = (*FINISHED, "failed", "timeout", "cancelled")  # statuses of the runs that are learnt from
REACHES, COMPLETES = "reaches", "completes"
MEASURES = {REACHES: "limit95", COMPLETES: "completes"}  # event: how figures call its chance
RATE, KNOWN = "rate", "known"
WINDOWS = (5, 20, 50)  # last runs of each kind of peers that a rate is of
TREES_COUNT = (8, 32, 128)  # runs of a job that the chance by trees may stand for
EARLY_SHARE = 0.6  # of the training runs: trees of these show on the rest for how many
LEAST_TRIED = 20  # runs; with fewer the middle one is taken
MOST_RUNS = 120_000  # that ended, the last ones: what is learnt from takes 2 kB a run
MOST_SHARES = 200  # quantiles that the times of stopped runs are kept as
N_TREES = 150
MIN_LEAF, LEAF_SHARE = 50, 20  # rows of a leaf; of few rows one in twenty
SETTINGS = {
    "objective": "binary",
    "learning_rate": 0.03,
    "num_leaves": 15,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
}
N_TREES_PLAIN = 100  # as many as LightGBM grows if nothing is said
TEST_SHARE = 0.2
NO_LIMITS = "the log has no time limits"
MAIN = "outcomes.json"
ENDINGS = ("completes_share", "at_limit_share", "before_limit_share")


@dataclass(frozen=True)
class EventModel:
    """The chance of one event. booster: lightgbm.Booster; columns: features in its order; trees_count: runs of the job
    that its chance stands for."""

    event: str
    booster: Any
    columns: tuple[str, ...]
    trees_count: float

    def predict(self, features: pd.DataFrame) -> Floats:
        """The chance for each row: (n,) between 0 and 1. features: of outcome_features."""
        rows = matrix(features.reindex(columns=list(self.columns)))
        by_trees = np.asarray(self.booster.predict(rows, num_threads=1)) if len(rows) else np.zeros(0)
        n = features[f"{self.event}_{KNOWN}"].to_numpy()
        k = features[f"{self.event}_{JOB}_{max(WINDOWS)}"].to_numpy() * (n + 1) - 0.5  # as _rate counts
        return np.asarray((k + self.trees_count * by_trees) / (n + self.trees_count))


@dataclass(frozen=True)
class Outcomes:
    """early, late: times of stopped runs as shares of their limits, ascending: those below REACHED, and the others."""

    chances: Mapping[str, EventModel]
    early: Floats
    late: Floats

    def reaches(self, features: pd.DataFrame) -> Floats:
        """The chance of each run to take at least REACHED of its limit: (n,), NaN without a limit."""
        return np.where(np.isfinite(_limits_s(features)), self.chances[REACHES].predict(features), np.nan)

    def completes(self, features: pd.DataFrame) -> Floats:
        """The chance of each run to complete, sooner or later: (n,)."""
        return self.chances[COMPLETES].predict(features)

    def endings(self, features: pd.DataFrame, predicted: Empirical) -> pd.DataFrame:
        """The chances that each of the n runs completes, is stopped at its limit, and is stopped before, the columns
        ENDINGS, sum to 1; NaN for runs without a limit.

        predicted: their runtimes if they complete. How many of the stopped runs are stopped at the limit is such that
        both answers agree: P(reaches) = P(completes) (1 - F) + P(stopped) (1 - G) at REACHED."""
        limits_s, completes, reaches = _limits_s(features), self.completes(features), self.reaches(features)
        is_limited = np.isfinite(limits_s)
        survivors = completes * (1 - predicted.cdf_below(REACHED * np.where(is_limited, limits_s, 1.0)))
        at_limit = np.clip(reaches - survivors, 0.0, 1 - completes)  # NaN without a limit
        chances = (np.where(is_limited, completes, np.nan), at_limit, 1 - completes - at_limit)
        return pd.DataFrame(dict(zip(ENDINGS, chances, strict=True)))

    def goes_on(self, features: pd.DataFrame, predicted: Empirical, time_s: Any) -> Floats:
        """The chance that each run has neither completed nor been stopped at times after its start: (n, m) as time_s,
        finite; NaN for runs without a limit. predicted: as endings takes it."""
        times_s, limits_s = np.asarray(time_s, dtype=float), _limits_s(features)[:, None]
        completes, at_limit, _ = self.endings(features, predicted).to_numpy().T
        completes, is_late = completes[:, None], (at_limit / np.maximum(1 - completes, np.finfo(float).tiny))[:, None]
        shares = times_s / limits_s
        by_then = (1 - is_late) * _cdf(self.early, shares) + is_late * _cdf(self.late, shares)
        return np.asarray(1 - completes * predicted.cdf(times_s) - (1 - completes) * by_then)

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        main: dict[str, Any] = {"early": self.early.tolist(), "late": self.late.tolist()}
        for event, chance in self.chances.items():
            (folder / _trees_of(event)).write_text(chance.booster.model_to_string(), encoding="utf-8")
            main[event] = {"columns": list(chance.columns), "trees_count": chance.trees_count}
        (folder / MAIN).write_text(json.dumps(main, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What save wrote. Raises OSError, ValueError, KeyError, TypeError or BadInput for anything else."""
        main = json.loads((folder / MAIN).read_text(encoding="utf-8"))
        chances = {}
        for event in (REACHES, COMPLETES):
            columns, trees_count = tuple(map(str, main[event]["columns"])), float(main[event]["trees_count"])
            if not trees_count > 0:
                raise ValueError(f"{MAIN}: trees_count {trees_count:g} of {event}; expected a number above 0")
            booster = booster_from((folder / _trees_of(event)).read_text(encoding="utf-8"), len(columns))
            chances[event] = EventModel(event, booster, columns, trees_count)
        return cls(chances, *(np.array(main[name], dtype=float) for name in ("early", "late")))


def outcome_features(runs: pd.DataFrame, past: pd.DataFrame) -> pd.DataFrame:
    """What is known at submission of how runs end: (n, p), NaN where unknown.

    runs: as read_runs has them; past: runs that ended, of all statuses of ENDED. Of each kind of peers, among those
    that had ended before: how often the last ones, and all, ran into their limit and completed, and the share of its
    limit that the last one took; KNOWN, not for the model's trees: of how many last runs of the job that is known."""
    past = with_ends(past)
    past = past.assign(**_events(past), log_s=np.log(np.maximum(past["runtime_s"], LEAST_RUNTIME_S)))
    times = runs["submitted_at"].dt
    known: dict[str, Any] = {name: runs[name] for name in ("requested_runtime_s", "requested_cpus") if name in runs}
    known |= {"hour": times.hour + times.minute / 60, "day": times.day_of_week}
    for peers, earlier in peers_of(runs, past).items():
        for event in (REACHES, COMPLETES):
            values = earlier.values(event)
            known |= _rates(f"{event}_{peers}", earlier, values)
            if peers == JOB:
                known[f"{event}_{KNOWN}"] = np.isfinite(earlier.latest(values, max(WINDOWS))).sum(axis=1)
        past_log_s, past_limits_s = earlier.values("log_s"), _limits_s(earlier.past)[earlier.order]
        known[f"limit_share_{peers}"] = earlier.at_last(past_log_s - np.log(past_limits_s))
    return pd.DataFrame(known, index=runs.index).astype(float)


def fit_outcomes(features: pd.DataFrame, runs: pd.DataFrame, *, seed: int = 0) -> Outcomes:
    """Learn how runs end. features: (n, p) of outcome_features for the rows of runs, which ended, in order of time,
    some of them with a time limit."""
    events, limits_s = _events(runs), _limits_s(runs)
    chances = {
        event: _fit_chance(features[np.isfinite(y)], y[np.isfinite(y)], event, seed) for event, y in events.items()
    }
    is_stopped = np.isfinite(limits_s) & (events[COMPLETES] == 0)
    shares = np.sort(runs["runtime_s"].to_numpy(dtype=float)[is_stopped] / limits_s[is_stopped])
    cut = int(np.searchsorted(shares, REACHED))
    late = _thinned(shares[cut:]) if cut < len(shares) else np.ones(1)  # who is stopped at the limit, at the limit
    early = _thinned(shares[:cut]) if cut else late
    return Outcomes(chances, early, late)


def evaluate_outcomes(ended: pd.DataFrame, seed: int = 0) -> tuple[Figures, Outcomes | None]:
    """Brier scores of the two chances on the last TEST_SHARE of the submissions, by predictor, as figures by key; and
    what was learnt from the others, None without limits.

    ended: read_runs of the statuses ENDED. Beside the model: trees of LightGBM's own settings, and the rates
    (k + 1/2) / (n + 1) among the job's earlier runs, those of user and request, and in the training runs (base)."""
    ended = ended.iloc[-MOST_RUNS:].reset_index(drop=True)
    cut = int((1 - TEST_SHARE) * len(ended))
    limited = np.flatnonzero(np.isfinite(_limits_s(ended)))
    old, new = limited[limited < cut], limited[limited >= cut]
    figures: Figures = {"outcome.n": len(new)}
    if not len(old) or not len(new):
        keys = ["base_rate", *(f"brier.{measure}.model" for measure in MEASURES.values())]
        return figures | known(dict.fromkeys(f"outcome.{key}" for key in keys), NO_LIMITS), None
    features, events = outcome_features(ended, ended), _events(ended)
    model = fit_outcomes(features.iloc[:cut], ended.iloc[:cut], seed=seed)
    figures["outcome.base_rate"] = float(events[REACHES][new].mean())
    groups = ended["group_key"].to_numpy()[new]
    for event, measure in MEASURES.items():
        y = events[event]
        plain = train_booster(features.iloc[old], y[old], {"objective": "binary"}, N_TREES_PLAIN, seed)
        chances = {
            "model": model.chances[event].predict(features.iloc[new]),
            "lightgbm": np.asarray(plain.predict(matrix(features.iloc[new]), num_threads=1)),
            "base": np.full(len(new), y[old].mean()),
        }
        rates = {name: f"{event}_{peers}_{RATE}" for name, peers in (("history", JOB), ("user_request", USER_REQUEST))}
        chances |= {name: features[rate].to_numpy()[new] for name, rate in rates.items() if rate in features}
        errors = {name: (chance - y[new]) ** 2 for name, chance in chances.items()}
        figures |= {f"outcome.brier.{measure}.{name}": float(error.mean()) for name, error in errors.items()}
        apart = bootstrap_difference(errors["model"], errors["history"], groups, np.random.default_rng(seed))
        figures |= apart.figures("outcome.difference", f"{measure}.history")
    return figures, model


def _events(runs: pd.DataFrame) -> dict[str, Floats]:
    """Which runs reached their limit, NaN without one, and which completed: 0 or 1, (n,) each."""
    shares = runs["runtime_s"].to_numpy(dtype=float) / _limits_s(runs)
    reaches = np.where(np.isfinite(shares), shares >= REACHED, np.nan)
    return {REACHES: reaches, COMPLETES: runs["status"].isin(FINISHED).to_numpy(dtype=float)}


def _limits_s(runs: pd.DataFrame) -> Floats:
    """Time limits, NaN without one: (n,)."""
    if "requested_runtime_s" not in runs:
        return np.full(len(runs), np.nan)
    limits_s = runs["requested_runtime_s"].to_numpy(dtype=float)
    return np.where(np.isfinite(limits_s) & (limits_s > 0), limits_s, np.nan)


def _rates(name: str, earlier: EarlierRuns, values: Floats) -> dict[str, Floats]:
    """The last of the values, and rates in the last of WINDOWS and in all, of those that are known."""
    latest, is_there = earlier.latest(values, max(WINDOWS)), np.isfinite(values)
    total, n = earlier.sums(np.column_stack([np.where(is_there, values, 0.0), is_there])).T
    windows = {f"{name}_{window}": _rate(latest[:, :window]) for window in WINDOWS}
    return {f"{name}_last": latest[:, 0], **windows, f"{name}_{RATE}": (total + 0.5) / (n + 1)}


def _rate(latest: Floats) -> Floats:
    """(k + 1/2) / (n + 1) of the known ones of each row: (n, m) to (n,)."""
    return np.asarray((np.nansum(latest, axis=1) + 0.5) / (np.isfinite(latest).sum(axis=1) + 1))


def _fit_chance(features: pd.DataFrame, y: Floats, event: str, seed: int) -> EventModel:
    columns = tuple(str(name) for name in features if not str(name).endswith(KNOWN))

    def fitted(n: int, trees_count: float) -> EventModel:
        settings = SETTINGS | {"min_data_in_leaf": max(1, min(MIN_LEAF, n // LEAF_SHARE))}
        booster = train_booster(features[list(columns)].iloc[:n], y[:n], settings, N_TREES, seed)
        return EventModel(event, booster, columns, trees_count)

    cut, trees_count = int(EARLY_SHARE * len(y)), float(TREES_COUNT[len(TREES_COUNT) // 2])
    if cut and len(y) - cut >= LEAST_TRIED:
        early, late = fitted(cut, trees_count), features.iloc[cut:]
        chances = {float(m): replace(early, trees_count=m).predict(late) for m in TREES_COUNT}
        trees_count = min(chances, key=lambda m: float(((chances[m] - y[cut:]) ** 2).sum()))
    return fitted(len(y), trees_count)


def _thinned(shares: Floats) -> Floats:
    levels = (np.arange(MOST_SHARES) + 0.5) / MOST_SHARES
    return shares if len(shares) <= MOST_SHARES else np.quantile(shares, levels)


def _cdf(shares: Floats, x: Floats) -> Floats:
    """The share of the values of at most x; NaN stays NaN."""
    return np.where(np.isfinite(x), np.searchsorted(shares, x, side="right") / len(shares), np.nan)


def _trees_of(event: str) -> str:
    return f"outcomes-{event}.txt"
