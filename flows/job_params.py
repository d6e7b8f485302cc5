"""The parameters of the flows about jobs: what the deployment's form shows. Nothing here imports prefect."""

from typing import Annotated

from pydantic import AfterValidator, Field

from tasks.jobs.offered_names import AUTO, ReaderName
from tasks.jobs.params import DriftParams, GroupParams, ReadParams, SummaryParams, WatchParams
from tasks.jobs.record.params import RecordParams
from tasks.params import Params
from tasks.source_names import DEFAULT_SOURCE, MAX_SOURCE_CHARS, ONLY_SOURCE, checked_source
from tasks.warehouse.place import Warehouse

SOURCE = "Name under which the rows are kept; rows of different sources never mix"
OF_SOURCE = "Name under which the rows were kept when they were read; empty: the only source there is"
WAREHOUSE = "Where the warehouse is, and what it may use of this machine"
Source = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE_CHARS), AfterValidator(checked_source)]
OfSource = Annotated[
    str, Field(max_length=MAX_SOURCE_CHARS), AfterValidator(lambda name: checked_source(name) if name else ONLY_SOURCE)
]


class IngestParams(Params):
    """Job logs into the warehouse."""

    paths: list[str] = Field(
        [],
        description="Job logs to read: files, folders of them, or the address of a Prefect API; "
        "empty: the inbox folder in the home folder",
    )
    source: Source = Field(DEFAULT_SOURCE, description=SOURCE)
    reader: ReaderName = Field(AUTO, description="Format of the logs; auto looks into each file")
    with_summary: bool = Field(
        True, description="Summarise the recurring jobs of the source afterwards, and write its report"
    )
    read: ReadParams = Field(ReadParams(), description="How the logs are read")
    summary: SummaryParams = Field(SummaryParams(), description="What counts as a finished run and as an outlier")
    warehouse: Warehouse = Field(description=WAREHOUSE)
    group: GroupParams = Field(GroupParams(), description="How runs are recognised as runs of the same job")


class SummaryFlowParams(Params):
    """The summary of a source, its artifact and its report."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    summary: SummaryParams = Field(SummaryParams(), description="What counts as a finished run and as an outlier")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class WatchFlowParams(Params):
    """The check for runs that take longer than was predicted, and for jobs that have stopped or drift."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    watch: WatchParams = Field(WatchParams(), description="Which runs and jobs raise an alarm, and how many")
    drift: DriftParams = Field(DriftParams(), description="When a job has drifted away from its earlier runs")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class RecordFlowParams(Params):
    """A recording of real recurring jobs on the machine of the worker."""

    folder: str = Field(
        min_length=1,
        description="Folder for the recording; {run} in it stands for the id of the run, so that each run gets its own",
    )
    record: RecordParams = Field(
        RecordParams(), description="Which jobs run, for how long, on which miniature cluster and under which load"
    )
