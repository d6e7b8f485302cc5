"""Levels of counters as coloured cells: blue below what is usual, orange above, empty where it is as usual.

Colours are those of the page, lighter where the level is nearer to the usual, so that they hold in dark mode too."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from tasks.report.direct_labels import INSIDE, write
from tasks.report.style import BLUE, GRID, MUTED, ORANGE
from tasks.workloads.telemetry import FloatArray

STEPS = ((4.0, 1.0), (2.0, 0.7), (1.0, 0.42), (0.35, 0.18))  # deviations from the usual, and how strong the colour is
THICKNESS = 0.78  # of a row
KEY_IN = (0.17, 0.13)  # width and height of a swatch
LESS, MORE = "less than usual", "more"


def shade(level: float) -> tuple[str, float]:
    """Colour and strength of a level in deviations from the usual; strength 0 where it is as usual or missing."""
    strength = next((strong for least, strong in STEPS if abs(level) >= least), 0.0)
    return (ORANGE if level > 0 else BLUE), strength


def draw_row(axes: Axes, row: float, edges: ArrayLike, levels: FloatArray, thickness: float) -> None:
    """A row of cells between the edges, (n + 1,), centred at `row`; changes are thin lines, the row has a frame."""
    bottom, edges = row - thickness / 2, np.asarray(edges, dtype=float)
    for start, end, level in zip(edges[:-1], edges[1:], levels, strict=True):
        colour, strength = shade(float(level))
        if strength:
            axes.add_patch(Rectangle((start, bottom), end - start, thickness, facecolor=colour, alpha=strength, lw=0))
    frame = Rectangle((edges[0], bottom), edges[-1] - edges[0], thickness, facecolor="none", edgecolor=GRID, lw=0.7)
    axes.add_patch(frame)
    if len(edges) > 2:
        axes.vlines(edges[1:-1], bottom, bottom + thickness, color=MUTED, linewidth=0.8)


def draw_key(figure: Figure, left_in: float, top_in: float) -> None:
    """What the colours mean, on one line: less than usual, swatches, more. top_in: from the top of the figure."""
    width_in, height_in = figure.get_size_inches()
    n = 2 * len(STEPS) + 1
    swatch_in, tall_in = KEY_IN
    words_in = 1.12
    axes = figure.add_axes((
        (left_in + words_in) / width_in,
        1 - (top_in + tall_in) / height_in,
        n * swatch_in / width_in,
        tall_in / height_in,
    ))  # fmt: skip
    strongest_first = [least for least, _ in STEPS]
    levels = [*(-least for least in strongest_first), 0.0, *reversed(strongest_first)]
    for place, level in enumerate(levels):
        colour, strength = shade(level)
        if strength:
            axes.add_patch(Rectangle((place, 0), 1, 1, facecolor=colour, alpha=strength, lw=0))
    axes.add_patch(Rectangle((0, 0), n, 1, facecolor="none", edgecolor=GRID, lw=0.7))
    axes.set(xlim=(0, n), ylim=(0, 1), xticks=[], yticks=[])
    axes.set_axis_off()
    write(axes, LESS, (0, 0.5), (-5, 0), MUTED, at=INSIDE, ha="right")
    write(axes, MORE, (1, 0.5), (5, 0), MUTED, at=INSIDE)
