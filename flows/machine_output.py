"""One JSON object on stdout, for machines: whole keys, numbers as numbers, null for what is missing."""

import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tasks.utc import utc_text

if TYPE_CHECKING:
    import pandas as pd


_n_printed = 0


def printed() -> int:
    """How many objects this process has printed, or begun to."""
    return _n_printed


def _count_one() -> None:
    global _n_printed  # stdout is one for the process, and so is what was written to it
    _n_printed += 1


def show_json(value: Any) -> None:
    """Print one object of dicts, lists, dataclasses, parameter models, numbers, texts and times."""
    _count_one()
    json.dump(plain(value), sys.stdout, indent=1, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def show_rows(rows: Iterable[dict[str, Any]]) -> None:
    """Print rows as the list of an object, row by row: a million of them fit into memory."""
    _count_one()
    first = True
    sys.stdout.write('{"rows": [')
    for row in rows:
        sys.stdout.write("\n " if first else ",\n ")
        sys.stdout.write(_line(row))
        first = False
    sys.stdout.write("]}\n" if first else "\n]}\n")


def _line(row: dict[str, Any]) -> str:
    try:
        return json.dumps(row, default=plain, ensure_ascii=False, allow_nan=False)
    except ValueError:  # it has a NaN
        return json.dumps(plain(row), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """The value in JSON's own types. Times without a zone are UTC in all of whorl and get a Z."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "item") and not isinstance(value, datetime | date):  # a numpy number
        return plain(value.item())
    return _number_or_text(value)


def _number_or_text(value: Any) -> Any:
    if isinstance(value, float | Decimal):
        is_whole = isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value()
        return (int(value) if is_whole else float(value)) if math.isfinite(value) else None
    if value != value:  # NaT
        return None
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, date) else str(value)


def records(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a frame as dicts, in order."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
