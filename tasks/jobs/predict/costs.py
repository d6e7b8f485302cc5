"""The jobs of a source that cost the most waiting through variation: as measured, and as the champion expects it."""

from dataclasses import dataclass

import pandas as pd

from tasks.jobs.outlook.costliest import costliest_jobs
from tasks.jobs.outlook.params import CostParams
from tasks.jobs.predict.champions import needed_champion
from tasks.jobs.predict.predicting import predict_next
from tasks.jobs.predict.preparation import with_ends
from tasks.jobs.predict.rows import read_runs
from tasks.warehouse.place import Warehouse

DAY_S = 86_400.0


@dataclass(frozen=True)
class Costs:
    """jobs: of costliest_jobs; days: length of the log, which runs per day are counted over; model_id."""

    model_id: str
    days: float
    jobs: pd.DataFrame


def costs_of_source(warehouse: Warehouse, source: str, params: CostParams) -> Costs:
    """The costliest jobs of a source. Raises NotFound if it has no runs or no model, BadInput as costliest_jobs."""
    card, trained = needed_champion(warehouse, source)
    past = with_ends(read_runs(warehouse, source))
    top = costliest_jobs(past, params)  # says what is wrong with the log, and whose next runs are asked for
    found = predict_next(trained, past, keys=set(top["group_key"]))
    jobs = costliest_jobs(past, params, predicted=found.predicted, keys=found.jobs["group_key"].tolist())
    days = (past["submitted_at"].max() - past["submitted_at"].min()).total_seconds() / DAY_S
    return Costs(card.model_id, days, jobs)
