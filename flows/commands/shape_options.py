"""Options about shapes that several verbs share: which normalisation, and which shapes by number."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Normalisation = Annotated[
    Literal["ratio", "delta"],
    typer.Option(help="Shapes of ratios to the median of the job, or of differences in seconds"),
]
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write a page with figures, and each figure as PNG, there")
]


def shape_numbers(text: str | None, *, least: int = 1, most: int = 2) -> tuple[int, ...]:
    """The numbers of `0,3`; none for no text. Raises BadParameter for another number of them, or what is none."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts) or not least <= len(parts) <= most:
        how_many = "two numbers" if least == most else "one or two numbers"
        raise typer.BadParameter(f"{text!r}; expected {how_many} of shapes, such as 0,3", param_hint="--shapes")
    return tuple(map(int, parts))
