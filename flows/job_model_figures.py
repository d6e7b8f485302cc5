"""One job followed, as figures of artifacts: what a model foretold for its latest runs, what came, and the next one."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from flows.policies import step
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.jobs.predict.trained import Trained

logger = logging.getLogger(__name__)
WORD = "jobs"
MOST_RUNS = 150  # of the job in the figure, the latest
NAME_CHARS = 32  # of its name there, so that it leaves room for what stands beside it
ENOUGH_RUNS = 20
NOT_LEARNT = "The model did not learn from these runs; only the width of its intervals was set by the latest of all."
NEXT = "The last interval is that of the next run."
FINISHED = """
    SELECT run_id, group_key, runtime_s FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND status IN ('completed', 'unknown') AND runtime_s IS NOT NULL
"""


@step
def draw_largest_job(warehouse: Warehouse, source: str, model_id: str) -> str:
    """The job that took most time since what the model has learnt from, of those with enough runs; "" without any."""
    trained = _load(warehouse, model_id)
    runs = fetch(warehouse, FINISHED, {"source": source})
    of_jobs = runs[~runs["run_id"].isin(trained.seen["run_id"])].groupby("group_key")["runtime_s"]
    sums, sizes = of_jobs.sum(), of_jobs.size()
    enough = sums[sizes >= min(ENOUGH_RUNS, sizes.max())]
    return "" if enough.empty else _part(warehouse, source, trained, str(enough.idxmax()), None)


@step
def draw_riskiest_job(warehouse: Warehouse, source: str, model_id: str, least: int, after: str) -> str:
    """The latest runs and the next one of the job that is listed first; "" without a job or a new run of it.

    least: finished runs that a job needs to be listed; after: data version that was predicted from; a continued run
    with another one draws it again."""
    from tasks.jobs.predict.predicting import read_predictions

    logger.debug("following the riskiest job of %s after %s", source, after)
    first = read_predictions(warehouse, source, min_before=least, limit=1)
    if first.empty:
        return ""
    return _part(warehouse, source, _load(warehouse, model_id), str(first["group_key"].iloc[0]), first)


def _load(warehouse: Warehouse, model_id: str) -> "Trained":
    from tasks.jobs.predict.trained import load_trained
    from tasks.warehouse.registry import folder_of

    return load_trained(folder_of(warehouse.models, WORD, model_id))


def _part(warehouse: Warehouse, source: str, trained: "Trained", job: str, next_run: pd.DataFrame | None) -> str:
    from tasks.jobs.predict.predicting import predict_rows
    from tasks.jobs.predict.rows import fetch_runs
    from tasks.report.jobs_evaluation import COLUMNS, fan_figure, fan_of
    from tasks.report.result import figure_markdown, one_line

    with reading(warehouse) as connection:
        past = fetch_runs(connection, source, group_key=job)
    is_new = ~past["run_id"].isin(trained.seen["run_id"])
    rows = past[is_new].tail(MOST_RUNS).reset_index(drop=True)
    if rows.empty:
        return ""
    before = past[~is_new][["submitted_at", "runtime_s"]]
    fan = fan_of(one_line(job, NAME_CHARS), rows, predict_rows(trained, rows, past), before)
    told = f"The job: {job}."
    if next_run is not None:
        last = next_run.assign(submitted_at=next_run["predicted_at"], runtime_s=float("nan"))
        fan = replace(fan, runs=pd.concat([fan.runs, last[COLUMNS]], ignore_index=True))
        told += f" {NEXT}"
    return figure_markdown(fan_figure(fan), f"{told} {NOT_LEARNT}")
