"""Cells of tables of any type as times, flags and texts; what cannot be read is bad, what is empty is missing."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.times import utc_times
from tasks.workloads.readers.tables import MISSING

FLAGS = {"true": True, "t": True, "yes": True, "1": True, "false": False, "f": False, "no": False, "0": False}


@dataclass(frozen=True)
class Cells:
    """A column in our type, None, NaN or NaT where missing or bad; is_bad: (n,), what stands there cannot be read."""

    values: NDArray[Any]
    is_bad: NDArray[np.bool_]


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece, its text trimmed, words for missing values (-, NA, null, …) as missing."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_text(column.type):
        return column
    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.is_in(pc.utf8_lower(trimmed), pa.array(MISSING)), None, trimmed)


def texts(column: pa.ChunkedArray | pa.Array) -> Cells:
    """Texts, objects; 3.0 is 3. Lists and the like are bad."""
    told = plain(column)
    if pa.types.is_nested(told.type) or pa.types.is_binary(told.type):
        return Cells(np.full(len(told), None, dtype=object), pc.is_valid(told).to_numpy(zero_copy_only=False))
    if pa.types.is_floating(told.type):
        values = [_whole(value) for value in told.to_pylist()]
        return Cells(np.array(values, dtype=object), np.zeros(len(told), dtype=bool))
    values = told.cast(pa.string()).to_numpy(zero_copy_only=False)
    return Cells(values.astype(object), np.zeros(len(told), dtype=bool))


def flags(column: pa.ChunkedArray | pa.Array) -> Cells:
    """True, False or None, objects."""
    told = plain(column)
    if pa.types.is_boolean(told.type):
        return Cells(told.to_numpy(zero_copy_only=False).astype(object), np.zeros(len(told), dtype=bool))
    given = texts(told).values  # noqa: PD011
    values = np.array([None if one is None else FLAGS.get(one.lower()) for one in given], dtype=object)
    return Cells(values, np.array([one is not None for one in given], dtype=bool) & are_none(values))


def are_none(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which objects are missing."""
    return np.asarray(pd.isna(values), dtype=bool)


def flag_of(text: str) -> bool | None:
    """True or false, None for anything else."""
    return FLAGS.get(text.strip().lower())


def times(column: pa.ChunkedArray | pa.Array, zone: str) -> Cells:
    """UTC times (datetime64[us]) of a column of any type; tasks.times says what is read as what.

    zone: of times that name none."""
    return Cells(*utc_times(plain(column), zone))


def _whole(value: float | None) -> str | None:
    if value is None or value != value:
        return None
    return str(int(value)) if float(value).is_integer() else str(value)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
