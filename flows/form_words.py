"""The words of a form: titles such as `Lock wait (s)` for lock_wait_s, and texts that both UIs show whole."""

from copy import deepcopy
from typing import Any

from prefect import Flow
from prefect.utilities.callables import parameter_schema

UNITS = {"s": "s", "mb": "MB", "days": "days", "hours": "hours", "minutes": "minutes", "bytes": "bytes"}
WORDS = {"api": "API", "id": "ID", "url": "URL", "n": "number of", "min": "minimum", "max": "maximum"}
AS_THEY_ARE = ("sacct",)  # names of programs are written small
WHOLE_BELOW = 1e10  # a bound is written out up to here


def form_of(flow: Flow[..., Any]) -> dict[str, Any]:
    """The JSON schema of a flow's parameters, from which Prefect draws its form."""
    schema: dict[str, Any] = deepcopy(parameter_schema(flow).model_dump_for_openapi())
    for part in (schema, *schema.get("definitions", {}).values()):
        if "description" in part:
            part["description"] = _described(part)
        for name, field in part.get("properties", {}).items():
            field["title"] = title_of(name)
            if "description" in field:
                field["description"] = _described(field)
    return schema


def title_of(name: str) -> str:
    """A field's name as a title, with its unit in brackets; a size that is only called by its unit is a size."""
    *words, last = name.split("_")
    unit = UNITS.get(last) if words else None
    if not unit:
        words.append(last)
    elif words in (["min"], ["max"]):
        words.append("size")
    text = " ".join(WORDS.get(word, word) for word in words)
    title = text if words[0] in AS_THEY_ARE else text[:1].upper() + text[1:]
    return title + (f" ({unit})" if unit else "")


def bounds_of(field: dict[str, Any]) -> str:
    """What a field allows, in words: 1 to 200; empty if it allows anything."""
    if "maxLength" in field or "minLength" in field:
        return f"{_range(field.get('minLength'), field.get('maxLength'))} characters"
    if "maxItems" in field or "minItems" in field:
        return f"{_range(field.get('minItems'), field.get('maxItems'))} entries"
    above, below = field.get("exclusiveMinimum"), field.get("exclusiveMaximum")
    if above is None and below is None:
        return _range(field.get("minimum"), field.get("maximum"))
    low = f"above {_number(above)}" if above is not None else _range(field.get("minimum"), None)
    high = f"below {_number(below)}" if below is not None else _range(None, field.get("maximum"))
    return ", ".join(filter(None, (low, high)))


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"{_number(low)} or more" if low is not None else f"up to {_number(high)}" if high is not None else ""
    return f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    if value < WHOLE_BELOW:
        return f"{value:,.10g}"
    power = int(value).bit_length() - 1
    return f"2^{power}" if value == 2**power else f"{value:.3g}"


def _described(field: dict[str, Any]) -> str:
    bounds = bounds_of(field)
    return shown_whole(field["description"]).removesuffix(".") + (f"; allowed: {bounds}" if bounds else "")


def shown_whole(text: str) -> str:
    """The text without angle brackets: the older UI takes <home> for HTML and drops it."""
    return text.replace("<", "[").replace(">", "]")
