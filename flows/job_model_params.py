"""The parameters of the flows about shapes and models of jobs. Nothing here imports prefect."""

from pydantic import Field

from flows.job_params import OF_SOURCE, WAREHOUSE, OfSource
from tasks.jobs.offered_names import AUTO, ReaderName
from tasks.jobs.params import GroupParams, ReadParams, SummaryParams
from tasks.jobs.predict.params import EvaluateParams
from tasks.params import Params
from tasks.source_names import ONLY_SOURCE
from tasks.warehouse.place import Warehouse

PROTOCOL = "How the log is split, shapes are found, models are trained and measured"


class TrainFlowParams(Params):
    """The training of a model on a source."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    evaluate: EvaluateParams = Field(EvaluateParams(), description=PROTOCOL)
    warehouse: Warehouse = Field(description=WAREHOUSE)


class PredictFlowParams(Params):
    """The next run of every job of a source."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    summary: SummaryParams = Field(
        SummaryParams(), description="Its min_support says how many finished runs a job needs to be listed"
    )
    warehouse: Warehouse = Field(description=WAREHOUSE)


class EvaluateFlowParams(Params):
    """An experiment: how well runtimes of a source, or of job logs, are predicted with these parameters."""

    source: OfSource = Field(ONLY_SOURCE, description=f"{OF_SOURCE}; not looked at where logs are named")
    logs: list[str] = Field(
        [], description="Job logs to evaluate instead of the source: files or folders; they are not kept"
    )
    reader: ReaderName = Field(AUTO, description="Format of these logs; auto looks into each file")
    read: ReadParams = Field(ReadParams(), description="How these logs are read")
    group: GroupParams = Field(GroupParams(), description="How their runs are recognised as runs of the same job")
    evaluate: EvaluateParams = Field(EvaluateParams(), description=PROTOCOL)
    warehouse: Warehouse = Field(description=WAREHOUSE)


class CharacteriseFlowParams(Params):
    """The typical runtime distributions of a source."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    evaluate: EvaluateParams = Field(
        EvaluateParams(), description="Its part predict.characterise says how shapes are found, here as in a training"
    )
    warehouse: Warehouse = Field(description=WAREHOUSE)
