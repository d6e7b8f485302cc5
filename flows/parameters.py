"""The parameters of all flows: what the forms of their deployments show. Nothing here imports prefect."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

import tasks.advice.params as of_advice
import tasks.jobs.params as of_jobs
import tasks.nodes.params as of_nodes
import tasks.workloads.params as of_workloads
from tasks.advice.record.plan import RecordParams as EmulationParams
from tasks.choices import (
    DEFAULT_SOURCE,
    MAX_SOURCE_CHARS,
    ONLY_SOURCE,
    Named,
    NodeReader,
    ReaderName,
    TelemetryReader,
    checked_source,
)
from tasks.nodes.record.params import RecordParams as NodesRecordParams
from tasks.params import Params
from tasks.warehouse.place import PruneParams, Warehouse

SOURCE = "Name under which the rows are kept; rows of different sources never mix"
OF_SOURCE = "Name under which the rows were kept when they were read; empty: the only source there is"
WAREHOUSE = "Where the warehouse is, and what it may use of this machine"
Source = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE_CHARS), AfterValidator(checked_source)]
OfSource = Annotated[
    str, Field(max_length=MAX_SOURCE_CHARS), AfterValidator(lambda name: checked_source(name) if name else ONLY_SOURCE)
]
Folder = Annotated[
    str,
    Field(
        min_length=1,
        description="Folder for the recording; {run} in it stands for the id of the run, so that each run gets its own",
    ),
]
LABELLED = "read.label_from read.manifest read.columns"


class InHomeParams(Params):
    """What works on the warehouse of a home."""

    warehouse: Warehouse = Field(description=WAREHOUSE)


class OfSourceParams(InHomeParams):
    """What asks about a source of it."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)


class IngestParams(InHomeParams):
    """Job logs into the warehouse."""

    FIRST: ClassVar = "read.time_zone read.columns read.statuses read.units read.pseudonymise"
    paths: list[str] = Field(
        [],
        description="Job logs to read: files, folders of them, or the address of a Prefect API; "
        "empty: the inbox folder in the home folder",
    )
    source: Source = Field(DEFAULT_SOURCE, description=SOURCE)
    reader: ReaderName = Field("auto", description="Format of the logs; auto looks into each file")
    with_summary: bool = Field(
        True, description="Summarise the recurring jobs of the source afterwards, and write its report"
    )
    read: of_jobs.ReadParams = of_jobs.ReadParams()
    summary: of_jobs.SummaryParams = of_jobs.SummaryParams()
    group: of_jobs.GroupParams = of_jobs.GroupParams()


class SummaryFlowParams(OfSourceParams):
    """The summary of a source, its artifact and its report."""

    FIRST: ClassVar = "summary.min_support"
    summary: of_jobs.SummaryParams = of_jobs.SummaryParams()


class WatchFlowParams(OfSourceParams):
    """The check for runs that take longer than was predicted, and for jobs that have stopped or drift."""

    FIRST: ClassVar = "watch.alarms_per_day watch.look_back_days watches_drift=drift.is_watched"
    watch: of_jobs.WatchParams = of_jobs.WatchParams()
    drift: of_jobs.DriftParams = of_jobs.DriftParams()


class RecordFlowParams(Params):
    """A recording of real recurring jobs on the machine of the worker."""

    FIRST: ClassVar = "record.minutes record.jobs record.seed record.isolation"
    folder: Folder
    record: of_jobs.RecordParams = of_jobs.RecordParams()


class TrainFlowParams(OfSourceParams):
    """The training of a model on a source."""

    FIRST: ClassVar = "evaluate.predict.known_before evaluate.max_training_runs evaluate.seed"
    evaluate: of_jobs.EvaluateParams = of_jobs.EvaluateParams()


class PredictFlowParams(OfSourceParams):
    """The next run of every job of a source."""

    FIRST: ClassVar = "summary.min_support"
    summary: of_jobs.SummaryParams = of_jobs.SummaryParams()


