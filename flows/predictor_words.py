"""The predictors that an evaluation compares, as people read them, and their figures as rows of a table."""

from collections.abc import Mapping
from typing import Any

PREDICTORS = {
    "model": "model",
    "history": "the job's own runs",
    "user_request": "user with request",
    "lightgbm": "boosted quantiles",
    "forest": "random forest",
    "global": "one shape for all",
    "hard_ratio": "paper: hard label, ratio",
    "hard_delta": "paper: hard label, delta",
}
MEASURES = ("crps", "log_score", "coverage90", "ks_group", "ks_pooled")


def predictor_rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a predictor: name, and each of MEASURES; missing ones are None."""
    return [
        {"name": words, **{measure: figures.get(f"predict.{measure}.{name}") for measure in MEASURES}}
        for name, words in PREDICTORS.items()
        if f"predict.crps.{name}" in figures
    ]
