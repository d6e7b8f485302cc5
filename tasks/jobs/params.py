"""The parameters of the word `jobs`, as conf/jobs.yaml, flow forms and flags show them, and names that these offer.

Nothing heavy is imported here, so help stays quick."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from tasks.params import Params, ReadLimits
from tasks.quantities import SPELLINGS, Dimension, factor_of


class SplitParams(Params):
    """Shares of the runs, by submission, that are history (D1), training (D2); the rest is test (D3)."""

    history_share: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="Share of the runs, by submission, that are history, D1. More where jobs run rarely",
    )
    training_share: float = Field(
        0.3, gt=0, lt=1, description="Share of the runs that are training data, D2. Less for a longer test"
    )

    @model_validator(mode="after")
    def _leaves_a_test(self) -> "SplitParams":
        if self.history_share + self.training_share >= 1:
            raise ValueError("history_share and training_share together below 1, so that some runs are left to test")
        return self


Kind = Literal["ratio", "delta"]


class BinParams(Params):
    """How normalised runtimes are cut into bins."""

    n_bins: int = Field(
        200,
        ge=3,
        le=10_000,
        description="Bins of a distribution, the two for outliers among them. Fewer for short logs",
    )
    ranges: Literal["paper", "data"] = Field(
        "paper",
        description="Ends of the bins: the paper's, or from the runs by the rule of footnote 3. The paper's to "
        "compare with its figures",
    )


class ShapeParams(Params):
    """How typical distributions are found among those of the jobs."""

    k: int = Field(
        8, ge=1, le=100, description="Number of shapes. The elbow of the inertia says whether fewer would do"
    )
    min_support: int = Field(
        20, ge=1, le=1_000_000, description="Runs that a job needs to take part. Less where jobs run rarely"
    )


class CharacteriseParams(Params):
    """Periods, bins and shapes of one characterisation."""

    split: SplitParams = SplitParams()
    bins: BinParams = BinParams()
    shapes: ShapeParams = ShapeParams()


class PredictParams(Params):
    """How the next runs of a log are predicted: shapes, the classifier of their labels, and boosted quantiles."""

    characterise: CharacteriseParams = CharacteriseParams(bins=BinParams(ranges="data"))
    known_before: list[str] = Field(
        [],
        max_length=1000,
        description="Further columns of a table that are known before a run begins, so that predictions may use "
        "them. For who knows how a column is made",
    )
    n_trees: int = Field(
        150,
        ge=1,
        le=1000,
        description="Trees of each of the boosted quantiles; three times as many with own columns. Fewer for a first "
        "look",
    )
    n_rounds: int = Field(
        80,
        ge=1,
        le=10_000,
        description="Rounds of the classifier of shapes; a tree for each shape a round. Fewer for a first look",
    )


class EvaluateParams(Params):
    """The protocol of an evaluation: train on what came earlier, score what came later."""

    predict: PredictParams = PredictParams()
    baseline_trees: int = Field(
        150,
        ge=1,
        le=10_000,
        description="Trees of each boosted quantile to compare with. To compare with a stronger or weaker one",
    )
    max_test_runs: int = Field(
        50_000,
        ge=100,
        le=10_000_000,
        description="Test runs that are scored; of more, an even sample over time. Fewer for a first look",
    )
    max_training_runs: int = Field(
        100_000,
        ge=100,
        le=100_000_000,
        description="Training runs that models learn from; of more, the latest. Fewer where time or memory are short",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of everything random. Another to see what chance does")


def quick(params: EvaluateParams) -> EvaluateParams:
    """A training that takes seconds and predicts a little less well, for a first look; the split stays."""
    predict = params.predict.model_copy(update={"n_trees": 40, "n_rounds": 20})
    changed = {"predict": predict, "baseline_trees": 20, "max_test_runs": 1500, "max_training_runs": 10_000}
    return params.model_copy(update=changed)


class ExplainParams(Params):
    """Which runs are explained."""

    look_back_days: float = Field(
        7,
        gt=0,
        le=36_500,
        description="Runs that ended in the last days of the log are explained, in days. As long as between two "
        "looks at the page",
    )
    n_longest: int = Field(
        20,
        ge=0,
        le=10_000,
        description="How many of them: those that took the most times their job's usual time. As many as somebody "
        "will read",
    )
    n_riskiest: int = Field(
        10,
        ge=0,
        le=10_000,
        description="Jobs whose next run is explained: those most likely to take long. As many as somebody will read",
    )


FAMILY_WORDS: dict[str, str] = {  # where the family's name says little
    "tokens": "processors",
    "SKU": "machine type",
    "calendar": "time of day, weekday",
    "history": "earlier runs",
    "requested time": "time limit",
    "other": "own columns",
}
NO_COLUMN = "the log has no such feature"  # why an insight cannot be told
MEASURES: dict[str, str] = {  # name -> words, in the order of every table
    "outlier_share": "probability of an outlier, over the ratio to the historic median",
    "outlier_share_delta": "probability of an outlier, by seconds from the historic median",
    "gap_s": "25th-75th gap, in seconds",
    "gap_ratio": "25th-75th gap, over the historic median",
    "p95_s": "95th percentile, in seconds",
    "p95_ratio": "95th percentile, over the historic median",
    "sd_s": "standard deviation, in seconds",
    "sd_ratio": "standard deviation, over the historic median",
    "median_s": "median runtime, in seconds",
    "mean_s": "mean runtime, in seconds",
    "token_s": "token-seconds, tokens times the mean runtime",
    "money": "price of a run, at the price of a token-hour",
}


class WhatIfParams(Params):
    """What money is measured by: tokens in use, at a price of a day."""

    price_per_token_hour: float = Field(
        0.05,
        ge=0,
        le=1e6,
        description="Price of one token for one hour, in the currency; money scales with it. What you pay",
    )
    currency: str = Field(
        "EUR", min_length=1, max_length=20, description="What that price and money are in. What you pay in"
    )
    price_date: str = Field(
        "2026-11-01",
        pattern=r"\d{4}-\d\d-\d\d",
        description="The day that the price was in force: YYYY-MM-DD. With each new price",
    )


PERIOD_US = 10_000
TOKEN_US = 1_000  # a tenth of a core: one of ten milliseconds, and the least that the kernel allows
TOKENS_OF_A_CORE = 10  # a vertex has one thread
LoadLevel = Literal["none", "cpu-20", "cpu-35", "cpu-40", "cpu-60", "cpu-80", "cpu-95", "memory-50", "disk-30"]
PAIRS, STEADY = "W", "S"  # periods of the matched pairs: under changing load, under steady load


class Period(Params):
    """A stretch of the jobs' schedule that is recorded as one data set."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=20, description="Name, such as D1: letters, digits, - and _"
    )
    days: int = Field(ge=1, le=10_000, description="Days of the jobs' schedule")