class EvaluateFlowParams(InHomeParams):
    """An experiment: how well runtimes of a source, or of job logs, are predicted with these parameters."""

    FIRST: ClassVar = "read.time_zone read.columns group_by=group.by evaluate.predict.known_before evaluate.seed"
    source: OfSource = Field(ONLY_SOURCE, description=f"{OF_SOURCE}; not looked at where logs are named")
    logs: list[str] = Field(
        [], description="Job logs to evaluate instead of the source: files or folders; they are not kept"
    )
    reader: ReaderName = Field("auto", description="Format of these logs; auto looks into each file")
    read: of_jobs.ReadParams = of_jobs.ReadParams()
    group: of_jobs.GroupParams = of_jobs.GroupParams()
    evaluate: of_jobs.EvaluateParams = of_jobs.EvaluateParams()


class CharacteriseFlowParams(OfSourceParams):
    """The typical runtime distributions of a source."""

    FIRST: ClassVar = "evaluate.predict.characterise.shapes.min_support"
    evaluate: of_jobs.EvaluateParams = of_jobs.EvaluateParams()


class ExplainFlowParams(OfSourceParams):
    """The reasons of the runs of a source, and how far they can be trusted."""

    FIRST: ClassVar = "explain.look_back_days explain.n_longest explain.n_riskiest"
    explain: of_jobs.ExplainParams = of_jobs.ExplainParams()


class WhatIfFlowParams(OfSourceParams):
    """Changes of the features of held-out runs, and what the model in use predicts to follow."""

    scenarios: list[Named] = Field(
        ["no_spare", "newest_sku", "steady_load"], description="Named changes, each by itself: those of the paper"
    )
    sets: list[str] = Field(
        [], description="Features that get a value, NAME=VALUE or NAME=xFACTOR, such as spare_multiplier=1"
    )
    shifts: list[str] = Field([], description="Kinds of machine (SKUs) whose vertices move, FROM:TO")
    stds: list[str] = Field([], description="Standard deviations that get a value, such as cpu_load=0")
    whatif: of_jobs.WhatIfParams = of_jobs.WhatIfParams()


WORKLOADS_INBOX = "inbox-workloads"  # in the home folder; job logs have one of their own


class WorkloadRecordParams(Params):
    """A recording of real workloads on the machine of the worker."""

    FIRST: ClassVar = (
        "record.minutes record.workloads record.rounds record.runs record.conditions record.perf record.seed"
    )
    folder: Folder
    record: of_workloads.RecordParams = of_workloads.RecordParams()


class WorkloadIngestParams(InHomeParams):
    """Telemetry into the warehouse."""

    FIRST: ClassVar = f"{LABELLED} read.time_zone read.pseudonymise"
    telemetry: list[str] = Field(
        [],
        description="Telemetry to read: files, folders of them, or the address of a Prometheus server; empty: the "
        f"files of read.manifest, or without one the folder {WORKLOADS_INBOX} in the home folder",
    )
    source: Source = Field(DEFAULT_SOURCE, description=SOURCE)
    reader: TelemetryReader = Field("auto", description="Format of the files; auto looks into each")
    read: of_workloads.ReadParams = of_workloads.ReadParams()


class FingerprintFlowParams(OfSourceParams):
    """The phases of the runs of a source."""

    FIRST: ClassVar = "fan_out.ray_address"
    fan_out: of_workloads.FanOutParams = of_workloads.FanOutParams()


Which = Literal["new", "unlabelled", "all"]


class WorkloadTrainParams(OfSourceParams):
    """The training of a model of the workloads of a source."""

    FIRST: ClassVar = "train.hold_out identify.known_recall identify.seed"
    identify: of_workloads.IdentifyParams = of_workloads.IdentifyParams()
    train: of_workloads.TrainParams = of_workloads.TrainParams()
    left_out: list[str] = Field([], description="Ids of runs that are neither learned nor measured")


class WorkloadIdentifyParams(OfSourceParams):
    """The identification of runs of a source by its model in use."""

    run_ids: list[str] = Field([], description="Ids of the runs to identify; empty: those that the next field names")
    which: Which = Field(
        "new", description="new: runs that the model in use has not identified; unlabelled: those without a label; all"
    )


