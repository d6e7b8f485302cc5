"""The parameters of the word `nodes`, as conf/nodes.yaml, flow forms and flags show them; nothing heavy is imported."""

from typing import Annotated

from pydantic import Field

from tasks.choices import DEFAULT_SOURCE
from tasks.intake.limits import ReadLimits
from tasks.nodes.detect.params import AlarmParams, BudgetParams, DetectorParams
from tasks.nodes.perona.params import SearchParams, TrainParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.record.params import RecordParams
from tasks.params import Params

RESULT_BYTES = 8 * 2**30
DAY_S = 86_400.0


class ReadParams(Params):
    """How results of benchmarks are read, and who says on which node they were measured."""

    label_from: str = Field(
        "",
        max_length=200,
        description="Node of a file's executions: stem (its name), parent (its folder), column:NAME; empty: columns",
    )
    manifest: str = Field(
        "",
        max_length=4096,
        description="CSV or JSONL with path, benchmark, node, machine_type, started_at, is_stressed, dose of each file",
    )
    columns: dict[str, str] = Field(
        {}, description="Renames columns of tables: our name to the name in the file (ours: theirs)"
    )
    time_zone: str = Field("UTC", min_length=1, max_length=100, description="Time zone of times that name none")
    pseudonymise: bool = Field(
        False,
        description="Replace nodes and ids by keyed hashes and drop logs and command lines before anything is kept",
    )
    future_slack_s: float = Field(
        DAY_S, ge=0, le=1e9, description="Executions that begin later than this after now are refused, in seconds"
    )
    limits: ReadLimits = ReadLimits(max_bytes=RESULT_BYTES)


NODE = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
NodeName = Annotated[str, Field(min_length=1, max_length=60, pattern=NODE)]


class FleetParams(Params):
    """Remote nodes: each has a Prefect worker of its own, which records there what 'whorl deploy' has registered."""

    nodes: tuple[NodeName, ...] = Field(
        (), max_length=1000, description="Names of remote nodes; each gets a work queue and a deployment of its name"
    )
    folder: str = Field(
        "{home}/recordings/nodes",
        min_length=1,
        description="Folder on each of them for its recording; {home} stands for the home folder of its worker",
    )
    landing: str = Field(
        "", description="Landing folder that all nodes reach, an fsspec address; empty: the one of whorl.landing"
    )
    source: str = Field(DEFAULT_SOURCE, min_length=1, max_length=100, description="Source that their executions go to")


class NodesParams(Params):
    """Everything of the word `nodes` that can be set in conf/nodes.yaml."""

    record: RecordParams = RecordParams()
    read: ReadParams = ReadParams()
    preprocess: PreprocessParams = PreprocessParams()
    score: ScoreParams = ScoreParams()
    detect: DetectorParams = DetectorParams()
    budget: BudgetParams = BudgetParams()
    train: TrainParams = TrainParams()
    search: SearchParams = SearchParams()
    alarm: AlarmParams = AlarmParams()
    fleet: FleetParams = FleetParams()
