"""The parameters of the flows about telemetry: what the deployment's form shows. Nothing here imports prefect."""

from pydantic import Field

from flows.job_params import OF_SOURCE, SOURCE, WAREHOUSE, OfSource, Source
from tasks.params import Params
from tasks.source_names import DEFAULT_SOURCE, ONLY_SOURCE
from tasks.warehouse.place import Warehouse
from tasks.workloads.fan_out_params import FanOutParams
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.reader_names import AUTO, TelemetryReader
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.record.params import RecordParams

INBOX = "inbox-workloads"  # in the home folder; job logs have one of their own


class WorkloadRecordParams(Params):
    """A recording of real workloads on the machine of the worker."""

    folder: str = Field(
        min_length=1,
        description="Folder for the recording; {run} in it stands for the id of the run, so that each run gets its own",
    )
    record: RecordParams = Field(RecordParams(), description="Which workloads run how often, and how they are sampled")


class WorkloadIngestParams(Params):
    """Telemetry into the warehouse."""

    telemetry: list[str] = Field(
        [],
        description="Telemetry to read: files, folders of them, or the address of a Prometheus server; empty: the "
        f"files of read.manifest, or without one the folder {INBOX} in the home folder",
    )
    source: Source = Field(DEFAULT_SOURCE, description=SOURCE)
    reader: TelemetryReader = Field(AUTO, description="Format of the files; auto looks into each")
    read: ReadParams = Field(ReadParams(), description="How telemetry is read, and where labels come from")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class FingerprintFlowParams(Params):
    """The phases of the runs of a source."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    identify: IdentifyParams = Field(
        IdentifyParams(), description="Its part fingerprint says how runs are cut into phases"
    )
    fan_out: FanOutParams = Field(FanOutParams(), description="How the runs are shared out")
    warehouse: Warehouse = Field(description=WAREHOUSE)