class RecordParams(Params):
    """How many recurring jobs run for how long, on which data and under which load."""

    minutes: float = Field(
        5,
        gt=0,
        le=1440,
        description="How long this call submits runs, in minutes; the next call with the same settings goes on. "
        "As long as the machine is free",
    )
    seed: int = Field(
        7,
        ge=0,
        le=2**31,
        description="Decides data, jobs, sizes, parameters and submit times. Another for a second, independent "
        "recording",
    )
    jobs: int = Field(
        210,
        ge=1,
        le=700,
        description="Number of recurring jobs; the templates take turns. Fewer for a recording of an hour",
    )
    periods: tuple[Period, ...] = Field(
        (Period(name="D1", days=28), Period(name="D2", days=13), Period(name="D3", days=9)),
        min_length=1,
        description="Data sets to record, one after the other; a job runs about twice in a day of its schedule. "
        "Fewer days for a shorter recording",
    )
    pairs: int = Field(
        1050,
        ge=0,
        le=100_000,
        description="Runs of the last period that are repeated with each change (what-if). 0 where no what-if is "
        "to be checked",
    )
    isolation: Literal["auto", "cgroups", "threads"] = Field(
        "auto",
        description="What holds parts of jobs to their cores (tokens): control groups (need root), threads only, or "
        "what there is. Threads in a container without rights",
    )
    data_scale: float = Field(
        1.6,
        gt=0,
        le=100,
        description="Size of the data sets; 1 is about 0.9 GB on disk, ratio to that. Less where the disk is small",
    )
    load: Literal["auto", "stress-ng", "jobs"] = Field(
        "auto",
        description="Where load comes from: stress-ng, concurrent jobs only, or stress-ng where it is installed. "
        "Jobs where nothing else may run",
    )
    scratch: str = Field(
        "",
        description="Folder for the jobs' data sets; empty: one in the system's temporary folder. For a disk with "
        "more room",
    )

    @field_validator("periods")
    @classmethod
    def _names_differ(cls, periods: tuple[Period, ...]) -> tuple[Period, ...]:
        names = [period.name for period in periods] + [PAIRS, STEADY]
        if len(set(names)) < len(names):
            raise ValueError(f"names that differ, and none of {PAIRS}, {STEADY}")
        return periods


