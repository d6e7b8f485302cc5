"""The words of a form: titles such as `Lock wait (s)` for lock_wait_s, and texts that both UIs show whole."""

from copy import deepcopy
from typing import Any

from prefect import Flow
from prefect.utilities.callables import parameter_schema

UNITS = {"s": "s", "mb": "MB", "days": "days", "hours": "hours", "minutes": "minutes", "bytes": "bytes"}
ACRONYMS = {"api": "API", "id": "ID", "url": "URL"}


def form_of(flow: Flow[..., Any]) -> dict[str, Any]:
    """The JSON schema of a flow's parameters, from which Prefect draws its form."""
    schema: dict[str, Any] = deepcopy(parameter_schema(flow).model_dump_for_openapi())
    for part in (schema, *schema.get("definitions", {}).values()):
        for name, field in part.get("properties", {}).items():
            field["title"] = title_of(name)
            if "description" in field:
                field["description"] = shown_whole(field["description"])
    return schema


def title_of(name: str) -> str:
    """A field's name as a title, with its unit in brackets."""
    *words, last = name.split("_")
    unit = UNITS.get(last) if words else None
    text = " ".join(ACRONYMS.get(word, word) for word in (words if unit else [*words, last]))
    return text[:1].upper() + text[1:] + (f" ({unit})" if unit else "")


def shown_whole(text: str) -> str:
    """The text without angle brackets: the older UI takes <home> for HTML and drops it."""
    return text.replace("<", "[").replace(">", "]")
