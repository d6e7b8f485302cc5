"""The parameters of time limits, running jobs, drift and costs; nothing heavy is imported here."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.params import Params

Level = Annotated[float, Field(gt=0, lt=1)]


class OutlookParams(Params):
    """Limits of the next run and chances of running ones."""

    levels: tuple[Level, ...] = Field(
        (0.5, 0.9, 0.95, 0.99),
        min_length=1,
        max_length=20,
        description="Probabilities with which a run stays under its time limits; between 0 and 1",
    )


class DriftParams(Params):
    """When a job counts as changed."""

    is_watched: bool = Field(True, description="The watch raises an alarm for a job that drifts to another shape, once")
    since_days: float = Field(
        7, gt=0, le=36_500, description="The last days of the log are compared with what was before, in days"
    )
    before_days: float = Field(
        56, gt=0, le=36_500, description="How far before that moment the comparison reaches back, in days"
    )
    min_before: int = Field(10, ge=2, le=1_000_000, description="Runs that a job needs before the moment")
    min_after: int = Field(5, ge=2, le=1_000_000, description="Runs that a job needs since the moment")
    stretch_days: float = Field(
        1,
        gt=0,
        le=36_500,
        description="Runs of a job within a stretch of so many days count as one piece of evidence, since what slows "
        "one of them slows the others",
    )
    n_stretches: int = Field(
        7,
        ge=0,
        le=10_000,
        description="Stretches since the moment, at least: shorter ones in a short log; 0: each run counts by itself",
    )
    max_runs: int = Field(
        500, ge=10, le=1_000_000, description="Runs of a job that are compared, on each side; of more, the latest"
    )
    test: Literal["anderson-darling", "kolmogorov-smirnov"] = Field(
        "anderson-darling",
        description="Statistic that compares the runs before and since; its p-value is by permutation",
    )
    false_discovery_rate: float = Field(
        0.05, gt=0, lt=1, description="Share of jobs reported as changed that may be so by luck (Benjamini-Hochberg)"
    )
    min_bayes_factor: float = Field(
        10,
        ge=1,
        le=1e12,
        description="How many times likelier two different shapes must be than one, to report another shape",
    )
    max_permutations: int = Field(
        100_000, ge=100, le=10_000_000, description="Permutations at most; fewer are done where fewer jobs are compared"
    )
    seed: int = Field(0, ge=0, le=2**32 - 1, description="Seed of the permutations")


class CostParams(Params):
    """Which jobs cost the most waiting through variation."""

    n_jobs: int = Field(10, ge=1, le=100_000, description="Jobs that are listed")
    min_support: int = Field(3, ge=2, le=1_000_000, description="Runs that a job needs to be looked at")
    n_resamples: int = Field(
        1000, ge=100, le=100_000, description="Resamples of the runs of a job for the interval of its cost"
    )
    confidence: float = Field(0.9, gt=0, lt=1, description="Confidence of that interval")
    seed: int = Field(0, ge=0, le=2**32 - 1, description="Seed of the resamples")
