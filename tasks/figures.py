"""Figures of an evaluation, `<part>.<measure>[.<slice>]`: one that cannot be had is None, its reason beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Figures = dict[str, Any]
REASON = ".reason"  # ends the key that says why a figure cannot be had


@dataclass(frozen=True)
class Evaluation:
    """figures: number, text, truth or None by key, and `<key>.reason` beside a None. tables: by name."""

    figures: Figures
    tables: dict[str, pd.DataFrame]


def put(figures: Figures, key: str, value: float | int | None, reason: str = "") -> None:
    """A figure; None, or a value that is not finite, with its reason as `<key>.reason`."""
    if value is None or not np.isfinite(value):
        figures[key], figures[key + REASON] = None, reason or "not a number"
    else:
        figures[key] = value if isinstance(value, int) else float(value)


def put_mean(figures: Figures, key: str, values: Sequence[float | None], reason: str = "") -> None:
    """The mean over splits of what is known, and `<key>.deviation` (of the sample) where more than one is."""
    known = [value for value in values if value is not None and np.isfinite(value)]
    put(figures, key, float(np.mean(known)) if known else None, reason)
    if len(known) > 1:
        figures[f"{key}.deviation"] = float(np.std(known, ddof=1))


def rows_of(figures: Figures) -> pd.DataFrame:
    """The figures that are numbers, or missing ones with the reason beside them: key, value, reason."""
    keys = [key for key in figures if not key.endswith(REASON)]
    numbers = [key for key in keys if figures[key] is None or isinstance(figures[key], int | float)]
    values = pd.array([None if figures[key] is None else float(figures[key]) for key in numbers], "Float64")
    return pd.DataFrame({"key": numbers, "value": values, "reason": [figures.get(key + REASON) for key in numbers]})


def write_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> list[Path]:
    """One Parquet file a table that has rows; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {folder / f"{name}.parquet": table for name, table in tables.items() if len(table)}
    for path, table in written.items():
        table.to_parquet(path, index=False)
    return list(written)
