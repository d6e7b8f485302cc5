"""Names written beside what they name: at the ends of lines, pushed apart where they would lie on one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from numpy.typing import ArrayLike, NDArray

Side = Literal["left", "center", "right"]
Height = Literal["bottom", "baseline", "center", "top"]
Coords = str | tuple[str, str]
INSIDE: Coords = "axes fraction"
RIGHT_OF_ROW: Coords = ("axes fraction", "data")  # x counts from the left of the axes, 0 to 1; y is a row
LINE_IN = 0.165  # a line of text at the size of figures, in inches
GAP_PT = 5


@dataclass(frozen=True)
class EndLabel:
    """A name for the line that ends at y (data), in the colour of the line."""

    text: str
    y: float
    colour: str


def spread_apart(wanted: ArrayLike, least: float, low: float, high: float) -> NDArray[np.float64]:
    """Places close to the wanted ones, in their order, at least `least` apart and within [low, high] if they fit.

    wanted: (n,). Returns (n,). Ties keep the order in which they came."""
    values = np.asarray(wanted, dtype=float)
    order = np.argsort(values, kind="stable")
    steps = least * np.arange(len(values))
    # Minus its step each place may only stay or rise: the blocks of equal places are the means of what pushes.
    blocks: list[list[float]] = []
    for value in values[order] - steps:
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (mean, n), (before, m) = blocks.pop(), blocks.pop()
            blocks.append([(mean * n + before * m) / (n + m), n + m])
    flat = np.concatenate([np.full(int(n), mean) for mean, n in blocks]) if blocks else np.zeros(0)
    top = max(low, high - (steps[-1] if len(steps) else 0.0))
    placed = np.empty(len(values))
    placed[order] = np.clip(flat, low, top) + steps
    return placed


def label_ends(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write each name to the right of the axes, at the height of the end of its line. Set the limits before."""
    heights = [_fraction(axes, label.y) for label in labels]
    least = LINE_IN / (axes.get_position().height * axes.figure.get_size_inches()[1])  # type: ignore[union-attr]
    for label, height in zip(labels, spread_apart(heights, least, 0.0, 1.0), strict=True):
        write(axes, label.text, (1, height), (GAP_PT, 0), label.colour, at=INSIDE)


def write(
    axes: Axes,
    words: str,
    place: tuple[Any, float],
    shift_pt: tuple[float, float],
    colour: str,
    *,
    at: Coords = "data",
    ha: Side = "left",
    va: Height = "center",
) -> Annotation:
    """Words at a place (in `at`: data, or fractions of the axes for x, y or both), shifted by so many points."""
    return axes.annotate(
        words,
        place,
        xycoords=at,
        xytext=shift_pt,
        textcoords="offset points",
        ha=ha,
        va=va,
        color=colour,
        annotation_clip=False,
    )


def _fraction(axes: Axes, y: float) -> float:
    """How high a value stands in the axes: 0 at the bottom, 1 at the top."""
    at = axes.transAxes.inverted().transform(axes.transData.transform((axes.get_xlim()[0], y)))
    return float(np.clip(at[1], 0, 1))
