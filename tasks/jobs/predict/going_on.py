"""The runs of a source that go on: how long each still takes, by its champion."""

from dataclasses import dataclass

import pandas as pd

from tasks.jobs.outlook.params import OutlookParams
from tasks.jobs.outlook.running import running_outlook
from tasks.jobs.predict.champions import needed_champion
from tasks.jobs.predict.log_end import log_end
from tasks.jobs.predict.predicting import predict_rows
from tasks.jobs.predict.rows import fetch_runs
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse

RUNNING = ("running",)


@dataclass(frozen=True)
class GoingOn:
    """runs: of running_outlook, the ones that run longest against what was expected first; as_of: UTC; model_id."""

    model_id: str
    as_of: pd.Timestamp
    runs: pd.DataFrame


def runs_going_on(
    warehouse: Warehouse, source: str, params: OutlookParams, *, within_s: float | None = None
) -> GoingOn:
    """What to expect of the runs that have started and not ended when the log ends.

    The log says nothing of what came after its last moment, so each run is as old as it was then. within_s: the time
    that each should take at most, for chance_in_time. Raises NotFound if the source has no model, or no runs."""
    card, trained = needed_champion(warehouse, source)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        as_of = log_end(connection, source, with_unfinished=True)
        running = fetch_runs(connection, source, statuses=RUNNING)
        past = fetch_runs(connection, source)
    running = running[running["started_at"].notna()].reset_index(drop=True)
    deadlines = None if within_s is None else running["started_at"] + pd.to_timedelta(within_s, unit="s")
    told = predict_rows(trained, running, past)
    table = running_outlook(running, told, as_of, params, deadlines_at=deadlines)
    return GoingOn(card.model_id, as_of, table.sort_values(["chance_so_long", "run_id"]).reset_index(drop=True))
