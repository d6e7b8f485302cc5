"""The parameters of similarity; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

Distance = Literal["euclidean", "dtw"]
Cost = Literal["manhattan", "squared"]
Backend = Literal["own", "tslearn", "dtaidistance"]
Threshold = Literal["within", "radius", "one_sided"]


class SimilarityParams(Params):
    """How two sequences of phases are compared, and when they count as the same workload."""

    distance: Distance = Field("dtw", description="Distance between runs: euclidean (eq. 5) or dtw (eq. 6)")
    cost: Cost = Field("manhattan", description="Local cost of DTW: manhattan (V-D) or squared (eq. 6)")
    backend: Backend = Field("own", description="Library behind DTW; dtaidistance has the squared cost only")
    threshold: Threshold = Field(
        "radius",
        description="A run is of a workload if its distance is within mean ± deviation, below the mean (radius), or "
        "below mean + deviations (one_sided)",
    )
    deviations: float = Field(2, ge=0, le=100, description="Deviations above the mean that one_sided allows")
