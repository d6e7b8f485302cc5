"""The scheduled check of a log: runs beyond what was predicted of them, jobs that have stopped, jobs that drift.

An alarm is what its own prediction does not allow, at a stated rate of false ones. A run's score is its distance above
its predicted median against that of the time which 98 % stay under, in logs, so it says the same of seconds and of
days. Alarmed is on the score that the latest runs exceeded as often as `alarms_per_day` allows at the log's present
rate of runs: whatever the model, the rate is a rate (split conformal prediction, Vovk et al. 2005, with a calibration
that moves on, Gibbs & Candès 2021). A job has stopped when its present gap is long against its own earlier ones, by the
same rule over the gaps after which jobs came back. Watching twice raises nothing new."""

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput, NotFound
from tasks.jobs.params import BEFORE_DAYS, LEAST_AFTER, LEAST_BEFORE, MAX_DRIFT_RUNS, DriftParams, WatchParams
from tasks.quantities import duration, number, times, utc_text
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import fetch, reading, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import decisions

if TYPE_CHECKING:
    from tasks.jobs.predict.trained import Trained

logger = logging.getLogger(__name__)
Floats = NDArray[np.float64]
Times = NDArray[np.datetime64]
Champion = tuple[str, "Trained"]  # id of the model, and the model
RUNS = Path(__file__).with_name("watch.sql")
DRIFT_RUNS = Path(__file__).with_name("watch_drift.sql")
SLOW, STOPPED, DRIFT = "slow-run", "stopped-job", "drift"
FINISHED = ("completed", "unknown")
HISTORY = "history"  # the predictor where there is no model: the job's own runs
LONGEST = "longest"  # and where runs are too few to say how rare an alarm is
MOST_RUNS = 500_000  # of the log, the latest
DAY = np.timedelta64(1, "D")

LEVEL = 0.98
LEAST_REACH = 0.05  # in logs: that a run takes 5 % longer than ever is no news
RATE_RUNS = 200  # the latest runs that say how many a day there are
MOST_RANKED = 100_000  # runs that are predicted to rank others among them: the latest
LEAST_DAYS = 1e-9
RANKED_RUNS = 500  # runs that a score is ranked among, at least, and so many that TOP_RUNS of them are alarmed on
TOP_RUNS = 10
BLOCK = 50  # runs after which scores are ranked anew, and that are known before the share is corrected
MOST_BLOCKS = 200
MOST_SHARE = 0.05  # of the runs: a run that one in twenty exceeds is no alarm, however few runs there are a day
STOPPED_SHARE = 0.2  # of the budget
FEEDBACK, MOST_CORRECTION = 0.15, float(np.log(5))  # of the log of the share, by one alarm, and at most
MOST_AT_ONCE = 3.0  # alarms that a gap between ends allows, however long it is
LEAST_HISTORY, HISTORY_RUNS = 10, 50  # without a model: earlier runs that a job needs, and how many count
LEAST_LONGEST, FAR = 5, 3.0  # earlier runs of a job, and times the longest of them, in a log too short for ranks
MOST_SECONDS = 3e9  # a century: what a time can be moved by
GAPS = 20  # of a job, the latest, which say its rhythm
REGULAR = 4.0  # the longest of them is at most so many times their median
OVERDUE = 2.0  # times the longest of them, at least, before a job counts as stopped


def watch_source(warehouse: Warehouse, source: str, watch: WatchParams, drift: DriftParams) -> list[str]:
    """Raise an alarm for each slow run, stopped job and drifted job of a source; returns the ids of the new ones.

    The last days are those of the log, so a log that arrives late is watched as well. Slow runs and stopped jobs come
    with the most time lost first."""
    with reading(warehouse) as connection:
        parameters = {
            "source": source,
            "statuses": sorted({*watch.statuses, *FINISHED}),
            "look_back_days": watch.look_back_days,
            "most": MOST_RUNS,
        }
        runs = connection.execute(RUNS.read_text(), parameters).df()
    champion = functools.cache(lambda: champion_in_use(warehouse, source))
    alarms: list[Alarm] = []
    if not runs.empty:
        alarms += slow_runs(warehouse, source, watch, runs, champion) + stopped_jobs(source, watch, runs)
    if drift.is_watched:
        alarms += drifted_jobs(warehouse, source, drift, champion)
    if not alarms:
        return []
    with writing(warehouse) as connection:
        raised = raise_alarms(connection, alarms)
    logger.info("%d alarms in source %s, %d of them new", len(alarms), source, len(raised))
    return raised


