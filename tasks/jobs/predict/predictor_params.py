"""The parameters of predicted runtime distributions; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


class PredictorParams(Params):
    """The predicted distribution of the runtime of a run."""

    n_trees: int = Field(60, ge=1, le=1000, description="Trees of the quantile regression forest")
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the trees")
