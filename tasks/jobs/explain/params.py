"""The parameters of explanations; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


class ExplainParams(Params):
    """Which runs are explained, and with how many reasons."""

    most_reasons: int = Field(5, ge=1, le=100, description="Reasons of a run, the largest first")
    look_back_days: float = Field(
        7, gt=0, le=36_500, description="Runs that ended in the last days of the log are explained, in days"
    )
    n_longest: int = Field(
        20, ge=0, le=10_000, description="How many of them: those that took the most times their job's usual time"
    )
    n_riskiest: int = Field(
        10, ge=0, le=10_000, description="Jobs whose next run is explained: those most likely to take long"
    )
