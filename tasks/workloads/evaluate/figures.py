"""Figures by key: `<part>.<measure>[.<slice>]`, None with a reason beside it where one cannot be had."""

from typing import Any

import numpy as np

from tasks.workloads.evaluate.scores import Summary

Figures = dict[str, Any]


def put(figures: Figures, key: str, value: float | int | None, reason: str = "") -> None:
    """A figure; None, or a value that is not finite, with its reason as `<key>.reason`."""
    is_known = value is not None and bool(np.isfinite(value))
    figures[key] = value if is_known else None
    if not is_known:
        figures[f"{key}.reason"] = reason or "not a number"


def put_summary(figures: Figures, key: str, found: Summary | None, reason: str = "") -> None:
    """A mean over splits, and `<key>.deviation` where there is more than one."""
    put(figures, key, found.mean if found else None, reason)
    if found and found.deviation is not None:
        figures[f"{key}.deviation"] = found.deviation
