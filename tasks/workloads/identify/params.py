"""The parameters of identification and of its training; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params
from tasks.workloads.changepoints.params import ChangePointParams
from tasks.workloads.choices import HoldOut
from tasks.workloads.evaluate.params import WindowParams

PhaseMode = Literal["counter", "shared"]


class FingerprintParams(Params):
    """How runs are cut into phases."""

    mode: PhaseMode = Field(
        "counter",
        description="Change points of each counter by itself (V-B), or one set over all counters (III-A)",
    )
    changepoints: ChangePointParams = ChangePointParams()


class IdentifyParams(Params):
    """How workloads are learned and identified."""

    fingerprint: FingerprintParams = FingerprintParams()
    least_common: float = Field(
        0.6,
        gt=0,
        le=1,
        description="Share of a model's counters that a run must have; one with fewer is refused, and told which",
    )
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
    held_out_share: float = Field(
        0.3, gt=0, lt=1, description="Share of each workload's runs, or of a long trace, that is held out by time"
    )
    windows: WindowParams = WindowParams()
    max_windows: int = Field(
        120, ge=2, le=100_000, description="Windows that are taken of one long trace, evenly spread over it"
    )
