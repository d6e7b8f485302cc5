"""The parameters of the word `workloads`, as conf/workloads.yaml, flow forms and flags show them; nothing heavy is
imported here. Change points have theirs beside them."""

from typing import Literal

from pydantic import Field

from tasks.choices import HoldOut
from tasks.params import Params, ReadLimits

TELEMETRY_BYTES = 2 * 2**30


class WorkloadsReportParams(Params):
    """What the page about workloads shows."""

    n_counters: int = Field(
        5, ge=1, le=20, description="Counters in the figure of a run over time. More to see what else moves in one run"
    )


class RegularParams(Params):
    """What becomes of irregular samples, gaps and short runs."""

    interval_s: float = Field(
        0,
        ge=0,
        le=86_400,
        description="Bring every run to this many seconds between samples; 0: each to its own. For who joins "
        "telemetry of tools with different intervals",
    )
    max_gap_intervals: int = Field(
        10,
        ge=1,
        le=1_000_000,
        description="Longer gaps cut a run in two; shorter ones become missing samples. Fewer where a restart of "
        "the collector hides another workload",
    )
    min_samples: int = Field(
        5,
        ge=1,
        le=1_000_000,
        description="Runs with fewer samples are refused. More where short runs are named wrongly",
    )


class PrometheusParams(Params):
    """How a Prometheus server is asked."""

    match: list[str] = Field(
        [],
        max_length=100,
        description='Series to read, as PromQL selectors, such as {job="node"}; empty: those of the address. For '
        "servers that hold more than the machines asked about",
    )
    run_by: str = Field(
        "instance",
        min_length=1,
        max_length=200,
        description="Label whose values are runs of their own, such as pod where several share a machine",
    )
    start: str = Field(
        "",
        max_length=40,
        description="Begin, ISO time or Unix seconds; empty: last_s before the end. For a look at a past incident",
    )
    end: str = Field("", max_length=40, description="End, ISO time or Unix seconds; empty: now")
    last_s: float = Field(
        3600,
        gt=0,
        le=1e9,
        description="How far back to read where no begin is given, in seconds. Less for answers about now",
    )
    step_s: float = Field(
        0,
        ge=0,
        le=86_400,
        description="Seconds between samples; 0: the server's scrape interval. Longer for months of history",
    )
    max_series: int = Field(
        5_000, ge=1, le=1_000_000, description="More series than this are refused. More for large fleets"
    )


class ReadParams(Params):
    """How telemetry is read, and where the labels of its runs come from."""

    label_from: str = Field(
        "",
        max_length=200,
        description="Workload of a file: stem (its name), name (without the number at its end), parent (its "
        "folder), column:NAME; empty: its own columns. For inboxes whose files are named after what ran",
    )
    manifest: str = Field(
        "",
        max_length=4096,
        description="CSV or JSONL with path, workload, input, round, machine of each file. For who knows of files "
        "what they do not say",
    )
    columns: dict[str, str] = Field(
        {},
        description="Renames columns of tables: our name to the name in the file (ours: theirs), where tables "
        "come from another tool",
    )
    time_zone: str = Field(
        "UTC",
        min_length=1,
        max_length=100,
        description="Time zone of times that name none. That of the machines that wrote the files",
    )
    pseudonymise: bool = Field(
        False,
        description="Replace machines and names of runs by keyed hashes, before anything is kept. Where telemetry "
        "leaves the house that measured it",
    )
    interval_s: float = Field(
        0,
        ge=0,
        le=86_400,
        description="Seconds between the rows of tables without a time; 0: such a table is refused. For exports "
        "that leave the time out",
    )
    regular: RegularParams = RegularParams()
    prometheus: PrometheusParams = PrometheusParams()
    limits: ReadLimits = ReadLimits(max_bytes=TELEMETRY_BYTES)


Condition = Literal["pair", "pair_unlearned", "load", "limit", "unlearned", "input", "idle", "alone"]


