"""The parameters of `jobs-explain`, and what it returns. Nothing here imports prefect."""

from typing import TypedDict

from pydantic import Field

from flows.job_params import OF_SOURCE, WAREHOUSE, OfSource
from tasks.jobs.explain.params import ExplainParams
from tasks.params import Params
from tasks.source_names import ONLY_SOURCE
from tasks.warehouse.place import Warehouse


class ExplainFlowParams(Params):
    """The reasons of the runs of a source, and how far they can be trusted."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    explain: ExplainParams = Field(ExplainParams(), description="Which runs are explained, against what")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class ReasonsFound(TypedDict):
    """What was explained. n_runs: past runs, n_next: next runs whose reasons stand in jobs.reasons now; n_reasons: its
    rows; mrr: mean reciprocal rank of the recorded cause among the reasons, None where no cause is recorded;
    report: path of the page of the source."""

    model_id: str
    n_runs: int
    n_next: int
    n_reasons: int
    mrr: float | None
    report: str
