"""Which rows of a job log can be used, continued: plans, SKUs, vertices and token skylines that cannot be true."""

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.jobs.columns import ALL_COLUMNS

Check = tuple[str, Callable[[], Any]]


class Elements:
    """The elements of a list column, all rows one after the other."""

    def __init__(self, column: Any) -> None:
        self.array = pa.array(column)
        self.array = self.array.combine_chunks() if isinstance(self.array, pa.ChunkedArray) else self.array

    @cached_property
    def rows(self) -> Any:
        """The row of each element, from 0."""
        return pc.list_parent_indices(self.array).to_numpy(zero_copy_only=False)

    @cached_property
    def values(self) -> pa.StructArray:
        """The elements themselves."""
        return pc.list_flatten(self.array)

    def field(self, name: str) -> Any:
        """One field of every element; a missing number is NaN, a missing time NaT."""
        field = pc.struct_field(self.values, name)
        field = field.cast(pa.float64()) if pa.types.is_integer(field.type) else field
        return field.to_numpy(zero_copy_only=False)

    def numbers(self) -> list[Any]:
        """All fields that hold amounts."""
        return [self.field(field.name) for field in self.values.type if field.type == pa.float64()]

    def rows_with(self, is_bad: Any) -> Any:
        """Which rows have an element that a claim holds for: (n_rows,)."""
        found = np.zeros(len(self.array), dtype=bool)
        found[self.rows[is_bad]] = True
        return found

    def stands_twice(self, name: str) -> Any:
        """Which rows have two elements with the same value of a field: (n_rows,)."""
        pairs = pd.DataFrame({"row": self.rows, "value": self.field(name)})
        return self.rows_with(pairs.duplicated().to_numpy())


def as_list_column(given: pd.Series, name: str) -> Any:
    """A list column in its Arrow type, whether it holds Arrow lists or Python lists of dicts."""
    if isinstance(given.dtype, pd.ArrowDtype) and given.dtype.pyarrow_dtype == ALL_COLUMNS[name][0]:
        return given.array
    return pd.arrays.ArrowExtensionArray(pa.array(given, type=ALL_COLUMNS[name][0], from_pandas=True))


def condition_checks(rows: dict[str, Any], earliest: Any, latest: Any) -> list[Check]:
    """What can be wrong with the columns of CONDITIONS that are there: the reason, and which rows it holds for.

    rows: arrays of one length by column; earliest, latest: what the times of vertices have to lie between, UTC."""
    checks: list[Check] = []
    if "operators" in rows:
        checks.append(("operators is not a JSON object of counts", lambda: _not_counts(rows["operators"])))
    if "skus" in rows:
        checks += _sku_checks(Elements(rows["skus"]))
    if "vertices" in rows:
        checks += _vertex_checks(Elements(rows["vertices"]), earliest, latest)
    if "skyline" in rows:
        checks += _skyline_checks(Elements(rows["skyline"]))
    return checks


def _sku_checks(skus: Elements) -> list[Check]:
    return [
        ("a SKU without a name", lambda: skus.rows_with(pd.isna(skus.field("sku")) | (skus.field("sku") == ""))),
        ("a SKU stands twice in one run", lambda: skus.stands_twice("sku")),
        ("a negative or infinite number of a SKU; expected 0 or more", lambda: _amount_is_wrong(skus)),
    ]


def _vertex_checks(vertices: Elements, earliest: Any, latest: Any) -> list[Check]:
    def started() -> Any:
        return vertices.field("started_at")

    def ended() -> Any:
        return vertices.field("ended_at")

    def unnumbered() -> Any:
        return vertices.rows_with(~(vertices.field("vertex") >= 0))

    def out_of_time() -> Any:
        is_early = (started() < earliest) | (ended() < earliest)
        return vertices.rows_with(is_early | (started() > latest) | (ended() > latest))

    return [
        ("a vertex without a number from 0", unnumbered),
        ("a vertex stands twice in one run", lambda: vertices.stands_twice("vertex")),
        ("a vertex ends before it starts; check the times", lambda: vertices.rows_with(ended() < started())),
        ("a vertex lies before 1970 or in the future; check clock, unit and time zone", out_of_time),
        (
            "a negative or infinite number of a vertex; expected 0 or more",
            lambda: _amount_is_wrong(vertices),
        ),
    ]


def _skyline_checks(skyline: Elements) -> list[Check]:
    def incomplete() -> Any:
        return skyline.rows_with(np.isnan(skyline.field("at_s")) | np.isnan(skyline.field("tokens")))

    def unsorted() -> Any:
        is_same_row = np.diff(skyline.rows, prepend=-1) == 0
        return skyline.rows_with(is_same_row & (np.diff(skyline.field("at_s"), prepend=0) < 0))

    return [
        ("a step of the skyline without time or tokens", incomplete),
        ("a negative or infinite number in the skyline; expected 0 or more", lambda: _amount_is_wrong(skyline)),
        ("the skyline goes back in time; expected at_s in ascending order", unsorted),
    ]


def _amount_is_wrong(elements: Elements) -> Any:
    is_wrong = np.zeros(len(elements.values), dtype=bool)
    for amounts in elements.numbers():
        is_wrong |= (amounts < 0) | np.isinf(amounts)
    return elements.rows_with(is_wrong)


def _not_counts(texts: Any) -> Any:
    """Rows whose text is there and is no JSON object of whole counts; each text is looked at once."""
    codes, distinct = pd.factorize(texts)
    is_bad = np.array([not _holds_counts(str(text)) for text in distinct], dtype=bool)
    return np.append(is_bad, False)[codes]  # code -1, missing, is the last


def _holds_counts(text: str) -> bool:
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(counts, dict) and all(type(count) is int and count >= 0 for count in counts.values())
