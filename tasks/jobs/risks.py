"""The orders in which predicted jobs can be listed; nothing heavy is imported here."""

from typing import Literal

Risk = Literal["chance", "excess", "limit"]
RISKS: dict[Risk, str] = {"chance": "exceeds_2x_share", "excess": "expected_excess_s", "limit": "p95_s"}
SORTED: dict[Risk, str] = {
    "chance": "most likely to take twice the usual first",
    "excess": "most time beyond the usual first",
    "limit": "longest first",
}
