"""What can be set of what-if questions, and the names of the scenarios; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

Charged = Literal["used", "requested"]


class WhatIfParams(Params):
    """What a change is measured by, and when a predicted change counts."""

    price_per_token_hour: float = Field(
        0.05, ge=0, le=1e6, description="Price of one token for one hour, in any currency; money scales with it"
    )
    charged: Charged = Field(
        "used", description="Tokens that are paid for: used, the mean in use over earlier runs, or requested"
    )
    outlier_ratio: float = Field(
        10, gt=1, le=1e6, description="A run of at least this many times the historic median is an outlier"
    )
    outlier_delta_s: float = Field(
        900, gt=0, le=1e9, description="So is, by the other normalisation, one this far from that median, in seconds"
    )
    newest_sku: str = Field(
        "", max_length=200, description="SKU that newest_sku moves everything to; empty: the last in order of names"
    )
    n_atoms: int = Field(
        100, ge=10, le=10_000, description="Values that stand for a distribution in its mean and standard deviation"
    )
    n_resamples: int = Field(2000, ge=100, le=100_000, description="Resamples of the bootstrap over jobs")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="Confidence of every interval")
    dead_band: float = Field(
        0.05, ge=0, le=10, description="A pair whose log runtime changed by less than this has no direction"
    )
    dead_band_s: float = Field(0.05, ge=0, le=1e6, description="The same for changes of the runtime, in seconds")
    n_folds: int = Field(5, ge=2, le=100, description="Folds of jobs over which the mean change is fitted and tried")
    min_group_pairs: int = Field(
        5, ge=3, le=1_000_000, description="Pairs that a job needs for a change of its variation to be measured"
    )
    max_unlike_share: float = Field(
        0.01, gt=0, lt=0.5, description="Unchanged rows that would count as unlike all that the model was trained on"
    )
    max_support_rows: int = Field(
        2000, ge=10, le=100_000, description="Training rows that changed rows are compared with; of more, a sample"
    )
    near_share: float = Field(
        0.05, gt=0, lt=1, description="Training rows that count as having such a value as a changed feature gets"
    )
    companion_sds: float = Field(
        0.5, gt=0, le=100, description="An unchanged feature is named if it is so many deviations from usual there"
    )


Named = Literal["no_spare", "newest_sku", "steady_load", "even_load"]
