"""Late runs, told while they still go on: longer than 95 % of such runs were predicted to take."""

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput, NotFound
from tasks.jobs.outlook.params import LateParams, OutlookParams
from tasks.jobs.params import WatchParams
from tasks.jobs.watch_champion import Champion
from tasks.jobs.watch_evidence import as_evidence
from tasks.warehouse.alarms import Alarm
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.jobs.distribution import Predicted

logger = logging.getLogger(__name__)
KIND = "late-run"
CANDIDATES = Path(__file__).with_name("watch_late.sql")
RUNNING = "running"
HISTORY = "history"  # the predictor where there is no model: the job's own runs
BLOCK = 2000  # runs compared together
Prediction = tuple[pd.DataFrame, "Predicted"]  # runs with predictor and n_history, row i of instance i


def find_late(
    warehouse: Warehouse,
    source: str,
    watch: WatchParams,
    late: LateParams,
    outlook: OutlookParams,
    champion: Callable[[], Champion | None],
    *,
    told_by: tuple[str, ...] = (),
) -> list[Alarm]:
    """An alarm for each run that goes on, or has just ended, beyond its predicted time of late.level.

    How long a run goes on already is counted up to the moment until which the log knows of it, not by this machine's
    clock: a log that nobody has read for a day says nothing of that day. A run is left out if an alarm of this kind
    or of one of told_by names it, and if its limit passed more than watch.look_back_days before the newest moment (its
    end was never logged). Predicted by the champion, or else by the job's own earlier runs, at least
    1 / (1 - level) of them."""
    with reading(warehouse) as connection:
        runs = _candidates(connection, source, watch, late, [KIND, *told_by])
    if runs.empty:
        return []
    alarms: list[Alarm] = []
    from tasks.jobs.outlook.late import late_runs  # scipy: needed only where a run may be late

    oldest = runs["newest_at"].iloc[0] - pd.Timedelta(days=watch.look_back_days)
    for known, predicted in _predictions(warehouse, source, watch, late, runs, champion):
        for rows, known_at in _at_one_moment(known):
            found = late_runs(known.iloc[rows], predicted.rows(rows), known_at, late, outlook)
            found = found[found["late_since_at"] > oldest]
            more = known.iloc[rows].set_index("run_id")[["ended_at", "runtime_s", "known_at", "predictor", "n_history"]]
            alarms += [_alarm(source, row) for row in found.join(more, on="run_id").to_dict("records")]
    logger.info("%d late runs in source %s, of %d that go on or have just ended", len(alarms), source, len(runs))
    return alarms


def _candidates(
    connection: Connection, source: str, watch: WatchParams, late: LateParams, kinds: list[str]
) -> pd.DataFrame:
    """Runs that no alarm of these kinds names, that go on or ended within late.finished_within_s, by submission.

    Only those that have lasted late.min_over_s: no other can be late. Columns: run_id, group_key, status,
    submitted_at, started_at, ended_at, runtime_s, known_at: until when the log knows what became of it, and newest_at:
    the latest such moment of the whole log."""
    asked = {
        "source": source,
        "kinds": kinds,
        "statuses": list(watch.statuses),
        "look_back_days": watch.look_back_days,
        "min_over_s": late.min_over_s,
        "finished_within_s": late.finished_within_s,
    }
    return connection.execute(CANDIDATES.read_text(), asked).df()


def _predictions(
    warehouse: Warehouse,
    source: str,
    watch: WatchParams,
    late: LateParams,
    runs: pd.DataFrame,
    champion: Callable[[], Champion | None],
) -> Iterator[Prediction]:
    model = champion()
    if model is not None:
        told = _by_model(warehouse, source, watch, runs, model)
        if told is not None:
            yield told
            return
    from tasks.jobs.watch_history import fetch_earlier, predict_by_history

    with reading(warehouse) as connection:
        earlier = fetch_earlier(connection, source, runs["group_key"].tolist(), watch.history_statuses)
    for first in range(0, len(runs), BLOCK):
        part = runs.iloc[first : first + BLOCK]
        found = predict_by_history(part, earlier, late.level)
        if found.predicted is not None:
            yield part.iloc[found.at].assign(predictor=HISTORY, n_history=found.n_history), found.predicted


def _by_model(
    warehouse: Warehouse, source: str, watch: WatchParams, runs: pd.DataFrame, model: Champion
) -> Prediction | None:
    """What the model predicts of these runs; None, with a warning, if it cannot."""
    from tasks.jobs.predict.earlier import earlier_runs
    from tasks.jobs.predict.predicting import predict_rows
    from tasks.jobs.predict.preparation import with_ends
    from tasks.jobs.predict.rows import (
        FINISHED,
        fetch_runs,
    )

    model_id, trained = model
    with reading(warehouse) as connection:
        logged = fetch_runs(connection, source, statuses=sorted({*FINISHED, *watch.statuses, RUNNING}))
    rows = logged.set_index("run_id", drop=False).loc[runs["run_id"]].reset_index(drop=True)
    past = with_ends(logged[logged["status"].isin(FINISHED) & logged["runtime_s"].notna()].reset_index(drop=True))
    try:
        predicted = predict_rows(trained, rows, past)
    except (BadInput, NotFound) as error:
        logger.warning("watching source %s by its history: %s cannot predict it: %s", source, model_id, error)
        return None
    return runs.assign(predictor=model_id, n_history=earlier_runs(rows, past).n), predicted


def _at_one_moment(runs: pd.DataFrame) -> Iterator[tuple[np.ndarray[Any, np.dtype[np.int64]], pd.Timestamp]]:
    """The rows that are known up to the same moment, and that moment."""
    moments = runs["known_at"].reset_index(drop=True)
    for known_at in moments.unique():
        yield np.flatnonzero(moments == known_at), known_at


def _alarm(source: str, run: Mapping[Hashable, Any]) -> Alarm:
    from tasks.jobs.outlook.words import late_words

    row = {str(name): value for name, value in run.items()}
    evidence = as_evidence({name: value for name, value in row.items() if name != "run_id"})
    return Alarm("jobs", source, KIND, str(row["run_id"]), late_words(row), evidence)
