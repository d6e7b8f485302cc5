"""What can be set of what-if questions; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

Charged = Literal["used", "requested"]


class WhatIfParams(Params):
    """What a change is measured by, and when a predicted change counts."""

    price_per_token_hour: float = Field(
        0.05, ge=0, le=1e6, description="Price of one token for one hour, in the currency; money scales with it"
    )
    currency: str = Field("EUR", min_length=1, max_length=20, description="What that price and money are in")
    price_date: str = Field(
        "2026-11-01", pattern=r"\d{4}-\d\d-\d\d", description="The day that the price was in force: YYYY-MM-DD"
    )
    charged: Charged = Field(
        "used", description="Tokens that are paid for: used, the mean in use over earlier runs, or requested"
    )
    newest_sku: str = Field(
        "", max_length=200, description="SKU that newest_sku moves everything to; empty: the last in order of names"
    )
