"""The parameters of the plain detectors; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


class DetectorParams(Params):
    """How the plain detectors find executions that are not like the others."""

    norm: float = Field(
        2.0, ge=1, le=100, description="Power of the mean over a type's metrics; large: the worst metric alone counts"
    )
    largest: float = Field(100.0, gt=1, le=1e6, description="Deviations of one metric are cut here")
    min_history: int = Field(
        10,
        ge=3,
        le=10_000,
        description="Executions of a node and type to judge it by its own level; of fewer, the fleet",
    )
    history: int = Field(
        50, ge=3, le=100_000, description="Latest executions that a node without training executions is judged by"
    )
    least_spread: float = Field(
        0.5, gt=0, le=10, description="A node's own spread counts as at least this share of that within all nodes"
    )
    k: int = Field(10, ge=1, le=10_000, description="Last-k median: normal-looking executions that the median is of")
    looks_normal: float = Field(
        3.5, gt=0, le=1e6, description="Last-k median: deviations up to which an execution enters later medians"
    )
    trees: int = Field(200, ge=10, le=10_000, description="Isolation forest: trees of each type")
    expected_run_length: float = Field(
        50.0, gt=1, le=1e9, description="Change points: executions between changes before any is seen"
    )
    recent: int = Field(
        3, ge=1, le=1000, description="Change points: a change at most so many executions ago makes one suspicious"
    )
    compared: int = Field(
        20, ge=2, le=10_000, description="Change points: earlier executions whose median tells worse from better"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the forests")
