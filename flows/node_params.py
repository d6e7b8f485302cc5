"""The parameters of the flows about executions of benchmarks: what the deployment's form shows.

Nothing here imports prefect."""

from pydantic import Field

from flows.job_params import SOURCE, WAREHOUSE, Source
from tasks.nodes.params import ReadParams
from tasks.nodes.reader_names import AUTO, NodeReader
from tasks.nodes.record.params import RecordParams
from tasks.params import Params
from tasks.source_names import DEFAULT_SOURCE
from tasks.warehouse.place import Warehouse

INBOX = "inbox-nodes"  # in the home folder; job logs and telemetry have their own


class NodeRecordParams(Params):
    """A recording of benchmarks on the machine of the worker."""

    folder: str = Field(
        min_length=1,
        description="Folder for the recording; the next run with the same folder goes on. {run} stands for the id of "
        "the run, {home} for the home folder of the worker",
    )
    record: RecordParams = Field(
        RecordParams(), description="Which benchmarks run on which nodes, how often, and under which stress"
    )
    landing: str = Field(
        "",
        description="Landing folder where the executions are put for nodes-ingest: a path or an fsspec address; empty: "
        "they stay in the folder of the recording",
    )
    source: Source = Field(DEFAULT_SOURCE, description="Name under which they are put there")


class NodeIngestParams(Params):
    """Executions of benchmarks into the warehouse."""

    results: list[str] = Field(
        [],
        description="Results to read: files, folders or addresses; empty: the files of read.manifest, or without one "
        f"what recorders have put into the landing folder, and the folder {INBOX} in the home folder",
    )
    source: Source = Field(DEFAULT_SOURCE, description=SOURCE)
    reader: NodeReader = Field(AUTO, description="Format of the files; auto looks into each")
    read: ReadParams = Field(ReadParams(), description="How results are read, and who says on which node they ran")
    warehouse: Warehouse = Field(description=WAREHOUSE)
