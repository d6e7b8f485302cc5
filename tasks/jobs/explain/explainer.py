"""What explanations are answered from, loaded once: the model in use, finished runs, and what is usual."""

from dataclasses import dataclass

import pandas as pd

from tasks.jobs.predict.champions import needed_champion
from tasks.jobs.predict.log_end import log_end
from tasks.jobs.predict.predicting import end_of
from tasks.jobs.predict.preparation import with_ends
from tasks.jobs.predict.rows import fetch_runs, read_runs
from tasks.jobs.predict.trained import Trained
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard

MOST_TYPICAL = 500  # jobs that say what is usual for all runs, one run each


@dataclass(frozen=True)
class Explainer:
    """The champion of a source and finished runs, all or those of one job, loaded once. overall: usual value of each
    feature over jobs; now: the end of the whole log."""

    source: str
    card: ModelCard
    trained: Trained
    runs: pd.DataFrame
    overall: pd.Series
    now: pd.Timestamp


def load_explainer(warehouse: Warehouse, source: str) -> Explainer:
    """What explanations of any run of a source need. Raises NotFound if it has no runs or no trained model."""
    card, trained = needed_champion(warehouse, source)
    runs = with_ends(read_runs(warehouse, source))
    return Explainer(source, card, trained, runs, _overall(trained, runs), end_of(runs))


def load_job_explainer(warehouse: Warehouse, source: str, group_key: str) -> Explainer:
    """The same for the runs of one job: only these are read, once `jobs-explain` has stored what is usual for all."""
    card, trained = needed_champion(warehouse, source)
    overall = _stored_overall(warehouse, source, card.model_id)
    if overall is None:
        return load_explainer(warehouse, source)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        runs = with_ends(fetch_runs(connection, source, group_key=group_key))
        now = log_end(connection, source)
    return Explainer(source, card, trained, runs, overall.reindex(trained.model.columns), now)


def _overall(trained: Trained, runs: pd.DataFrame) -> pd.Series:
    """The usual value of each feature: the median over the last runs of the jobs."""
    last = runs.groupby("group_key", sort=True).tail(1).iloc[:MOST_TYPICAL]
    past = runs[pd.Index(last["group_key"]).get_indexer(pd.Index(runs["group_key"])) >= 0]
    return trained.features(last, past).median()


def _stored_overall(warehouse: Warehouse, source: str, model_id: str) -> pd.Series | None:
    rows = fetch(
        warehouse,
        "SELECT feature, value FROM jobs.usual_values WHERE source = $source AND model_id = $model_id",
        {"source": source, "model_id": model_id},
    )
    return None if rows.empty else rows.set_index("feature")["value"].astype(float)
