"""The parameters of verdicts on executions and of alarms; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params


class DetectorParams(Params):
    """What is known beforehand of benchmarks that no tool here describes."""

    headlines: dict[str, tuple[str, ...]] = Field(
        {}, description="Metrics that a benchmark exists to report, by benchmark; of tools that are known theirs count"
    )


class BudgetParams(Params):
    """How many false alarms may be raised; the threshold of verdicts follows from it."""

    by: Literal["alarms", "precision", "recall"] = Field(
        "alarms",
        description="alarms: false ones a day over the fleet; precision, recall: of flagged executions, labels needed",
    )
    alarms_per_day: float = Field(1.0, gt=0, le=10_000, description="False alarms a day over the whole fleet, at most")
    share: float = Field(0.9, gt=0, lt=1, description="The precision, or the recall, that is wanted")
