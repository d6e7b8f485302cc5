"""The parameters of scores and rankings of nodes; nothing heavy is imported here."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.params import Params


class ScoreParams(Params):
    """How nodes are scored and ranked."""

    basis: Literal["throughput", "all"] = Field(
        "throughput",
        description="Metrics that count: rates alone where a benchmark has any, else times; or all that can be better",
    )
    left_out_aspects: list[str] = Field(
        ["application"], max_length=100, description="Aspects that do not count; applications are what scores are for"
    )
    aspect_weights: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = Field(
        {}, description="Weight of each aspect in the one number of a node; 1 where nothing is said"
    )
    largest_ratio: float = Field(
        1000.0, gt=1, le=1e9, description="Ratios to the reference are cut here; a throughput of 0 counts as 1 over it"
    )
    resamples: int = Field(1000, ge=100, le=100_000, description="Resamples behind an interval")
    confidence: float = Field(0.95, ge=0.5, lt=1, description="Confidence of intervals, and of ties")
    min_executions: int = Field(
        5, ge=2, le=1000, description="Fewer executions of a type take their spread from the other nodes'"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the resamples")
