"""Answers to what-if questions in the words of tables, for artifacts and terminals."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasks.quantities import MISSING, duration, number, share

if TYPE_CHECKING:
    import pandas as pd

WORDS = {
    "outlier_share": "outliers (ratio)",
    "outlier_share_delta": "outliers (seconds)",
    "gap_s": "25th-75th gap",
    "gap_ratio": "25th-75th gap, ratio",
    "p95_s": "95th percentile",
    "p95_ratio": "95th percentile, ratio",
    "sd_s": "standard deviation",
    "sd_ratio": "standard deviation, ratio",
    "median_s": "median",
    "mean_s": "mean",
    "token_s": "token-seconds",
    "money": "money",
}


def change_rows(changes: "pd.DataFrame") -> list[dict[str, str]]:
    """measure, before, after, change and interval in words; changes: one row a measure, with before, after, change, low
    and high, indexed by measure. What has no figure at all is left out."""
    rows = [(str(name), dict(row)) for name, row in changes.iterrows()]
    return [_change_row(name, row) for name, row in rows if _known(row["before"]) is not None]


def pair_rows(pairs: Mapping[str, Any]) -> tuple[str, ...]:
    """Pairs, share of right directions with its interval and that of the mean change, and the three errors."""
    if not pairs["n_pairs"]:
        return (f"none: {pairs['reason'] or 'not measured'}", *[MISSING] * 5)
    right = f"{share(pairs['right_share'])} ({share(pairs['low'])} to {share(pairs['high'])})"
    errors = (number(pairs[f"mae_log_{name}"]) for name in ("model", "no_change", "mean_change"))
    return (f"{pairs['n_pairs']:,}", right, share(pairs["right_share_mean_change"]), *errors)


def _known(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


def _change_row(name: str, row: Mapping[Any, Any]) -> dict[str, str]:
    before, after, change, low, high = (_known(row[key]) for key in ("before", "after", "change", "low", "high"))
    interval = MISSING if low is None or high is None else f"{_signed(name, low)} to {_signed(name, high)}"
    return {
        "measure": WORDS.get(name, name),
        "before": _shown(name, before),
        "after": _shown(name, after),
        "change": _signed(name, change),
        "interval": interval,
    }


def _shown(name: str, value: float | None) -> str:
    if name.startswith("outlier_share"):
        return share(value)
    return duration(value) if name.endswith("_s") and name != "token_s" else number(value)


def _signed(name: str, value: float | None) -> str:
    if value is None:
        return MISSING
    sign, shown = "+" if value > 0 else "−" if value < 0 else "", _shown(name, abs(value))
    if shown.startswith("<"):  # too small for its digits
        return f"{'<' if value > 0 else '>'} {sign}{shown.removeprefix('< ')}"
    return sign + shown
