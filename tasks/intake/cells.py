"""Cells of tables, of whatever type, as texts, numbers, flags and times; what stands there and is none is bad."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.intake.aliases import date_order, distinct_texts, has_decimal_commas, is_text, iso_dates
from tasks.intake.fields import MISSING, number_of
from tasks.intake.times import utc_times

FLAG_WORDS = dict.fromkeys(("true", "t", "yes", "1", "1.0"), True) | dict.fromkeys(
    ("false", "f", "no", "0", "0.0"), False
)


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
    if not is_text(column.type):
        return column
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.is_in(pc.utf8_lower(text), pa.array(MISSING)), None, text)


def texts(column: pa.ChunkedArray | pa.Array) -> Cells:
    """Texts, objects; 3.0 is 3. Lists and the like are bad."""
    told = plain(column)
    if pa.types.is_nested(told.type) or pa.types.is_binary(told.type):
        return Cells(np.full(len(told), None, dtype=object), pc.is_valid(told).to_numpy(zero_copy_only=False))
    if pa.types.is_floating(told.type):
        whole = [
            None if one is None or one != one else str(int(one) if one.is_integer() else one)
            for one in told.to_pylist()
        ]
        return Cells(np.array(whole, dtype=object), np.zeros(len(told), dtype=bool))
    values = told.cast(pa.string()).to_numpy(zero_copy_only=False)
    return Cells(values.astype(object), np.zeros(len(told), dtype=bool))


def numbers(column: pa.ChunkedArray | pa.Array) -> Cells:
    """Numbers. Infinite ones are bad: they would poison every mean. 1,5 is 1.5 where the whole column is so written."""
    told = plain(column)
    if pa.types.is_boolean(told.type):
        told = told.cast(pa.int8())
    if is_text(told.type):
        values = _of_texts(told)
    elif pa.types.is_integer(told.type) or pa.types.is_floating(told.type) or pa.types.is_decimal(told.type):
        values = told.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        told = pc.if_else(pa.array(np.isnan(values)), None, told)
    else:
        values = np.full(len(told), np.nan)
    is_bad = pc.is_valid(told).to_numpy(zero_copy_only=False) & ~np.isfinite(values)
    return Cells(np.where(np.isfinite(values), values, np.nan), is_bad)


def _of_texts(column: pa.Array) -> NDArray[np.float64]:
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
    except pa.ArrowInvalid:
        pass
    if has_decimal_commas(distinct_texts(column)):
        column = pc.replace_substring(pc.replace_substring(column, ".", ""), ",", ".")
    found = pd.Series(column.to_pylist(), dtype=object).map(number_of)
    return np.asarray(found.astype(float).to_numpy())


def flags(column: pa.ChunkedArray | pa.Array) -> Cells:
    """True, False or None, objects."""
    told = plain(column)
    if pa.types.is_boolean(told.type):
        return Cells(told.to_numpy(zero_copy_only=False).astype(object), np.zeros(len(told), dtype=bool))
    given = texts(told).values  # noqa: PD011
    values = np.array([None if one is None else FLAG_WORDS.get(one.lower()) for one in given], dtype=object)
    return Cells(values, np.array([one is not None for one in given], dtype=bool) & are_none(values))


def times(column: pa.ChunkedArray | pa.Array, zone: str) -> Cells:
    """UTC times (datetime64[us]) of a column of any type; tasks.intake.times says what is read as what.

    zone: of times that name none."""
    told = plain(column)
    values, is_bad = utc_times(told, zone)
    if is_bad.any() and is_text(told.type) and (order := date_order("the table", {"time": distinct_texts(told)})):
        values, is_bad = utc_times(iso_dates(told, order), zone)
    return Cells(values, is_bad)


def flag_of(text: str) -> bool | None:
    """True or false, None for anything else."""
    return FLAG_WORDS.get(text.strip().lower())


def are_none(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which objects are missing."""
    return np.asarray(pd.isna(values), dtype=bool)
