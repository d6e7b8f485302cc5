"""The parameters of the flows about models of workloads. Nothing here imports prefect."""

from typing import Literal

from pydantic import Field

from flows.job_params import OF_SOURCE, WAREHOUSE, OfSource
from tasks.params import Params
from tasks.source_names import ONLY_SOURCE
from tasks.warehouse.place import Warehouse
from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.identify.params import IdentifyParams, TrainParams
from tasks.workloads.reader_names import AUTO, TelemetryReader
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.record.params import RecordParams
from tasks.workloads.watch_params import WatchParams

Which = Literal["new", "unlabelled", "all"]


class WorkloadTrainParams(Params):
    """The training of a model of the workloads of a source."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    identify: IdentifyParams = Field(IdentifyParams(), description="How workloads are learned and identified")
    train: TrainParams = Field(TrainParams(), description="Which runs are held out to be measured on")
    left_out: list[str] = Field([], description="Ids of runs that are neither learned nor measured")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class WorkloadIdentifyParams(Params):
    """The identification of runs of a source by its model in use."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    run_ids: list[str] = Field([], description="Ids of the runs to identify; empty: those that the next field names")
    which: Which = Field(
        "new", description="new: runs that the model in use has not identified; unlabelled: those without a label; all"
    )
    warehouse: Warehouse = Field(description=WAREHOUSE)


class WorkloadWatchParams(Params):
    """The check of what runs against what should run."""

    source: OfSource = Field(ONLY_SOURCE, description=f"{OF_SOURCE}; its model in use says what runs")
    watch: WatchParams = Field(WatchParams(), description="What is looked at, what should run, when there is an alarm")
    record: RecordParams = Field(
        RecordParams(), description="Its interval_s, perf and machine say how what runs now is sampled"
    )
    warehouse: Warehouse = Field(description=WAREHOUSE)


class WorkloadEvaluateParams(Params):
    """An experiment: how well workloads of a source, or of telemetry in files, are told apart."""

    source: OfSource = Field(ONLY_SOURCE, description=f"{OF_SOURCE}; not looked at where telemetry is named")
    telemetry: list[str] = Field(
        [], description="Labelled telemetry to evaluate instead of the source: files or folders; it is not kept"
    )
    reader: TelemetryReader = Field(AUTO, description="Format of these files; auto looks into each")
    read: ReadParams = Field(ReadParams(), description="How these files are read, and where labels come from")
    evaluate: EvaluateParams = Field(EvaluateParams(), description="How runs are split, and what is measured")
    identify: IdentifyParams = Field(IdentifyParams(), description="How workloads are learned and identified")
    warehouse: Warehouse = Field(description=WAREHOUSE)