class WorkloadWatchParams(InHomeParams):
    """The check of what runs against what should run."""

    FIRST: ClassVar = "watch.look_at watch.expected watch.seconds watch.subject watch.newest"
    source: OfSource = Field(ONLY_SOURCE, description=f"{OF_SOURCE}; its model in use says what runs")
    watch: of_workloads.WatchParams = of_workloads.WatchParams()
    record: of_workloads.RecordParams = of_workloads.RecordParams()


class WorkloadEvaluateParams(InHomeParams):
    """An experiment: how well workloads of a source, or of telemetry in files, are told apart."""

    FIRST: ClassVar = f"{LABELLED} window_s=evaluate.windows.width_s evaluate.seed"
    source: OfSource = Field(ONLY_SOURCE, description=f"{OF_SOURCE}; not looked at where telemetry is named")
    telemetry: list[str] = Field(
        [], description="Labelled telemetry to evaluate instead of the source: files or folders; it is not kept"
    )
    reader: TelemetryReader = Field("auto", description="Format of these files; auto looks into each")
    read: of_workloads.ReadParams = of_workloads.ReadParams()
    evaluate: of_workloads.EvaluateParams = of_workloads.EvaluateParams()
    identify: of_workloads.IdentifyParams = of_workloads.IdentifyParams()


NODES_INBOX = "inbox-nodes"  # in the home folder; job logs and telemetry have their own


class NodeRecordParams(Params):
    """A recording of benchmarks on the machine of the worker."""

    FIRST: ClassVar = (
        "record.node record.benchmarks record.runs record.executions record.minutes record.place record.profile"
    )
    folder: str = Field(
        min_length=1,
        description="Folder for the recording; the next run with the same folder goes on. {run} stands for the id of "
        "the run, {home} for the home folder of the worker",
    )
    record: NodesRecordParams = NodesRecordParams()
    landing: str = Field(
        "",
        description="Landing folder where the executions are put for nodes-ingest: a path or an fsspec address; empty: "
        "they stay in the folder of the recording",
    )
    source: Source = Field(DEFAULT_SOURCE, description="Name under which they are put there")


class NodeIngestParams(InHomeParams):
    """Executions of benchmarks into the warehouse."""

    FIRST: ClassVar = f"{LABELLED} read.time_zone read.pseudonymise"
    results: list[str] = Field(
        [],
        description="Results to read: files, folders or addresses; empty: the files of read.manifest, or without one "
        f"what recorders have put into the landing folder, and the folder {NODES_INBOX} in the home folder",
    )
    source: Source = Field(DEFAULT_SOURCE, description=SOURCE)
    reader: NodeReader = Field("auto", description="Format of the files; auto looks into each")
    read: of_nodes.ReadParams = of_nodes.ReadParams()


class NodePreprocessParams(OfSourceParams):
    """The preprocessing of the metrics of a source."""

    preprocess: of_nodes.PreprocessParams = of_nodes.PreprocessParams()
    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


class NodeRankParams(OfSourceParams):
    """The ranking of the nodes of a source, and which of them stand out."""

    FIRST: ClassVar = "score.left_out_aspects score.aspect_weights"
    preprocess: of_nodes.PreprocessParams = of_nodes.PreprocessParams()
    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


class NodeEvaluateParams(InHomeParams):
    """An experiment: how well plain answers find stressed executions and rank nodes, on a source or on files."""

    FIRST: ClassVar = f"{LABELLED} evaluate.without_labels evaluate.seed"
    source: OfSource = Field(ONLY_SOURCE, description=f"{OF_SOURCE}; not looked at where results are named")
    results: list[str] = Field(
        [], description="Results to evaluate instead of the source: files or folders; they are not kept"
    )
    reader: NodeReader = Field("auto", description="Format of these files; auto looks into each")
    read: of_nodes.ReadParams = of_nodes.ReadParams()
    evaluate: of_nodes.EvaluateParams = of_nodes.EvaluateParams()


