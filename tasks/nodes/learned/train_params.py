"""The parameters of a training on a source; nothing heavy is imported here."""

from pydantic import Field, model_validator

from tasks.params import Params


class TrainParams(Params):
    """What a model is fitted to, and what it is measured on before it is used."""

    train_share: float = Field(0.6, gt=0, lt=1, description="First share of each node's executions, to learn from")
    validation_share: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="Share after it, to choose epoch and threshold on; the rest measures",
    )
    false_alarm_share: float = Field(
        0.01, gt=0, lt=1, description="Share that is flagged where validation has no execution known to be stressed"
    )
    most_graphs: int = Field(
        5000, ge=10, le=100_000_000, description="Executions that a fit learns from; of more, so many are drawn"
    )

    @model_validator(mode="after")
    def _leaves_a_rest(self) -> "TrainParams":
        if self.train_share + self.validation_share >= 1:
            total = self.train_share + self.validation_share
            raise ValueError(f"train_share and validation_share make {total:g}; expected less than 1, the rest tests")
        return self
