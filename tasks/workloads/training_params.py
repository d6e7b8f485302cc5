"""The parameters of a training of a model of workloads; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params
from tasks.workloads.choices import HoldOut
from tasks.workloads.evaluate.params import WindowParams


class TrainParams(Params):
    """What a training learns from, and which runs it holds out to be measured on."""

    hold_out: HoldOut = Field(
        "auto",
        description="Held out: round, the last one; time, the later part of each workload; auto: the last round where "
        "there are two and more, else by time",
    )
    held_out_share: float = Field(
        0.3, gt=0, lt=1, description="Share of each workload's runs, or of a long trace, that is held out by time"
    )
    windows: WindowParams = WindowParams()
    max_windows: int = Field(
        120, ge=2, le=100_000, description="Windows that are taken of one long trace, evenly spread over it"
    )
    with_machine: bool = Field(
        True, description="Train a twin on the machine's counters alone, for runs without a control group of their own"
    )
