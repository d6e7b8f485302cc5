"""What the two kinds of table, Parquet and CSV, hand to the reader."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa


@dataclass(frozen=True)
class Batch:
    """Some rows, their columns named as in jobs.runs and not yet in our types.

    places: line or row numbers, from 1. raw: the text of the row at a position of the table.
    refused: lines that are no rows."""

    places: Any
    table: pa.Table
    refused: pd.DataFrame
    raw: Callable[[int], str]
