"""The base of every parameter model, and a wrong value in one line: place, key, value, and what is allowed."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo


class Params(BaseModel):
    """Parameters that cannot change after they are made; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


WORDS_OF_BOUNDS = {
    "ge": "at least",
    "gt": "more than",
    "le": "at most",
    "lt": "less than",
    "min_length": "length at least",
    "max_length": "length at most",
}
WRITTEN_OUT = 1e16  # larger bounds are written as powers of ten


def first_fault(error: ValidationError) -> str:
    """Place and message of the first fault of a failed validation, such as `origin.word: Field required`."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'JSON'}: {first['msg']}"


def explain(error: ValidationError, model: type[BaseModel], origins: Mapping[str, str]) -> str:
    """The first fault of a failed validation as one line.

    origins: dotted key to the place (file, variable, flag) that set it."""
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        parent_key, (parent, _) = ".".join(path[:-1]) or "settings", _find(model, path)
        keys = ", ".join(parent.model_fields)
        return f"{_place(path, origins)}: {'.'.join(path)}: no such key; allowed in {parent_key}: {keys}"
    return explain_value(".".join(path), first["input"], _lower(first["msg"]), model, origins)


def explain_value(key: str, value: object, problem: str, model: type[BaseModel], origins: Mapping[str, str]) -> str:
    """A value that a key does not take, as one line."""
    path = key.split(".")
    _, field = _find(model, path)
    allowed = allowed_values(field) if field else "keys and values"
    return f"{_place(path, origins)}: {key}: {value!r} is not allowed ({problem}); expected {allowed}"


def _place(path: list[str], origins: Mapping[str, str]) -> str:
    """What set a key, or one below it, last; else one above it. Origins are in the order in which they were set."""
    related = [
        (len(known.split(".")) >= len(path), place)
        for known, place in origins.items()
        if all(part == other for part, other in zip(known.split("."), path, strict=False))
    ]
    nearest = [place for is_below, place in related if is_below == any(below for below, _ in related)]
    return nearest[-1] if nearest else "parameter"


def allowed_values(field: FieldInfo) -> str:
    """Type and bounds of a field in words, for messages and for the comments in conf/."""
    bounds = [
        f"{words} {_number(getattr(part, attribute))}"
        for part in field.metadata
        for attribute, words in WORDS_OF_BOUNDS.items()
        if getattr(part, attribute, None) is not None
    ]
    kind, is_many = kind_in_words(field.annotation), get_origin(field.annotation) in (list, tuple)
    joined = " and ".join(bounds)
    return f"{kind}, {joined}" if is_many and bounds else f"{kind} {joined}".strip()


def kind_in_words(kind: Any) -> str:
    """A type as a person says it: a list of texts, one of yes, no."""
    parts = [part for part in get_args(kind) if part is not ...]
    if get_origin(kind) is Annotated:
        return kind_in_words(parts[0])
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if get_origin(kind) in (list, tuple):
        inner = kind_in_words(parts[0])
        if item := item_model(kind):
            return f"a list; each with keys of {', '.join(item.model_fields)}"
        return f"a list; each {inner}" if inner.startswith("one of") else f"a list; each is {inner}"
    if get_origin(kind) is dict:
        return f"keys and values; each key {kind_in_words(parts[0])}, each value {kind_in_words(parts[1])}"
    name = getattr(kind, "__name__", str(kind))
    return {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false"}.get(name, name)


def item_model(kind: Any) -> type[BaseModel] | None:
    """The model of a list's items; None where they are something simple, or there is no list."""
    first = next(iter(get_args(kind)), None) if get_origin(kind) in (list, tuple) else None
    return first if isinstance(first, type) and issubclass(first, BaseModel) else None


def _number(bound: float) -> str:
    is_whole = float(bound).is_integer() and abs(bound) < WRITTEN_OUT
    return f"{int(bound):,}" if is_whole else f"{bound:g}"


def _find(model: type[BaseModel], path: list[str]) -> tuple[type[BaseModel], FieldInfo | None]:
    """The model that holds the last key of the path, and its field."""
    is_item = False  # the key is a place in a list of models
    for key in path:
        if is_item:
            is_item = False
            continue
        field = model.model_fields.get(key)
        inner: Any = field.annotation if field else None
        if item := item_model(inner):
            if key == path[-1]:
                return model, field
            model, is_item = item, True
            continue
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return model, field
        model = inner
    return model, None


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


class ReadLimits(Params):
    """Limits on one input file, against gzip bombs and files that are no logs."""

    max_bytes: int = Field(
        200 * 2**30,
        ge=2**10,
        le=2**50,
        description="Largest size after decompression, in bytes. More for larger logs, where the disk has room",
    )
    max_ratio: float = Field(
        1000,
        gt=1,
        le=1_000_000,
        description="Largest ratio of unpacked to packed bytes (gzip bombs). More for logs that repeat themselves",
    )
    max_line_bytes: int = Field(
        2**20,
        ge=2**10,
        le=2**30,
        description="Longest line of a text file, in bytes. More for plans and events in one line",
    )
    max_refused_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="A file of which a larger share of the rows is refused is not loaded. More for exports that "
        "are known to be broken in part",
    )
