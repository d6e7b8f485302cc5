"""The parameters of verdicts on executions and of alarms; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field, model_validator

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


class AlarmParams(Params):
    """When executions that are flagged become an alarm, what confirms it and what clears it."""

    threshold: float = Field(
        0.0, ge=0, lt=1, description="Executions with a probability above this count as flagged; 0: the model's verdict"
    )
    flagged: int = Field(
        3, ge=2, le=1000, description="So many of the last executions of a node and aspect must be flagged: one is none"
    )
    last: int = Field(5, ge=2, le=1000, description="How many of the last executions are looked at")
    min_executions: int = Field(
        5, ge=2, le=100_000, description="Executions of a node and aspect before there can be an alarm"
    )
    window_days: float = Field(
        30.0, gt=0, le=36_500, description="Executions longer ago than this raise no alarm together with the newest"
    )
    confirm: int = Field(2, ge=1, le=1000, description="Executions flagged after the alarm was raised that confirm it")
    clear: int = Field(3, ge=1, le=1000, description="Executions in a row without a flag that clear an alarm")

    @model_validator(mode="after")
    def _can_be_raised(self) -> "AlarmParams":
        if self.flagged > self.last:
            raise ValueError(f"flagged ({self.flagged}) of the last ({self.last}) executions; expected flagged <= last")
        return self