class Sku(Params):
    """A kind of machine that vertices run on.

    tokens: that can be promised, each a tenth of a core. speed: CPU time of a token, over that of the newest kind.
    memory_ratio: memory that a vertex gets, over what its job asks. read_mb_per_s: how fast its disk may be read."""

    name: str
    tokens: int
    speed: float = 1.0
    memory_ratio: float = 1.0
    read_mb_per_s: float = 100.0

    @property
    def period_us(self) -> int:
        """Period of the quota of a vertex: longer where a token is worth less."""
        return round(PERIOD_US / self.speed)

    @property
    def cores(self) -> float:
        """What all its tokens are worth together, in cores."""
        return self.tokens * self.speed / TOKENS_OF_A_CORE

    def token_s(self, tokens: float, duration_s: float) -> float:
        """CPU seconds that so many tokens promise in so many seconds."""
        return tokens * self.speed * duration_s / TOKENS_OF_A_CORE


class Campaign(RecordParams):
    """All that decides a campaign: what is set, and the cluster, its load and its pace.

    day_s: seconds that stand for a day of the jobs' schedules. most_waiting: the schedule stands still while more runs
    wait for tokens. skus: the newest last; together they leave a quarter of four cores free. spare_multiple: spare
    tokens that a job may hold, over those that it requested. part_minutes: between part files, of which a kill loses
    at most the last. time_limit_s: a job that runs longer is killed and recorded as timeout. load_ladder: levels that
    each SKU's load is drawn from. load_phase_s: mean length of a phase of one level."""

    day_s: float = 90
    most_waiting: int = 8
    skus: tuple[Sku, ...] = (
        Sku(name="gen3", tokens=6, speed=0.6, memory_ratio=0.75, read_mb_per_s=4),
        Sku(name="gen4", tokens=6, speed=0.8, memory_ratio=0.9, read_mb_per_s=8),
        Sku(name="gen5", tokens=6, speed=1.0, memory_ratio=1.0, read_mb_per_s=16),
    )
    spare_multiple: float = 2
    part_minutes: float = 5
    time_limit_s: float = 60
    load_ladder: tuple[LoadLevel, ...] = (
        *4 * ("none",), "cpu-40", "cpu-60", "cpu-80", "cpu-95", "memory-50", "disk-30",
    )  # fmt: skip
    load_phase_s: float = 40


Level = Annotated[float, Field(gt=0, lt=1)]


class OutlookParams(Params):
    """Limits of the next run and chances of running ones."""

    levels: tuple[Level, ...] = Field(
        (0.5, 0.9, 0.95, 0.99),
        min_length=1,
        max_length=20,
        description="Probabilities with which a run stays under its time limits; between 0 and 1. Those that your "
        "agreements name",
    )


LABEL_SUPPORT = 3  # runs that a job needs in a period to be labelled with a shape there
MAX_DRIFT_RUNS = 500  # of a job on each side of a moment; of more, the latest
LEAST_BEFORE, LEAST_AFTER = 10, 5  # runs that a job needs there
BEFORE_DAYS = 56.0  # how far before that moment the comparison reaches back


class DriftParams(Params):
    """When a job counts as changed."""

    is_watched: bool = Field(
        True,
        description="The watch raises an alarm for a job whose runtimes are distributed otherwise than before (drift), "
        "once. False where jobs are meant to change",
    )
    since_days: float = Field(
        7,
        gt=0,
        le=36_500,
        description="The last days of the log are compared with what was before, in days. As long as between two "
        "releases",
    )
    false_discovery_rate: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Share of jobs reported as changed that may be so by luck (Benjamini-Hochberg). Less for "
        "fewer false ones",
    )


Measured = Literal[
    "wait_s", "runtime_s", "requested_runtime_s", "cpu_s", "requested_memory_bytes", "peak_memory_bytes", "input_bytes",
    "read_bytes", "temp_bytes",
]  # fmt: skip
Status = Literal["completed", "failed", "cancelled", "timeout", "running", "pending", "unknown"]

KeyPart = Literal[
    "name", "full_name", "short_name", "plan", "user", "cpus", "limit", "queue", "account", "partition", "qos"
]


