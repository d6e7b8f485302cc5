"""The parameters of an evaluation of labelled telemetry; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


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
    max_items: int = Field(
        2_000, ge=10, le=1_000_000, description="Runs and windows that are evaluated; of more, a sample"
    )
    repeats: int = Field(10, ge=1, le=10_000, description="Random splits")
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of splits, samples and superposed runs")
