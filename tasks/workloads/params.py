"""The parameters of the word `workloads`, as conf/workloads.yaml, flow forms and flags show them; nothing heavy is
imported here. Reading, recording and change points have theirs beside them."""

from typing import Literal

from pydantic import Field

from tasks.choices import HoldOut
from tasks.params import Params
from tasks.report.params import WorkloadsReportParams
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.record.params import RecordParams

LookAt = Literal["live", "newest"]


class WatchParams(Params):
    """What is looked at, what should run, and when there is an alarm."""

    look_at: LookAt = Field(
        "live", description="live: record what runs now on the worker's machine; newest: the latest runs of the source"
    )
    subject: str = Field(
        "machine", min_length=1, max_length=4096, description="Recorded: machine, a process id, or a control group"
    )
    seconds: float = Field(30, ge=5, le=3600, description="How long is recorded, in seconds")
    newest: int = Field(10, ge=1, le=100_000, description="How many of the latest runs are looked at")
    expected: list[str] = Field(
        [], max_length=1000, description="Workloads that may run; empty: what was last identified on that machine"
    )
    min_confidence: float = Field(
        0.5, ge=0, le=1, description="An identification that is less sure than this counts as unknown"
    )


class FanOutParams(Params):
    """How the fingerprints of many runs are shared out."""

    ray_address: str = Field(
        "",
        max_length=500,
        description="Ray that makes fingerprints, such as ray://head:10001; local: one on this machine; empty: none",
    )
    runs_per_part: int = Field(
        50, ge=1, le=100_000, description="Runs of one part: each is a task of its own, tried again on its own"
    )


class WindowParams(Params):
    """How long traces are cut."""

    width_s: float = Field(30, gt=0, le=86_400, description="Length of a window, in seconds")
    step_s: float = Field(
        0,
        ge=0,
        le=86_400,
        description="Seconds from one window to the next, at least a sample; 0: the width, so that none overlap",
    )


class EvaluateParams(Params):
    """The protocol of an evaluation: known and unknown workloads, conditions, windows."""

    windows: WindowParams = WindowParams()
    repeats: int = Field(10, ge=1, le=10_000, description="Random splits")
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of splits, samples and superposed runs")


PhaseMode = Literal["counter", "shared"]


class FingerprintParams(Params):
    """How runs are cut into phases."""

    mode: PhaseMode = Field(
        "counter",
        description="Change points of each counter by itself (V-B), or one set over all counters (III-A)",
    )


class IdentifyParams(Params):
    """How workloads are learned and identified."""

    fingerprint: FingerprintParams = FingerprintParams()
    known_recall: float = Field(
        0.95, gt=0, lt=1, description="Share of held-out known runs, in company or alone, that are to be called known"
    )
    seed: int = Field(7, ge=0, le=2**31 - 1, description="Decides which runs are superposed in training")


class TrainParams(Params):
    """What a training learns from, and which runs it holds out to be measured on."""

    hold_out: HoldOut = Field(
        "auto",
        description="Held out: round, the last one; time, the later part of each workload; auto: the last round where "
        "there are two and more, else by time",
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
