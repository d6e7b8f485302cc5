"""The parameters of an evaluation of labelled telemetry; nothing heavy is imported here."""

from typing import Annotated

from pydantic import Field

from tasks.params import Params
from tasks.workloads.identify.params import IdentifyParams


class WindowParams(Params):
    """How long traces are cut."""

    width_s: float = Field(30, gt=0, le=86_400, description="Length of a window, in seconds")
    step_s: float = Field(
        0,
        ge=0,
        le=86_400,
        description="Seconds from one window to the next, at least a sample; 0: the width, so that none overlap",
    )
    long_windows: float = Field(
        3, ge=1, le=1_000_000, description="Traces longer than so many windows are cut, shorter ones are runs"
    )
    min_measured: float = Field(
        0.5, gt=0, le=1, description="Windows with values in a smaller share of their samples are left out"
    )


class SampleParams(Params):
    """What bounds the cost of large inputs. Of runs, a random sample is drawn from each workload alike."""

    max_items: int = Field(
        2_000, ge=10, le=1_000_000, description="Runs and windows that are evaluated; of more, a sample"
    )
    repeats: int = Field(10, ge=1, le=10_000, description="Random splits")
    max_slices: int = Field(
        20, ge=1, le=10_000, description="Rounds, inputs or machines that are left out in turn; of more, an even sample"
    )
    unknown_pairs: int = Field(
        60, ge=1, le=10_000, description="Choices of two workloads that are held out as unknown; of more, a sample"
    )
    online_repeats: int = Field(
        3, ge=1, le=10_000, description="Random splits for first seconds, windows, thresholds and pairs of runs"
    )
    max_run_pairs: int = Field(
        2_000, ge=10, le=10_000_000, description="Pairs of runs to learn same or different from, half of them the same"
    )


class EvaluateParams(Params):
    """The protocol of an evaluation: known and unknown workloads, thresholds, windows."""

    identify: IdentifyParams = IdentifyParams()
    windows: WindowParams = WindowParams()
    sample: SampleParams = SampleParams()
    training_share: float = Field(0.7, gt=0, lt=1, description="Share of a workload's runs to learn from (RQ1)")
    earlier_share: float = Field(
        0.6, gt=0, lt=1, description="Share of a trace's time, or of a workload's runs by their start, to learn from"
    )
    known_recall: float = Field(
        0.95, gt=0, lt=1, description="Share of known runs that are taken for known where false ones are counted"
    )
    online_s: list[Annotated[float, Field(gt=0, le=86_400)]] = Field(
        [5, 10, 15, 20, 30], max_length=100, description="Seconds after which runs are identified"
    )
    paper_known: list[str] = Field(
        ["mariadb", "cnn", "redis", "wordpress"],
        max_length=1_000,
        description="Workloads that the paper's second case study learns from",
    )
    paper_unknown: list[str] = Field(
        ["bayes", "postgresql"], max_length=1_000, description="Workloads that it has never seen"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of splits and samples; trees have their own")
