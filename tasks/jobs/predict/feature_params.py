"""How earlier runs become features; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


class FeatureParams(Params):
    """Which features a run gets, and how much of its job's history is in them."""

    window_runs: int = Field(
        200, ge=1, le=100_000, description="Medians and quartiles are over at most so many earlier runs, the last ones"
    )
    evidence_runs: int = Field(
        1_000_000,
        ge=1,
        le=1_000_000,
        description="At most so many earlier runs, the last ones, are evidence for the shape of a job",
    )
    recent_runs: int = Field(
        10, ge=1, le=1_000_000, description="The last so many of them are evidence of its own: jobs change their shape"
    )
    half_life_runs: float = Field(
        5, gt=0, le=10_000, description="Runs after which a run counts half in the mean of recent runtimes"
    )
    slow_ratio: float = Field(2, gt=1, le=1e6, description="From so many times its median on a run counts as slow")
    least_runtime_s: float = Field(
        0.001, gt=0, le=3600, description="Shorter runtimes count as this long in logarithms, in seconds"
    )
    left_out: tuple[str, ...] = Field(
        (), max_length=100, description="Features to leave out, such as hour_of_day; * stands for any characters"
    )
