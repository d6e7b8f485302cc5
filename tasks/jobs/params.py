"""The parameters of the word `jobs`, as conf/jobs.yaml, flow forms and flags show them; light."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from tasks.intake.limits import ReadLimits
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.predict.params import EvaluateParams
from tasks.jobs.record.params import RecordParams
from tasks.params import Params
from tasks.quantities import SPELLINGS, Dimension, factor_of

Level = Annotated[float, Field(gt=0, lt=1)]


class OutlookParams(Params):
    """Limits of the next run and chances of running ones."""

    levels: tuple[Level, ...] = Field(
        (0.5, 0.9, 0.95, 0.99),
        min_length=1,
        max_length=20,
        description="Probabilities with which a run stays under its time limits; between 0 and 1",
    )


MAX_DRIFT_RUNS = 500  # of a job on each side of a moment; of more, the latest


class DriftParams(Params):
    """When a job counts as changed."""

    is_watched: bool = Field(True, description="The watch raises an alarm for a job that drifts to another shape, once")
    since_days: float = Field(
        7, gt=0, le=36_500, description="The last days of the log are compared with what was before, in days"
    )
    before_days: float = Field(
        56, gt=0, le=36_500, description="How far before that moment the comparison reaches back, in days"
    )
    min_before: int = Field(10, ge=2, le=1_000_000, description="Runs that a job needs before the moment")
    min_after: int = Field(5, ge=2, le=1_000_000, description="Runs that a job needs since the moment")
    false_discovery_rate: float = Field(
        0.05, gt=0, lt=1, description="Share of jobs reported as changed that may be so by luck (Benjamini-Hochberg)"
    )


class CostParams(Params):
    """Which jobs cost the most waiting through variation."""

    n_jobs: int = Field(10, ge=1, le=100_000, description="Jobs that are listed")
    min_support: int = Field(3, ge=2, le=1_000_000, description="Runs that a job needs to be looked at")
    n_resamples: int = Field(
        1000, ge=100, le=100_000, description="Resamples of the runs of a job for the interval of its cost"
    )
    confidence: float = Field(0.9, gt=0, lt=1, description="Confidence of that interval")
    seed: int = Field(0, ge=0, le=2**32 - 1, description="Seed of the resamples")


Measured = Literal[
    "wait_s", "runtime_s", "requested_runtime_s", "cpu_s", "requested_memory_bytes", "peak_memory_bytes", "input_bytes",
    "read_bytes", "temp_bytes",
]  # fmt: skip
Status = Literal["completed", "failed", "cancelled", "timeout", "running", "pending", "unknown"]

KeyPart = Literal["name", "plan", "user", "cpus", "limit", "queue", "account", "partition", "qos"]


class ReadParams(Params):
    """How job logs are read."""

    time_zone: str = Field(
        "",
        description="Time zone of logs that name none, such as Europe/Berlin or UTC; empty: ask for it",
    )
    future_slack_s: float = Field(
        86_400, ge=0, le=1e9, description="How far ahead of this machine's clock a time may lie, in seconds"
    )
    columns: dict[str, str] = Field(
        {}, description="Renames columns of tables: our name to the name in the file (ours: theirs)"
    )
    statuses: dict[str, Status] = Field(
        {}, description="What statuses of logs mean that are not known by themselves (theirs: ours)"
    )
    units: dict[Measured, str] = Field(
        {}, description="Units of columns of tables that are not in seconds or bytes, such as GB, MiB, ms, min"
    )
    features: list[str] = Field(
        [],
        max_length=1000,
        description="Further columns of tables that are kept, for predictions to rest on; all: every one",
    )
    pseudonymise: bool = Field(
        False, description="Replace users, names, hosts and ids made of names by keyed hashes before anything is kept"
    )
    sacct_fields: str = Field(
        "JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,GID,User,UID,Submit,Eligible,Start,End,Elapsed,ExitCode,"
        "State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Timelimit,NodeList,JobName",
        min_length=1,
        max_length=10_000,
        description="Fields of Slurm logs that have no header line, in their order, as sacct --format takes them",
    )
    limits: ReadLimits = ReadLimits()

    @field_validator("units")
    @classmethod
    def _known(cls, units: dict[Measured, str]) -> dict[Measured, str]:
        for column, unit in units.items():
            if factor_of(unit, dimension_of(column)) is None:
                known = ", ".join(SPELLINGS[dimension_of(column)])
                raise ValueError(f"{unit!r} is no unit of {column}; expected one of {known}")
        return units


def dimension_of(column: str) -> Dimension:
    """What a column of Measured is in: seconds or bytes."""
    return "bytes" if column.endswith("_bytes") else "s"


class GroupParams(Params):
    """Which runs are of one job: whether users are told apart, and which numbers in its name are part of the name."""

    by: list[KeyPart] = Field(
        [], description="What runs of one job share, such as user, cpus, limit; empty: name and plan, or user and size"
    )
    by_user: bool = Field(
        True, description="Runs of two users are two jobs, also where name and size are the same and no plan is known"
    )

    kept_after: list[str] = Field(
        ["app", "level", "phase", "q", "query", "stage", "step", "tier", "tpcds", "tpch", "v", "version"],
        max_length=100,
        description="Words whose number (up to 3 digits) says which job it is: query 17, q-3, v 2",
    )
    counted_after: list[str] = Field(
        [
            "attempt", "batch", "chunk", "copy", "exec", "id", "instance", "iter", "iteration", "job", "no", "num",
            "part", "partition", "r", "rep", "replica", "retry", "run", "seq", "shard", "split", "task", "trial", "try",
            "week", "worker",
        ],
        max_length=100,
        description="Words whose number is a counter and goes, even without a separator: run7, part3",
    )  # fmt: skip


class SummaryParams(Params):
    """How the runs of each recurring job are summarised."""

    statuses: list[Status] = Field(
        ["completed", "unknown"],
        min_length=1,
        description="Runs that count as finished: those with one of these statuses and a runtime",
    )
    min_support: int = Field(
        3, ge=2, le=1_000_000, description="Finished runs that a job needs before its variation is reported"
    )
    outlier_ratio: float = Field(
        10, gt=1, le=1e6, description="A run at least this many times the median of its job is an outlier"
    )
    outlier_delta_s: float = Field(
        900, gt=0, le=1e9, description="A run more than this above the median of its job is one, in seconds"
    )
    slow_ratio: float = Field(
        3,
        gt=1,
        le=1e6,
        description="A new run at least this many times the historic median stands on the stalagmite (Figure 4)",
    )
    history_share: float = Field(
        0.5, gt=0, lt=1, description="Share of the finished runs, by submission, that count as history (Figure 4)"
    )


class WatchParams(Params):
    """Which runs and jobs raise an alarm, and how many false alarms may be expected."""

    alarms_per_day: float = Field(
        1,
        gt=0,
        le=1e6,
        description="Slow runs and stopped jobs that raise an alarm though nothing is wrong, expected a day, at most",
    )
    look_back_days: float = Field(
        7, gt=0, le=36_500, description="Runs that ended in the last days of the log are looked at, in days"
    )
    statuses: list[Status] = Field(
        ["completed", "unknown", "timeout"],
        min_length=1,
        description="Runs that are looked at: those with one of these statuses and a runtime, and those that go on",
    )


class ReportParams(Params):
    """What the page about jobs shows."""

    min_support: int = Field(
        3, ge=1, le=1_000_000, description="Finished runs that a job needs to be listed before those with fewer"
    )
    n_lines: int = Field(6, ge=1, le=12, description="Jobs in the figure of runtimes over time")
    max_points: int = Field(
        1000, ge=1, le=20_000, description="Runs that a figure draws one by one; more are drawn as density"
    )


class JobsParams(Params):
    """Everything of the word `jobs` that can be set in conf/jobs.yaml."""

    read: ReadParams = ReadParams()
    group: GroupParams = GroupParams()
    summary: SummaryParams = SummaryParams()
    watch: WatchParams = WatchParams()
    report: ReportParams = ReportParams()
    record: RecordParams = RecordParams()
    evaluate: EvaluateParams = EvaluateParams()
    explain: ExplainParams = ExplainParams()
    whatif: WhatIfParams = WhatIfParams()
    outlook: OutlookParams = OutlookParams()
    drift: DriftParams = DriftParams()
    cost: CostParams = CostParams()
