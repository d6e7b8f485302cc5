"""The parameters of an evaluation of a job log, and of a training; nothing heavy is imported here."""

from pydantic import Field

from tasks.jobs.shape_params import BinParams, CharacteriseParams
from tasks.params import Params


class PredictParams(Params):
    """How the next runs of a log are predicted: shapes, the classifier of their labels, and boosted quantiles."""

    characterise: CharacteriseParams = CharacteriseParams(bins=BinParams(ranges="data"))
    known_before: list[str] = Field(
        [],
        max_length=1000,
        description="Further columns of a table that are known before a run begins, so that predictions may use them",
    )
    n_trees: int = Field(100, ge=1, le=1000, description="Trees of each of the boosted quantiles")
    n_rounds: int = Field(
        80, ge=1, le=10_000, description="Rounds of the classifier of shapes; a tree for each shape a round"
    )


class EvaluateParams(Params):
    """The protocol of an evaluation: train on what came earlier, score what came later."""

    predict: PredictParams = PredictParams()
    baseline_trees: int = Field(
        150, ge=1, le=10_000, description="Trees of each boosted quantile, and of the random forest, to compare with"
    )
    max_test_runs: int = Field(
        50_000, ge=100, le=10_000_000, description="Test runs that are scored; of more, an even sample over time"
    )
    max_training_runs: int = Field(
        100_000, ge=100, le=100_000_000, description="Training runs that models learn from; of more, the latest"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of everything random")


def quick(params: EvaluateParams) -> EvaluateParams:
    """A training that takes seconds and predicts a little less well, for a first look; the split stays."""
    predict = params.predict.model_copy(update={"n_trees": 40, "n_rounds": 20})
    changed = {"predict": predict, "baseline_trees": 20, "max_test_runs": 1500, "max_training_runs": 10_000}
    return params.model_copy(update=changed)