class ReadParams(Params):
    """How job logs are read."""

    time_zone: str = Field(
        "",
        description="Time zone of logs that name none, such as Europe/Berlin or UTC; empty: ask for it. That of "
        "the machines that wrote the log",
    )
    future_slack_s: float = Field(
        86_400,
        ge=0,
        le=1e9,
        description="How far ahead of this machine's clock a time may lie, in seconds. More where clocks or zones "
        "are wrong",
    )
    columns: dict[str, str] = Field(
        {},
        description="Renames columns of tables: our name to the name in the file (ours: theirs), where the names "
        "are not known by themselves",
    )
    statuses: dict[str, Status] = Field(
        {},
        description="What statuses of logs mean that are not known by themselves (theirs: ours). For systems with "
        "words of their own",
    )
    units: dict[Measured, str] = Field(
        {},
        description="Units of columns of tables that are not in seconds or bytes, such as GB, MiB, ms, min. Where "
        "names do not say it",
    )
    features: list[str] = Field(
        [],
        max_length=1000,
        description="Further columns of tables that are kept, for predictions to rest on; all: every one. Input "
        "sizes, parameters, whatever sets runs apart",
    )
    pseudonymise: bool = Field(
        False,
        description="Replace users, names, hosts and ids made of names by keyed hashes before anything is kept. "
        "Where a log leaves the house",
    )
    sacct_fields: str = Field(
        "JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,GID,User,UID,Submit,Eligible,Start,End,Elapsed,ExitCode,"
        "State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Timelimit,NodeList,JobName",
        min_length=1,
        max_length=10_000,
        description="Fields of Slurm logs that have no header line, in their order, as sacct --format takes them. "
        "For exports made with --noheader",
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
    """What a column of MeasuredVertex is in: seconds or bytes."""
    return "bytes" if column.endswith("_bytes") else "s"


class GroupParams(Params):
    """Which runs are of one job: what they share, and which numbers in its name are part of the name."""

    by: list[KeyPart] = Field(
        [],
        description="What runs of one job share, such as user, cpus, limit (full_name: a name with its numbers "
        "and dates; short_name: without its last word); empty: as it was set before, else what predicts best, decided "
        "once. For jobs as you know them, such as name,cpus where a team shares its jobs",
    )
    kept_after: list[str] = Field(
        ["app", "level", "phase", "q", "query", "stage", "step", "tier", "tpcds", "tpch", "v", "version"],
        max_length=100,
        description="Words whose number (up to 3 digits) says which job it is: query 17, q-3, v 2. For benchmarks "
        "and stages with words of their own",
    )
    counted_after: list[str] = Field(
        [
            "attempt", "batch", "chunk", "copy", "exec", "id", "instance", "iter", "iteration", "job", "no", "num",
            "part", "partition", "r", "rep", "replica", "retry", "run", "seq", "shard", "split", "task", "trial", "try",
            "week", "worker",
        ],
        max_length=100,
        description="Words whose number is a counter and goes, even without a separator: run7, part3. For "
"counters with words of their own",
    )  # fmt: skip


HISTORIC_SHARE = 0.5  # of the finished runs, by submission, against whose medians the later ones stand (Figure 4)
STALAGMITE_RATIO = 3.0  # a new run at least this many times the historic median stands on the stalagmite (Figure 4)


class SummaryParams(Params):
    """How the runs of each recurring job are summarised."""

    statuses: list[Status] = Field(
        ["completed", "unknown"],
        min_length=1,
        description="Runs that count as finished: those with one of these statuses and a runtime. With failed "
        "where they take as long",
    )
    min_support: int = Field(
        3,
        ge=2,
        le=1_000_000,
        description="Finished runs that a job needs before its variation is reported. More for surer figures",
    )
    outlier_ratio: float = Field(
        10,
        gt=1,
        le=1e6,
        description="A run at least this many times the median of its job is an outlier. Less where twice as long "
        "already hurts",
    )
    outlier_delta_s: float = Field(
        900,
        gt=0,
        le=1e9,
        description="A run more than this above the median of its job is one, in seconds. Less for jobs of seconds",
    )


class WatchParams(Params):
    """Which runs and jobs raise an alarm, and how many false alarms may be expected."""

    alarms_per_day: float = Field(
        1,
        gt=0,
        le=1e6,
        description="Slow runs and stopped jobs that raise an alarm though nothing is wrong, expected a day, at "
        "most. As many as somebody will look at; less finds less",
    )
    look_back_days: float = Field(
        7,
        gt=0,
        le=36_500,
        description="Runs that ended in the last days of the log are looked at, in days. As long as between two "
        "watches, and some more",
    )
    statuses: list[Status] = Field(
        ["completed", "unknown", "timeout"],
        min_length=1,
        description="Runs that are looked at: those with one of these statuses and a runtime, and those that go "
        "on. With failed where they take as long",
    )


class ReportParams(Params):
    """What the page about jobs shows."""

    min_support: int = Field(
        3,
        ge=1,
        le=1_000_000,
        description="Finished runs that a job needs to be listed before those with fewer. More for a shorter "
        "first table",
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
