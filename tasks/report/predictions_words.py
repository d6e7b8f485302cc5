"""What the page about predictions calls predictors, orders and measures, and answers to what-if questions in words."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasks.quantities import MISSING, duration, number, ratio, share

PREDICTORS = {
    "model": "the model",
    "history": "the job's own earlier runs",
    "forest": "random-forest regression",
    "global": "one shape for all jobs",
    "hard_ratio": "the paper's: most probable shape × median",
    "hard_delta": "the paper's: most probable shape + median",
}
FIGURES = ("crps", "log_score", "coverage90", "width90_s", "ks_group", "ks_pooled")
ORDERS = {
    "reasons": "the reasons of each run",
    "importance": "one order for all: importance over the training runs",
    "frequency": "one order for all: how often each cause was recorded before",
    "random": "a random order",
}
MEASURES = {
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


def predictor_rows(figures: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """One row a predictor that was measured: name, and each of FIGURES; missing ones are None."""
    return [
        {"name": words, **{figure: figures.get(f"predict.{figure}.{key}") for figure in FIGURES}}
        for key, words in PREDICTORS.items()
        if f"predict.crps.{key}" in figures
    ]


def label_rows(figures: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """One row a normalisation of which shapes were predicted: how often the label is right, beside its references."""
    measures = ("accuracy", "history_baseline", "ceiling", "split_half")
    rows = [
        {"kind": kind, **{name: figures.get(f"label.{name}.{kind}") for name in ("n", *measures)}}
        for kind in ("ratio", "delta")
    ]
    return [row for row in rows if row["accuracy"] is not None]


def check_rows(checks: pd.DataFrame) -> list[dict[str, Any]]:
    """One row an order of the causes: name, mrr, n and the interval in words; of all runs with a recorded cause.

    Of the reasons the interval is of the figure itself, of the others of the lead that the reasons have."""
    of_all = {row["order_name"]: row for row in checks[checks["cause"] == "all"].to_dict("records")}
    return [
        {"name": words, "mrr": of_all[key]["mrr"], "n": of_all[key]["n"], "interval": _interval(key, of_all[key])}
        for key, words in ORDERS.items()
        if key in of_all
    ]


def whole(value: Any) -> str:
    """A count or a number of a shape; a dash for a missing one."""
    return MISSING if pd.isna(value) else f"{value:,.0f}"


def factor(log_ratio: Any) -> str:
    """What a logarithm of a ratio multiplies by: 1.20 ×."""
    return MISSING if pd.isna(log_ratio) else f"{ratio(math.exp(log_ratio))} ×"


def ends(low: Any, high: Any) -> str:
    """An interval of ratios or correlations; a dash if it is not known."""
    return MISSING if pd.isna(low) or pd.isna(high) else f"{ratio(low)} to {ratio(high)}"


def _interval(order: str, row: Mapping[Any, Any]) -> str:
    told = ends(row["low"], row["high"])
    return told if order == "reasons" or told == MISSING else f"reasons lead by {told}"


def change_rows(changes: pd.DataFrame) -> list[dict[str, str]]:
    """measure, before, after, change and interval in words; changes: rows of jobs.what_ifs indexed by measure.

    What has no figure at all is left out."""
    rows = [(str(name), row) for name, row in changes.iterrows()]
    return [
        {
            "measure": MEASURES.get(name, name),
            "before": _shown(name, row["before"]),
            "after": _shown(name, row["after"]),
            "change": _signed(name, row["change"]),
            "interval": _ends(name, row["low"], row["high"]),
        }
        for name, row in rows
        if not pd.isna(row["before"])
    ]


def _ends(name: str, low: Any, high: Any) -> str:
    return MISSING if pd.isna(low) or pd.isna(high) else f"{_signed(name, low)} to {_signed(name, high)}"


def _shown(name: str, value: Any) -> str:
    if pd.isna(value):
        return MISSING
    if name.startswith("outlier_share"):
        return share(value)
    return duration(value) if name.endswith("_s") and name != "token_s" else number(value)


def _signed(name: str, value: Any) -> str:
    if pd.isna(value):
        return MISSING
    sign, shown = "+" if value > 0 else "−" if value < 0 else "", _shown(name, abs(value))
    if shown.startswith("<"):  # too small for its digits
        return f"{'<' if value > 0 else '>'} {sign}{shown.removeprefix('< ')}"
    return sign + shown