def champion_in_use(warehouse: Warehouse, source: str) -> Champion | None:
    """The model in use for a source; None before the first training, and, with a warning, if it cannot be read."""
    try:
        if not any(decision.source == source for decision in decisions(warehouse.models, "jobs")):
            return None
        from tasks.jobs.predict.trained import champion_of  # trees: seconds of import, needed with a model only

        champion = champion_of(warehouse, source)
    except (BadInput, NotFound) as error:
        logger.warning("watching source %s without its model: %s", source, error)
        return None
    return (champion[0].model_id, champion[1]) if champion else None


def excess_scores(log_median: Floats, log_high: Floats, log_s: Floats) -> Floats:
    """(log s - median) / (high - median), high the time that LEVEL of such runs stay under: (n,), logs of seconds."""
    return np.asarray((log_s - log_median) / np.maximum(log_high - log_median, LEAST_REACH))


@dataclass(frozen=True)
class Thresholds:
    """Of each of n runs: the score that makes an alarm, infinite where too little is known; and the expected alarms a
    day at that score, at most the budget."""

    score: Floats
    per_day: Floats


def score_thresholds(
    scores: Floats, submitted_at: Times, known_at: Times, per_day: float, *, most_share: float = MOST_SHARE
) -> Thresholds:
    """The score of each of n runs from which on it is an alarm, so that `per_day` are expected.

    scores, submitted_at, known_at: (n,); known_at: when a run had ended that others are ranked among, else NaT. With a
    day's rate r of the last RATE_RUNS known, p = per_day / r of the runs may be alarmed on: the threshold is the score
    at rank q (m + 1) of the latest m known at the submission, between two of them the line. q is p times a correction
    that each alarm lowers and time without one raises (adaptive conformal inference, Gibbs & Candès 2021, in logs): a
    log that turns wilder or calmer, faster or slower, keeps its rate. Those ranked among are counted in blocks."""
    ends = np.argsort(known_at, kind="stable")[: int((~np.isnat(known_at)).sum())]
    ended_at, ranked_scores = known_at[ends], scores[ends]
    n_known = np.searchsorted(ended_at, submitted_at)
    order, place = np.argsort(n_known, kind="stable"), 0
    block = BLOCK * max(1, -(-len(ends) // (BLOCK * MOST_BLOCKS)))
    thresholds = Thresholds(np.full(len(scores), np.inf), np.zeros(len(scores)))
    ranked, share, rate, correction = np.zeros(0), 0.0, 0.0, 0.0
    for n in range(len(ends) + 1):
        if n > 1 and (n < RANKED_RUNS or n % block == 0) and (now := _rate(ended_at[:n])):
            rate, share = now, min(per_day / now, most_share)
            ranked = _ranked(ranked_scores[:n], share)
        if n > BLOCK and np.isfinite(score := thresholds.score[ends[n - 1]]):
            in_time = min(per_day * float((ended_at[n - 1] - ended_at[n - 2]) / DAY), MOST_AT_ONCE)
            excess = float(ranked_scores[n - 1] > score) - (share + in_time) / 2
            correction = float(np.clip(correction - FEEDBACK * excess, -MOST_CORRECTION, MOST_CORRECTION))
        while place < len(order) and n_known[order[place]] == n:
            thresholds.score[order[place]] = _score_at(ranked, share, min(share * np.exp(correction), most_share))
            thresholds.per_day[order[place]] = share * rate
            place += 1
    return thresholds


def _rate(known_at: Times) -> float | None:
    """Runs a day of the last RATE_RUNS; None where they ended at one moment."""
    latest = known_at[-RATE_RUNS:]
    days = (latest[-1] - latest[0]) / DAY
    return (len(latest) - 1) / days if days > 0 else None


def _ranked(scores: Floats, share: float) -> Floats:
    """The latest of these scores, so many that TOP_RUNS are alarmed on, the highest first."""
    return np.sort(scores[-max(RANKED_RUNS, int(np.ceil(TOP_RUNS / share))) :])[::-1]


def _score_at(ranked: Floats, share: float, corrected: float) -> float:
    """The score that the corrected share of ranked ones exceeds, at most the highest; infinite where that is not rare
    enough for the share."""
    if share * (len(ranked) + 1) < 1:
        return float(np.inf)
    rank = max(1.0, corrected * (len(ranked) + 1))
    low, high = int(rank), min(int(rank) + 1, len(ranked))
    return float(ranked[low - 1] + (rank - low) * (ranked[high - 1] - ranked[low - 1]))


def slow_runs(
    warehouse: Warehouse, source: str, params: WatchParams, runs: pd.DataFrame, champion: Callable[[], Champion | None]
) -> list[Alarm]:
    """An alarm for each run that goes on, or ended in the last days, beyond its own prediction; most time lost first.

    runs: of watch.sql. How long a run goes on is counted up to the moment until which the log knows of it: a log that
    nobody has read for a day says nothing of that day. Predicted by the champion, or else by the last runs of the job,
    as it was known at the submission. Ranked among runs that the model has not learnt from; where these are too few, by
    the longest earlier run of the job."""
    newest_at = runs["newest_at"].iloc[0]
    since_at = newest_at - pd.Timedelta(days=params.look_back_days)
    is_running = (runs["runtime_s"].isna() & runs["started_at"].notna()).to_numpy()
    ended_at = runs["ended_at"].to_numpy()
    is_watched = runs["status"].isin(params.statuses).to_numpy() & ~is_running
    candidates = np.flatnonzero(is_running | (is_watched & (ended_at > since_at.to_datetime64())))
    if not len(candidates):
        return []
    model = champion()
    answer = _by_model(warehouse, source, params, model, runs, candidates, is_watched) if model is not None else None
    predicted, least_s = answer or _by_history(runs, _ranked_with(runs, candidates, is_watched, params))
    places, (log_median, log_high) = predicted.index.to_numpy(), predicted[["log_median", "log_high"]].to_numpy().T
    rows = runs.iloc[places]
    log_s = np.log(np.maximum(_elapsed_s(rows, is_running[places]), least_s))
    scores = excess_scores(log_median, log_high, log_s)
    is_known = ~is_running[places] & is_watched[places] & predicted["is_new"].to_numpy()
    known_at = rows["ended_at"].where(is_known).to_numpy()
    budget = (1 - STOPPED_SHARE) * params.alarms_per_day
    limits = score_thresholds(scores, rows["submitted_at"].to_numpy(), known_at, budget)
    reach = np.maximum(log_high - log_median, LEAST_REACH)
    with np.errstate(over="ignore"):
        expected = pd.DataFrame(
            {
                "median_s": np.exp(log_median),
                "limit_s": np.exp(log_median + limits.score * reach),
                "n_history": predicted["n_history"],
                "predictor": predicted["predictor"],
                "expected_per_day": limits.per_day,
            },
            index=places,
        ).reindex(candidates)
    is_open = ~np.isfinite(expected["limit_s"]).to_numpy()
    expected[is_open] = _by_longest(runs, candidates[is_open], is_watched, budget)
    if not np.isfinite(expected["limit_s"]).any():
        logger.info("source %s has too few runs for %g alarms a day", source, params.alarms_per_day)
    table = runs.iloc[candidates].assign(is_running=is_running[candidates], **expected.set_axis(runs.index[candidates]))
    since = table["started_at"].fillna(table["submitted_at"]) + pd.to_timedelta(
        np.fmin(table["limit_s"].to_numpy(), MOST_SECONDS), unit="s"
    ).round("us")
    table["elapsed_s"] = _elapsed_s(table, is_running[candidates])
    table["lost_s"] = table["elapsed_s"] - table["median_s"]
    is_slow = np.maximum(table["elapsed_s"], least_s) > np.maximum(table["limit_s"], table["median_s"])
    is_slow &= ~table["is_running"] | (since > since_at)  # else its end was never logged
    ranked = table[is_slow].sort_values(["lost_s", "run_id"], ascending=[False, True])
    return [_slow_alarm(source, row) for row in ranked.drop(columns="newest_at").to_dict("records")]


def _elapsed_s(rows: pd.DataFrame, is_running: NDArray[np.bool_]) -> Floats:
    return np.where(is_running, (rows["known_at"] - rows["started_at"]).dt.total_seconds(), rows["runtime_s"])


def _by_longest(
    runs: pd.DataFrame, places: NDArray[np.intp], is_watched: NDArray[np.bool_], per_day: float
) -> pd.DataFrame:
    """What is expected of the runs at `places` of a log too short for ranks: FAR times the longest of at least
    LEAST_LONGEST earlier runs of the job, which one in n + 1 exceeds at most; not where that is beyond the budget."""
    from tasks.jobs.predict.peers import earlier_runs

    earlier = earlier_runs(runs.iloc[places], runs[runs["status"].isin(FINISHED)].reset_index(drop=True))
    latest_s = earlier.latest(earlier.values("runtime_s"), HISTORY_RUNS)
    latest_s[earlier.n < LEAST_LONGEST] = np.nan
    rate = _rate(np.sort(runs["ended_at"].to_numpy()[is_watched])) or np.inf
    expected = rate / (np.minimum(earlier.n, HISTORY_RUNS) + 1)
    history = pd.DataFrame(latest_s).agg(["median", "max"], axis=1)
    return pd.DataFrame(
        {
            "median_s": history["median"],
            "limit_s": np.where(expected <= per_day, FAR * history["max"], np.nan),
            "n_history": earlier.n,
            "predictor": LONGEST,
            "expected_per_day": expected,
        }
    ).set_index(places)


def _ranked_with(
    runs: pd.DataFrame, candidates: NDArray[np.intp], is_ranked: NDArray[np.bool_], params: WatchParams
) -> NDArray[np.intp]:
    """Places of the runs to predict: the candidates for an alarm, and as many earlier runs as they are ranked among."""
    ended_at = runs["ended_at"].to_numpy()
    ended = np.flatnonzero(is_ranked)
    ended = ended[np.argsort(ended_at[ended], kind="stable")][-MOST_RANKED:]
    n_before = int(np.searchsorted(ended_at[ended], runs["submitted_at"].to_numpy()[candidates].min()))
    latest = ended_at[ended[max(0, n_before - RATE_RUNS) : n_before]]
    days = max((latest[-1] - latest[0]) / DAY, LEAST_DAYS) if len(latest) else 1.0
    n = int(TOP_RUNS * len(latest) / days / ((1 - STOPPED_SHARE) * params.alarms_per_day))
    first = max(0, n_before - max(RANKED_RUNS, n) - BLOCK)  # a block more, since those known are counted in blocks
    return np.unique(np.concatenate([candidates, ended[first:]]))


def _by_model(
    warehouse: Warehouse,
    source: str,
    params: WatchParams,
    model: Champion,
    runs: pd.DataFrame,
    candidates: NDArray[np.intp],
    is_watched: NDArray[np.bool_],
) -> tuple[pd.DataFrame, float] | None:
    """What the model predicts of these runs and of those that they are ranked among, and how long shorter runs count;
    None, warned, if it cannot.

    By place in the log: log_median and log_high (LEVEL), logs of seconds, n_history, is_new (the model did not learn
    from the run) and predictor."""
    from tasks.jobs.predict.peers import earlier_runs
    from tasks.jobs.predict.predicting import predict_rows
    from tasks.jobs.predict.preparation import fetch_runs, with_ends

    model_id, trained = model
    is_new = ~runs["run_id"].isin(trained.seen["run_id"]).to_numpy()
    places = _ranked_with(runs, candidates, is_watched & is_new, params)
    with reading(warehouse) as connection:
        logged = fetch_runs(connection, source, statuses=sorted({*FINISHED, *params.statuses, "running"}))
    rows = logged.set_index("run_id", drop=False).reindex(runs["run_id"].iloc[places]).reset_index(drop=True)
    past = with_ends(logged[logged["status"].isin(FINISHED) & logged["runtime_s"].notna()].reset_index(drop=True))
    try:
        predicted = predict_rows(trained, rows, past)
    except (BadInput, NotFound) as error:
        logger.warning("watching source %s by its history: %s cannot predict it: %s", source, model_id, error)
        return None
    median, high = (np.log(predicted.quantile(level)) for level in (0.5, LEVEL))
    columns = {"n_history": earlier_runs(rows, past).n, "is_new": is_new[places], "predictor": model_id}
    return pd.DataFrame({"log_median": median, "log_high": high, **columns}, places), trained.model.least_s


def _by_history(runs: pd.DataFrame, places: NDArray[np.intp]) -> tuple[pd.DataFrame, float]:
    """The same by the last runs of each job, where it has enough."""
    from tasks.jobs.predict.peers import LEAST_RUNTIME_S

    past = runs[runs["status"].isin(FINISHED)].reset_index(drop=True)
    median, high, n = history_quantiles(runs.iloc[places], past)
    columns = {"n_history": n, "is_new": True, "predictor": HISTORY}
    table = pd.DataFrame({"log_median": median, "log_high": high, **columns}, places)
    return table[np.isfinite(median)], LEAST_RUNTIME_S


def history_quantiles(rows: pd.DataFrame, past: pd.DataFrame) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Median and LEVEL, in logs of seconds, of the job's last HISTORY_RUNS that had ended before a submission, by the
    (n + 1) rule, NaN below LEAST_HISTORY of them; and how many had ended: (n,) each.

    rows: group_key, submitted_at; past: finished runs with ended_at and runtime_s."""
    from tasks.jobs.predict.mixture import order_quantiles
    from tasks.jobs.predict.peers import LEAST_RUNTIME_S, earlier_runs

    earlier = earlier_runs(rows, past)
    latest = earlier.latest(np.log(np.maximum(earlier.values("runtime_s"), LEAST_RUNTIME_S)), HISTORY_RUNS)
    latest[earlier.n < LEAST_HISTORY] = np.nan
    median, high = median_and_high(order_quantiles(latest))
    return median, high, earlier.n


def median_and_high(quantiles: Floats) -> tuple[Floats, Floats]:
    """The median and LEVEL of quantiles at pool.LEVELS: (n, n_levels) to (n,) each."""
    from tasks.jobs.predict.mixture import LEVELS

    middle = int(np.searchsorted(LEVELS, 0.5))
    return quantiles[:, middle - 1 : middle + 1].mean(axis=1), quantiles[:, int(np.searchsorted(LEVELS, LEVEL))]


def _slow_alarm(source: str, row: Mapping[Any, Any]) -> Alarm:
    took = f"goes on since {duration(row['elapsed_s'])}" if row["is_running"] else f"took {duration(row['elapsed_s'])}"
    most = "at most " if row["predictor"] == LONGEST else ""
    message = (
        f"{row['group_key']}: run {row['run_id']} {took}, {times(row['elapsed_s'] / row['median_s'])} the "
        f"{duration(row['median_s'])} that were expected; alarm beyond {duration(row['limit_s'])}, "
        f"which {most}{number(row['expected_per_day'])} runs a day are expected to pass"
    )
    evidence = as_evidence({name: value for name, value in row.items() if name != "run_id"})
    return Alarm("jobs", source, SLOW, str(row["run_id"]), message, evidence)


def stopped_jobs(source: str, params: WatchParams, runs: pd.DataFrame) -> list[Alarm]:
    """An alarm for each job of a regular rhythm whose next run became overdue by far in the last days of the log.

    runs: of watch.sql. The log is known up to its last submission: its last end can be that of a run of weeks. Overdue
    is a gap that is long against the longest of the job's last GAPS ones: by a factor that so few gaps after which a
    job came back had that STOPPED_SHARE of the budget are expected, and by OVERDUE."""
    newest_at = runs["submitted_at"].max().to_datetime64()
    gaps = regular_gaps(runs, newest_at)
    is_open = gaps["next_at"].isna().to_numpy()
    if not is_open.any():
        return []
    scored_at = gaps["last_at"].where(~is_open, newest_at).to_numpy()
    limits = score_thresholds(
        gaps["ratio"].to_numpy(), scored_at, gaps["next_at"].to_numpy(), STOPPED_SHARE * params.alarms_per_day
    )
    opened = gaps[is_open].assign(limit=limits.score[is_open], expected_per_day=limits.per_day[is_open])
    limit = np.maximum(opened.pop("limit"), OVERDUE)
    overdue_at = opened["last_at"] + pd.to_timedelta(np.minimum(limit * opened["longest_s"], MOST_SECONDS), unit="s")
    since_at = newest_at - np.timedelta64(int(params.look_back_days * 86_400), "s")
    table = opened.assign(overdue_at=overdue_at)[(opened["ratio"] > limit) & (overdue_at > since_at)]
    return [_stopped_alarm(source, row) for row in table.sort_values("ratio", ascending=False).to_dict("records")]


def regular_gaps(runs: pd.DataFrame, newest_at: np.datetime64) -> pd.DataFrame:
    """The gaps between submissions of jobs that had a regular rhythm before: one row a gap, the last of a job is open.

    runs: group_key, submitted_at. Columns: group_key, last_at, next_at (missing where open), gap_s (up to newest_at
    where open), usual_s and longest_s (median and longest of the job's GAPS gaps before), ratio (gap over longest)."""
    ordered = runs.sort_values(["group_key", "submitted_at"])[["group_key", "submitted_at"]]
    at, (job, _) = ordered["submitted_at"].to_numpy(), pd.factorize(ordered["group_key"])
    is_last = np.append(job[1:] != job[:-1], True)
    gap_s = (np.where(is_last, newest_at, np.append(at[1:], at[-1:])) - at) / np.timedelta64(1, "s")
    number_in_job = np.arange(len(job)) - np.searchsorted(job, job)
    places = np.flatnonzero(number_in_job >= GAPS)
    before = gap_s[places[:, None] - np.arange(1, GAPS + 1)]  # (n, GAPS)
    usual_s, longest_s = np.median(before, axis=1), before.max(axis=1)
    is_regular = (usual_s > 0) & (longest_s <= REGULAR * usual_s)
    places, usual_s, longest_s = places[is_regular], usual_s[is_regular], longest_s[is_regular]
    return pd.DataFrame(
        {
            "group_key": ordered["group_key"].to_numpy()[places],
            "last_at": at[places],
            "next_at": np.where(is_last[places], np.datetime64("NaT"), np.append(at[1:], at[-1:])[places]),
            "gap_s": gap_s[places],
            "usual_s": usual_s,
            "longest_s": longest_s,
            "ratio": gap_s[places] / longest_s,
        }
    )


def _stopped_alarm(source: str, row: Mapping[Any, Any]) -> Alarm:
    message = (
        f"{row['group_key']}: no run for {duration(row['gap_s'])}, usually one every {duration(row['usual_s'])}, "
        f"never more than {duration(row['longest_s'])} apart in its last {GAPS}: it has stopped running"
    )
    subject = f"{row['group_key']} @ {utc_text(row['last_at'])}"
    return Alarm("jobs", source, STOPPED, subject, message, as_evidence(row))


def drifted_jobs(
    warehouse: Warehouse, source: str, drift: DriftParams, champion: Callable[[], Champion | None]
) -> list[Alarm]:
    """An alarm for each job that has drifted to another shape of the champion in the last days of the log.

    Without a champion there are no shapes: an alarm for each job whose runtimes have changed. Once told, a change is
    the job's new normal: only runs submitted after the last one that the alarm had seen are compared from then on. So
    the same drift is told once, and the next one as soon as enough runs stand on both sides of it. The false discovery
    rate holds for each search over the jobs of a source."""
    parameters = {"source": source, "kind": DRIFT, "statuses": list(FINISHED), "max_runs": MAX_DRIFT_RUNS}
    parameters |= {"since_days": drift.since_days, "before_days": BEFORE_DAYS, "min_before": LEAST_BEFORE}
    # by job and submission, with since_at (since_days before the last submission) and until_at (that) in every row
    runs = fetch(warehouse, DRIFT_RUNS.read_text(), parameters | {"min_after": LEAST_AFTER})
    if runs.empty:
        return []
    from tasks.jobs.drift import drift_words, find_drift  # scipy: needed only where a job has enough runs

    model = champion()
    compared = runs[["group_key", "submitted_at", "runtime_s"]]
    since_at, until_at = runs["since_at"].iloc[0], runs["until_at"].iloc[0]
    shapes = model[1].shapes.get("ratio") if model else None
    medians_s = {str(key): float(median_s) for key, median_s in model[1].history_s.items()} if model else None
    comparison = find_drift(compared, drift, since_at, shapes=shapes, medians_s=medians_s)
    table = comparison[comparison["has_drifted" if model else "has_changed"].astype(bool)].assign(
        since_at=since_at,
        until_at=until_at,
        shapes_of=model[0] if model else None,
        false_discovery_rate=drift.false_discovery_rate,
    )
    table = table if model else table.drop(columns=["shape_before", "shape_after"])
    logger.info("%d of %d jobs of source %s have drifted", len(table), len(comparison), source)
    return [
        Alarm("jobs", source, DRIFT, f"{row['group_key']} @ {utc_text(until_at)}", drift_words(row), as_evidence(row))
        for row in table.to_dict("records")
    ]


def as_evidence(figures: Mapping[Any, Any]) -> dict[str, Any]:
    """The same with plain numbers and times as ISO 8601; what is missing, or is no number, is left out."""
    return {str(name): _plain(value) for name, value in figures.items() if value is not None and not pd.isna(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return utc_text(value)
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if not isinstance(plain, float) or np.isfinite(plain) else str(plain)
