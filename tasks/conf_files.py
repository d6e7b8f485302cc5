"""The files of conf/: every knob with its meaning and range, written from the parameter models themselves."""

from collections.abc import Iterator, Sequence

import yaml
from pydantic import BaseModel

from tasks.settings_errors import allowed_values, item_model

INDENT = "  "


def commented_defaults(model: type[BaseModel]) -> str:
    """The defaults of one word as YAML, each key below a comment with its meaning and what is allowed."""
    title = (model.__doc__ or "").strip().splitlines()[0]
    return "\n".join([f"# {title}", *_lines(model(), "")]) + "\n"


def _lines(params: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(params).model_fields.items():
        value = getattr(params, name)
        if isinstance(value, BaseModel):
            yield f"{indent}# {(type(value).__doc__ or '').strip().splitlines()[0]}"
            yield f"{indent}{name}:"
            yield from _lines(value, indent + INDENT)
            continue
        yield f"{indent}# {field.description} [{allowed_values(field)}]"
        if item := item_model(field.annotation):
            yield from _items(name, value, item, indent)
            continue
        yield f"{indent}{name}: {_in_a_line(list(value) if isinstance(value, tuple) else value)}"


def _items(name: str, values: Sequence[BaseModel], item: type[BaseModel], indent: str) -> Iterator[str]:
    """A list of models: what their keys mean, then one line for each."""
    for key, field in item.model_fields.items():
        yield f"{indent}#   {key}: {field.description} [{allowed_values(field)}]"
    yield f"{indent}{name}:{'' if values else ' []'}"
    for value in values:
        yield f"{indent}{INDENT}- {_in_a_line(value.model_dump(mode='json'))}"


def _in_a_line(value: object) -> str:
    written: str = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
    return written.removesuffix("...\n").strip()
