"""The parameters of the flows about workloads: what the deployment's form shows. Nothing here imports prefect."""

from pydantic import Field

from tasks.params import Params
from tasks.workloads.record.params import RecordParams


class WorkloadRecordParams(Params):
    """A recording of real workloads on the machine of the worker."""

    folder: str = Field(
        min_length=1,
        description="Folder for the recording; {run} in it stands for the id of the run, so that each run gets its own",
    )
    record: RecordParams = Field(RecordParams(), description="Which workloads run how often, and how they are sampled")
