"""Figures by key: `<part>.<measure>[.<slice>]`, None with a reason beside it where one cannot be had."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Figures = dict[str, Any]
THEIRS = "paper_preprocessing."  # before the keys of figures by the paper's preprocessing, beside ours


def put(figures: Figures, key: str, value: float | int | None, reason: str = "") -> None:
    """A figure; None, or a value that is not finite, with its reason as `<key>.reason`."""
    is_known = value is not None and bool(np.isfinite(value))
    figures[key] = (value if isinstance(value, int) else float(value)) if is_known and value is not None else None
    if not is_known:
        figures[f"{key}.reason"] = reason or "not a number"


def put_mean(figures: Figures, key: str, values: Sequence[float | None], reason: str = "") -> None:
    """The mean over splits of what is known, and `<key>.deviation` where more than one is."""
    known = [value for value in values if value is not None and np.isfinite(value)]
    put(figures, key, float(np.mean(known)) if known else None, reason)
    if len(known) > 1:
        figures[f"{key}.deviation"] = float(np.std(known, ddof=1))


def their_figures(figures: Mapping[str, Any]) -> Figures:
    """The figures of the paper's preprocessing by the keys that ours have; empty where it was not asked for."""
    return {key.removeprefix(THEIRS): value for key, value in figures.items() if key.startswith(THEIRS)}
