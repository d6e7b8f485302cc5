"""The parameters of a characterisation: split, normalisation, bins, shapes, posterior; nothing heavy is imported."""

from typing import Literal

from pydantic import Field, model_validator

from tasks.params import Params


class SplitParams(Params):
    """Shares of the runs, by submission, that are history (D1), training (D2); the rest is test (D3)."""

    history_share: float = Field(0.5, gt=0, lt=1, description="Share of the runs, by submission, that are history, D1")
    training_share: float = Field(0.3, gt=0, lt=1, description="Share of the runs that are training data, D2")
    use_periods: bool = Field(
        True, description="Take the periods of a recording instead, where the log has at least three"
    )

    @model_validator(mode="after")
    def _leaves_a_test(self) -> "SplitParams":
        if self.history_share + self.training_share >= 1:
            raise ValueError("history_share and training_share together below 1, so that some runs are left to test")
        return self


Kind = Literal["ratio", "delta"]


class NormalisationParams(Params):
    """Which median a run is compared with."""

    min_before: int = Field(
        1,
        ge=1,
        le=1_000_000,
        description="Runs that must have ended before a submission for their median, where period D1 has none",
    )


class BinParams(Params):
    """How normalised runtimes are cut into bins."""

    n_bins: int = Field(200, ge=3, le=10_000, description="Bins of a distribution, the two for outliers among them")
    ranges: Literal["paper", "data"] = Field(
        "paper", description="Ends of the bins: as set here, or from the runs by the rule of footnote 3"
    )
    ratio_high: float = Field(10, gt=1, le=1e6, description="Ratios from here on are outliers (ranges: paper)")
    delta_high_s: float = Field(
        900, gt=0, le=1e9, description="Deltas beyond this are outliers, on both sides, in seconds (ranges: paper)"
    )
    tail_share: float = Field(
        0.01, gt=0, lt=0.5, description="Share of the runs that lie above the upper end before it is rounded down"
    )


class ShapeParams(Params):
    """How typical distributions are found among those of the jobs."""

    k: int = Field(8, ge=1, le=100, description="Number of shapes")
    min_support: int = Field(20, ge=1, le=1_000_000, description="Runs that a job needs to take part")
    smoothing_bins: float = Field(
        1, ge=0, le=100, description="Standard deviation of the Gaussian that smooths a distribution, in bins of 200"
    )


class PosteriorParams(Params):
    """How jobs are matched with shapes."""

    empty_bin_prior: float = Field(
        0.001, ge=0, lt=1, description="Probability of each shape that is spread evenly over all bins"
    )
    prior: Literal["uniform", "size"] = Field(
        "uniform", description="Prior of the shapes: all alike as in the paper, or by the number of jobs of each"
    )


class CharacteriseParams(Params):
    """Periods, medians, bins, shapes and posterior of one characterisation."""

    split: SplitParams = SplitParams()
    normalisation: NormalisationParams = NormalisationParams()
    bins: BinParams = BinParams()
    shapes: ShapeParams = ShapeParams()
    posterior: PosteriorParams = PosteriorParams()
    label_support: int = Field(
        3, ge=1, le=1_000_000, description="Runs that a job needs in a period to be labelled with a shape there"
    )