Trained = Literal["detector", "ours", "paper"]


class NodeTrainParams(OfSourceParams):
    """The training of a detector of degraded executions, or of the network that makes fingerprints."""

    FIRST: ClassVar = "budget.alarms_per_day model.fit.epochs model.fit.seed"
    variant: Trained = Field(
        "detector", description="detector: what tells verdicts; ours, paper: Perona's network, which makes fingerprints"
    )
    detect: of_nodes.DetectorParams = of_nodes.DetectorParams()
    budget: of_nodes.BudgetParams = of_nodes.BudgetParams()
    alarm: of_nodes.AlarmParams = of_nodes.AlarmParams()
    as_in_use: bool = Field(
        True, description="Take graph, network, losses and fitting of the model in use, where there is one"
    )
    trains_again: bool = Field(
        False, description="Train also where the same data, parameters and code have made a model before"
    )
    model: of_nodes.ModelParams = of_nodes.ModelParams()
    preprocess: of_nodes.PreprocessParams = of_nodes.PreprocessParams()
    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


class NodeTuneParams(OfSourceParams):
    """The search of the parameters of a source's model, and a training with the best of them."""

    FIRST: ClassVar = "search.n_trials search.ray_address search.runner"
    search: of_nodes.SearchParams = of_nodes.SearchParams()
    model: of_nodes.ModelParams = of_nodes.ModelParams()
    preprocess: of_nodes.PreprocessParams = of_nodes.PreprocessParams()
    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


class NodeFingerprintParams(OfSourceParams):
    """Fingerprints and verdicts of the executions of a source, and its nodes ranked by them."""

    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


class NodeWatchParams(OfSourceParams):
    """The check whether nodes of a source are degrading."""

    FIRST: ClassVar = "alarm.flagged alarm.last"
    alarm: of_nodes.AlarmParams = of_nodes.AlarmParams()
    asks_for_benchmarks: bool = Field(
        True, description="A suspected node runs a fresh benchmark, by its deployment nodes-record/<node> on the server"
    )
    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


class UpkeepParams(InHomeParams):
    """What is backed up, and what is kept."""

    FIRST: ClassVar = "prune.runs_kept_days prune.models_kept"
    with_backup: bool = Field(True, description="Back the warehouse up before anything is removed")
    backup_folder: str = Field(
        "", description="Folder for backups, best on another disk; empty: backups/ in the home folder"
    )
    backups_kept: int = Field(7, ge=1, le=10_000, description="Backups that are kept, the latest")
    flow_runs_kept_days: float = Field(
        90,
        gt=0,
        le=36_500,
        description="Age at which flow runs are removed from Prefect, with the keys they kept, in days",
    )
    prune: PruneParams = PruneParams()


HISTORY = "advice-runs.csv"  # in the home folder
MACHINES = "Table of machine types with vCPU, memory and price; empty: that of the settings"
COLUMNS = "Columns of the table that have other names (ours: theirs)"


class SearchFlowParams(InHomeParams):
    """A search for the cheapest configuration of one job."""

    FIRST: ClassVar = "search.nodes search.max_vcpu"
    history: str = Field(
        "",
        description="Table of runs so far: job, machine_type, nodes, runtime_s, status; "
        f"empty: {HISTORY} in the home folder",
    )
    job: str = Field("", description="The job; empty: the only one of the table")
    machines: str = Field("", description=MACHINES)
    memory_gb: float | None = Field(
        None, gt=0, le=1e9, description="Memory that the job needs over all nodes, in GB; empty: not known"
    )
    peaks_of: str = Field(
        "", description="Source of job runs in the warehouse whose peaks say how much memory it needs"
    )
    max_runtime_s: float | None = Field(
        None, gt=0, le=1e9, description="Longest runtime that will do, in seconds; empty: any"
    )
    columns: dict[str, str] = Field({}, description=COLUMNS)
    search: of_advice.SearchParams = of_advice.SearchParams()


