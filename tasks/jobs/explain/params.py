"""The parameters of explanations; nothing heavy is imported here."""

from pydantic import Field

from tasks.jobs.shape_params import Kind
from tasks.params import Params


class ExplainParams(Params):
    """Which runs are explained, against what, and how the explanations are checked."""

    kind: Kind = Field("ratio", description="Shapes that say how variable a job is: of ratios, or of differences")
    most_reasons: int = Field(5, ge=1, le=100, description="Reasons of a run, the largest first")
    least_factor: float = Field(
        1.05, ge=1, le=1e6, description="A reason makes a run at least so many times as long, or the odds, or as short"
    )
    usual_runs: int = Field(
        20, ge=3, le=100_000, description="Runs of the same job that a run is compared with, the latest of them"
    )
    look_back_days: float = Field(
        7, gt=0, le=36_500, description="Runs that ended in the last days of the log are explained, in days"
    )
    n_longest: int = Field(
        20, ge=0, le=10_000, description="How many of them: those that took the most times their job's usual time"
    )
    n_riskiest: int = Field(
        10, ge=0, le=10_000, description="Jobs whose next run is explained: those most likely to take long"
    )
    risk_ratio: float = Field(2, gt=1, le=1e6, description="Long: more than this many times the job's usual time")
    min_support: int = Field(3, ge=1, le=1_000_000, description="Earlier runs that a job needs to have a usual time")
    max_runs: int = Field(
        4000, ge=100, le=10_000_000, description="Held-out runs that are explained for tables and checks; of more, "
        "an even sample over time; as many training runs beside them"
    )  # fmt: skip
    n_resamples: int = Field(1000, ge=100, le=100_000, description="Resamples of the jobs for each interval")
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the resamples")
