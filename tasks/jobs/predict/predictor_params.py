"""The parameters of predicted runtime distributions; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

LeanOn = Literal["residual", "runtime"]


class LocationParams(Params):
    """How the expected runtime of a run is learnt, against the median of its job's earlier runs."""

    n_rounds: int = Field(200, ge=1, le=10_000, description="Trees of LightGBM")
    num_leaves: int = Field(15, ge=2, le=1024, description="Leaves of a tree")
    learning_rate: float = Field(0.05, gt=0, le=1, description="Share of each tree that is added")
    min_leaf_runs: int = Field(30, ge=1, le=1_000_000, description="Runs that a leaf needs")
    feature_share: float = Field(0.7, gt=0, le=1, description="Share of the features that a tree may use")
    row_share: float = Field(0.8, gt=0, le=1, description="Share of the runs that a tree sees")
    huber_delta: float = Field(
        0.5, gt=0, le=100, description="Errors beyond this, in log runtime, count linearly and not as squares"
    )
    n_folds: int = Field(
        5, ge=2, le=100, description="Stretches of the training time, each predicted by a model of the others"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the trees")


class SpreadParams(Params):
    """How the spread around the expected runtime is learnt."""

    n_trees: int = Field(60, ge=1, le=1000, description="Trees of the forest")
    num_leaves: int = Field(127, ge=2, le=4096, description="Leaves of a tree")
    min_leaf_runs: int = Field(20, ge=1, le=1_000_000, description="Runs that a leaf needs")
    feature_share: float = Field(0.5, gt=0, le=1, description="Share of the features that a split may use")
    row_share: float = Field(0.63, gt=0, lt=1, description="Share of the runs that a tree sees")
    n_bins: int = Field(150, ge=11, le=5000, description="Bins of runtime over expected runtime, finer around 1")
    finest_log: float = Field(
        0.02, gt=0, le=1, description="Deviations in log runtime below which bins no longer get finer"
    )
    reach_log: float = Field(6, gt=0, le=20, description="Largest deviation in log runtime that has a bin of its own")
    smoothing_bins: float = Field(1.5, ge=0, le=50, description="Standard deviation of the smoothing Gaussian, in bins")
    overall_share: float = Field(
        0.01,
        ge=0,
        lt=1,
        description="Share of the spread of all runs in each prediction, so that nothing is impossible",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the forest")


class LeanParams(Params):
    """How far a prediction leans on the job's own earlier runs."""

    prior_runs: tuple[float, ...] = Field(
        (5, 20, 60, 150, 400),
        min_length=1,
        max_length=50,
        description="Own runs that count as much as all else; the best by CRPS on the last training runs is taken",
    )
    ways: tuple[LeanOn, ...] = Field(
        ("residual", "runtime"),
        min_length=1,
        max_length=2,
        description="How own runs count: by what they took against what was expected of each, or by their runtimes; "
        "chosen with the above",
    )
    widths: tuple[float, ...] = Field(
        (0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2),
        min_length=1,
        max_length=50,
        description="Powers of runtime over expected runtime, for narrower (below 1) or wider predictions; the one is "
        "taken whose 90 % intervals come closest to holding 90 % of the last training runs",
    )
    calibration_runs: int = Field(
        1000, ge=10, le=1_000_000, description="The last so many runs that the model did not learn from set its width"
    )
    min_calibration_runs: int = Field(
        200, ge=1, le=1_000_000, description="Fewer such runs leave the width that the training runs gave"
    )
    block_runs: int = Field(250, ge=1, le=1_000_000, description="In an evaluation the width is set anew so often")
    most_runs: int = Field(500, ge=1, le=1_000_000, description="The last so many earlier runs of the job count")
    tail_share: float = Field(
        0.25, gt=0, lt=1, description="Share of the training runs, the latest, on which the choice is made"
    )


class PredictorParams(Params):
    """The predicted distribution of the runtime of a run."""

    location: LocationParams = LocationParams()
    spread: SpreadParams = SpreadParams()
    lean: LeanParams = LeanParams()
