"""The parameters of normalisation; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

Normalisation = Literal["absolute", "zscore", "training"]


class NormalisationParams(Params):
    """How counters of unlike magnitude become comparable."""

    normalisation: Normalisation = Field(
        "absolute",
        description="absolute: |x − μ| / σ over the run (eq. 7); zscore: the same with its sign; training: centre and "
        "spread over all training runs, rates by their logarithm, so that levels count",
    )
    distances: Normalisation = Field(
        "training",
        description="The same for the distances between runs (V-D), which tell more where levels count; without a "
        "learned scale as the phases",
    )
    clip: float = Field(8, gt=0, le=1e6, description="Deviations from the training runs beyond which a value is cut")
