"""What can be set of what-if questions; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params

MEASURES: dict[str, str] = {  # name -> words, in the order of every table
    "outlier_share": "probability of an outlier, over the ratio to the historic median",
    "outlier_share_delta": "probability of an outlier, by seconds from the historic median",
    "gap_s": "25th-75th gap, in seconds",
    "gap_ratio": "25th-75th gap, over the historic median",
    "p95_s": "95th percentile, in seconds",
    "p95_ratio": "95th percentile, over the historic median",
    "sd_s": "standard deviation, in seconds",
    "sd_ratio": "standard deviation, over the historic median",
    "median_s": "median runtime, in seconds",
    "mean_s": "mean runtime, in seconds",
    "token_s": "token-seconds, tokens times the mean runtime",
    "money": "price of a run, at the price of a token-hour",
}


class WhatIfParams(Params):
    """What money is measured by: tokens in use, at a price of a day."""

    price_per_token_hour: float = Field(
        0.05, ge=0, le=1e6, description="Price of one token for one hour, in the currency; money scales with it"
    )
    currency: str = Field("EUR", min_length=1, max_length=20, description="What that price and money are in")
    price_date: str = Field(
        "2026-11-01", pattern=r"\d{4}-\d\d-\d\d", description="The day that the price was in force: YYYY-MM-DD"
    )
