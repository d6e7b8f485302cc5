"""The parameters of the scheduled check of what runs; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

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
