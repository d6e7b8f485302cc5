"""How a log is split by time into history, training and test; nothing heavy is imported here."""

from pydantic import Field, model_validator

from tasks.params import Params


class SplitParams(Params):
    """Shares of the runs, by submission, that are history (D1), training (D2); the rest is test (D3)."""

    history_share: float = Field(0.5, gt=0, lt=1, description="Share of the runs, by submission, that are history, D1")
    training_share: float = Field(0.3, gt=0, lt=1, description="Share of the runs that are training data, D2")
    use_periods: bool = Field(
        True, description="Take the periods of a recording instead, where the log has at least three"
    )

    @model_validator(mode="after")
    def _leaves_a_test(self) -> "SplitParams":
        if self.history_share + self.training_share >= 1:
            raise ValueError("history_share and training_share together below 1, so that some runs are left to test")
        return self
