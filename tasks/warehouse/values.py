"""Values of a query for people and machines: what neither Arrow nor Python can hold comes as DuckDB writes it."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import duckdb

# Arrow has no such type or loses a part of it (the largest UHUGEINT would become -1, 24:00 o'clock midnight)
UNKNOWN_TO_ARROW = {"interval", "uhugeint", "bignum", "bit", "time", "time with time zone", "time_ns"}
NESTED = {"list", "array", "struct", "map", "union"}
BATCH_ROWS = 10_000


def known_to_arrow(relation: "duckdb.DuckDBPyRelation") -> "duckdb.DuckDBPyRelation":
    """The same rows, columns of types that Arrow does not know as texts."""
    types = relation.types
    if not any(_is_unknown(kind) for kind in types):
        return relation
    names = [name.replace('"', '""') for name in relation.columns]
    columns = [
        f'#{at}{"::VARCHAR" if _is_unknown(kind) else ""} AS "{name}"'
        for at, (kind, name) in enumerate(zip(types, names, strict=True), 1)
    ]
    return relation.project(", ".join(columns))


def _is_unknown(kind: Any) -> bool:
    """Whether a type, or one inside it, is unknown to Arrow."""
    if kind.id in NESTED:
        return any(_is_unknown(inner) for _, inner in kind.children if hasattr(inner, "id"))  # an array has its size
    return kind.id in UNKNOWN_TO_ARROW


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows one by one, as Python's own values; texts for infinite numbers and for times beyond Python's years.

    table: column names must differ."""
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        columns = [_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield dict(zip(batch.schema.names, row, strict=True))


def _values(column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # a year before 1 or after 9999, or infinity
        values = [_value(one, text) for one, text in zip(column, _texts(column), strict=True)]
    is_flat = pa.types.is_floating(column.type)
    if pa.types.is_nested(column.type) or (is_flat and pc.any(pc.is_inf(column)).as_py()):
        return [_finite(value) for value in values]
    return values


def _finite(value: Any) -> Any:
    """The value with texts for infinite numbers, also for those inside it."""
    if isinstance(value, float):
        return str(value) if math.isinf(value) else value
    if isinstance(value, list | tuple):
        return type(value)(_finite(inner) for inner in value)
    return {_finite(key): _finite(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _value(one: pa.Scalar, text: str | None) -> Any:
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        return text


def _texts(column: pa.Array) -> list[str | None]:
    """The values as DuckDB writes them, in order."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        table = pa.table({"a": column})
        return [text for (text,) in connection.from_arrow(table).project("a::VARCHAR").fetchall()]