class RecordParams(Params):
    """Which workloads run how often, and how they are sampled."""

    minutes: float = Field(
        150,
        gt=0,
        le=2880,
        description="How long this call starts runs, in minutes; the next call goes on. As long as the machine is free",
    )
    seed: int = Field(
        7,
        ge=0,
        le=2**31,
        description="Decides the order of the runs and all that is random in them. Another for a second, "
        "independent recording",
    )
    workloads: tuple[str, ...] = Field(
        (), description="Workloads to record, by name; empty: all there are. Fewer where a server is not installed"
    )
    rounds: int = Field(
        5,
        ge=1,
        le=100,
        description="Rounds, with a full stop and fresh data in between; 3 or more. More to learn what differs "
        "from one day to the next",
    )
    runs: int = Field(
        10,
        ge=1,
        le=10_000,
        description="Runs of each workload with each input, over all rounds. More for workloads that vary",
    )
    conditions: tuple[Condition, ...] = Field(
        (),
        description="Record under these conditions, in shares of their own, instead of each workload alone. For "
        "who identifies on shared machines",
    )
    samples: int = Field(30, ge=2, le=86_400, description="Samples of a run. More for workloads whose phases are long")
    interval_s: float = Field(
        1, ge=0.1, le=3600, description="Time between two samples, in seconds. Shorter for phases of less than a second"
    )
    pause_s: float = Field(
        3,
        ge=0,
        le=600,
        description="Rest between two runs, after the disks are in step, in seconds. Longer where caches or disks "
        "take time to settle",
    )
    perf: Literal["none", "light", "syscalls"] = Field(
        "light",
        description="Events that perf counts; syscalls: system calls as well, which slows each of them down. None "
        "where perf may not run",
    )
    foreign_limit_ratio: float = Field(
        0.1,
        gt=0,
        le=1,
        description="A run is repeated if others used more than this ratio of the machine's cores. More on "
        "machines that are never quiet",
    )
    repeats: int = Field(
        2,
        ge=0,
        le=100,
        description="How often runs that were disturbed or failed are repeated. None where time is short",
    )
    machine: str = Field(
        "",
        max_length=100,
        description="Name of this machine in the recording; empty: its processor. For fleets of equal processors",
    )
    scratch: str = Field(
        "",
        description="Folder for the workloads' data; empty: one in the system's temporary folder. For a disk with "
        "more room",
    )


LookAt = Literal["live", "newest"]


class WatchParams(Params):
    """What is looked at, what should run, and when there is an alarm."""

    look_at: LookAt = Field(
        "live",
        description="live: record what runs now on the worker's machine; newest: the latest runs of the source. "
        "Newest where another collector brings the telemetry",
    )
    subject: str = Field(
        "machine",
        min_length=1,
        max_length=4096,
        description="Recorded: machine, a process id, or a control group. The group where machines are shared",
    )
    seconds: float = Field(30, ge=5, le=3600, description="How long is recorded, in seconds. Longer for surer names")
    newest: int = Field(
        10,
        ge=1,
        le=100_000,
        description="How many of the latest runs are looked at. As many as come in between two watches",
    )
    expected: list[str] = Field(
        [],
        max_length=1000,
        description="Workloads that may run; empty: what was last identified on that machine. For machines with "
        "one purpose",
    )
    min_confidence: float = Field(
        0.5,
        ge=0,
        le=1,
        description="An identification that is less sure than this counts as unknown. Higher for fewer wrong "
        "names, lower for fewer alarms",
    )


class FanOutParams(Params):
    """How the fingerprints of many runs are shared out."""

    ray_address: str = Field(
        "",
        max_length=500,
        description="Ray that makes fingerprints, such as ray://head:10001; local: one on this machine; empty: "
        "none. For who fingerprints tens of thousands of runs",
    )
    runs_per_part: int = Field(
        50,
        ge=1,
        le=100_000,
        description="Runs of one part: each is a task of its own, tried again on its own. More for fewer tasks, "
        "fewer where workers are lost",
    )


class WindowParams(Params):
    """How long traces are cut."""

    width_s: float = Field(
        30,
        gt=0,
        le=86_400,
        description="Length of a window, in seconds. Longer for surer names, shorter to see changes",
    )
    step_s: float = Field(
        0,
        ge=0,
        le=86_400,
        description="Seconds from one window to the next, at least a sample; 0: the width, so that none overlap. "
        "Shorter to see when a workload changed",
    )


class EvaluateParams(Params):
    """The protocol of an evaluation: known and unknown workloads, conditions, windows."""

    windows: WindowParams = WindowParams()
    repeats: int = Field(10, ge=1, le=10_000, description="Random splits. More for narrower intervals")
    seed: int = Field(
        0,
        ge=0,
        le=2**31 - 1,
        description="Seed of splits, samples and superposed runs. Another to see what chance does",
    )


class IdentifyParams(Params):
    """How workloads are learned and identified."""

    known_recall: float = Field(
        0.95,
        gt=0,
        lt=1,
        description="Share of held-out known runs, in company or alone, that are to be called known. Higher for "
        "fewer known runs called unknown, lower to find more that is unknown",
    )
    seed: int = Field(
        7,
        ge=0,
        le=2**31 - 1,
        description="Decides which runs are added up in training, as if at work at once. Another to see what chance "
        "does",
    )


class TrainParams(Params):
    """What a training learns from, and which runs it holds out to be measured on."""

    hold_out: HoldOut = Field(
        "auto",
        description="Held out: round, the last one; time, the later part of each workload; auto: the last round "
        "where there are two and more, else by time. For who names rounds that are no sessions",
    )
    windows: WindowParams = WindowParams()


class WorkloadsParams(Params):
    """Everything of the word `workloads` that can be set in conf/workloads.yaml."""

    record: RecordParams = RecordParams()
    read: ReadParams = ReadParams()
    identify: IdentifyParams = IdentifyParams()
    train: TrainParams = TrainParams()
    watch: WatchParams = WatchParams()
    evaluate: EvaluateParams = EvaluateParams()
    fan_out: FanOutParams = FanOutParams()
    report: WorkloadsReportParams = WorkloadsReportParams()