class AdviceEvaluateParams(InHomeParams):
    """A replay of all search methods on a table of runs."""

    FIRST: ClassVar = "evaluate.searches evaluate.seed"
    runs: str = Field(
        "",
        description="Table of runs: jobs with a run on each of many configurations; "
        f"empty: {HISTORY} in the home folder",
    )
    machines: str = Field("", description=MACHINES)
    needs: str = Field("", description="Table of memory needs by job (job, need_gb); empty: not known")
    scores: str = Field("", description="Table of scores (machine_type, aspect, score); empty: methods without scores")
    columns: dict[str, str] = Field({}, description=COLUMNS)
    search: of_advice.SearchParams = of_advice.SearchParams()
    evaluate: of_advice.ReplayParams = of_advice.ReplayParams()


class AdviceRecordParams(Params):
    """A recording of recurring jobs on machine types that the worker's machine emulates."""

    FIRST: ClassVar = "record.minutes record.blocks record.repeats record.seed"
    folder: str = Field(min_length=1, description="Folder for the recording; the next run with the same folder goes on")
    record: EmulationParams = EmulationParams()


class GroupsFlowParams(InHomeParams):
    """Groups of alike machines."""

    FIRST: ClassVar = "groups.confidence groups.seed"
    scores: str = Field("", description="Table of scores (machine, aspect, score, low, high); empty: those of nodes")
    nodes_of: str = Field("", description="Source of nodes whose ranking says the scores; empty: the only one")
    aspects: list[str] = Field([], description="Aspects that count; empty: all")
    traces: str = Field("", description="Resource trace of a workflow, whose tasks are assigned; empty: none")
    columns: dict[str, str] = Field({}, description=COLUMNS)
    groups: of_advice.GroupParams = of_advice.GroupParams()


class EstimateFlowParams(InHomeParams):
    """Runtimes on a machine that was not tried: of the tasks of traces, or of a recurring job."""

    LATER: ClassVar = ("machine",)
    onto: str = Field("", description="The machine, or machine type, to estimate for; it has to be named")
    traces: list[str] = Field([], description="Traces of a workflow (Nextflow's trace.txt, or tables); empty: a job")
    job: str = Field("", description="A recurring job in the warehouse, by its key or a unique part of it")
    jobs_source: str = Field("", description="Source of the job's runs; empty: the only one")
    start: str = Field("", description="The machine that runs are taken from; empty: the only one, or the most used")
    scores: str = Field("", description="With traces: table of scores: machine_type, aspect, score")
    scores_of: str = Field("", description="With traces: source of node benchmarks that say the scores instead")
    machine: str = Field("", description="Where traces ran that do not say it; empty: the name of their folder")
    size_ratio: float = Field(1.0, gt=0, le=1_000_000, description="Size of the input, over the largest that has run")
    deadline_s: float | None = Field(
        None, gt=0, le=1e9, description="With a job: how often it would be late; empty: not asked"
    )
    columns: dict[str, str] = Field({}, description=COLUMNS)
    estimate: of_advice.EstimateParams = of_advice.EstimateParams()


class DemoParams(InHomeParams):
    """Where the demo works, and with which settings."""

    jobs: of_jobs.JobsParams = of_jobs.JobsParams()
    workloads: of_workloads.WorkloadsParams = of_workloads.WorkloadsParams()
    nodes: of_nodes.NodesParams = of_nodes.NodesParams()
    advice: of_advice.AdviceParams = of_advice.AdviceParams()


Word = Literal["jobs", "workloads", "nodes", "advice"]


class PipelineParams(DemoParams):
    """Which part of the graph from files to answers is run."""

    sources: tuple[str, ...] = Field((), description="Sources whose nodes are run; empty: all that have rows")
    words: tuple[Word, ...] = Field(("jobs", "workloads", "nodes", "advice"), description="Words whose nodes are run")
    trials: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Trials of the search for Perona's network (Ray Tune, Optuna); 0: it is trained as it is set",
    )
    trains_network: bool = Field(
        True, description="Whether Perona's network is trained, which makes fingerprints; verdicts do not need it"
    )
