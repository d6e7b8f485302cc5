"""What can be set of what-if questions; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


class WhatIfParams(Params):
    """What money is measured by: tokens in use, at a price of a day."""

    price_per_token_hour: float = Field(
        0.05, ge=0, le=1e6, description="Price of one token for one hour, in the currency; money scales with it"
    )
    currency: str = Field("EUR", min_length=1, max_length=20, description="What that price and money are in")
    price_date: str = Field(
        "2026-11-01", pattern=r"\d{4}-\d\d-\d\d", description="The day that the price was in force: YYYY-MM-DD"
    )
