"""The files of conf/: every knob with its meaning and range, written from the parameter models themselves."""

from collections.abc import Iterator

import yaml
from pydantic import BaseModel

from tasks.settings_errors import allowed_values

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
        written = yaml.safe_dump(
            list(value) if isinstance(value, tuple) else value, default_flow_style=True, width=1000
        )
        yield f"{indent}{name}: {written.removesuffix('...' + chr(10)).strip()}"
