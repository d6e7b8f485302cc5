"""The parameters of suspicions on a source; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

DetectorName = Literal["zscore", "forest", "lastk", "changepoint"]


class SuspectParams(Params):
    """Which detectors judge the executions of a source, and from where on an execution is suspicious."""

    detectors: tuple[DetectorName, ...] = Field(
        ("zscore", "forest", "lastk", "changepoint"), description="Detectors whose suspicions are kept"
    )
    false_alarm_share: float = Field(
        0.01, gt=0, lt=1, description="Share of the executions that is flagged where none is known to be stressed"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of what detectors draw")
