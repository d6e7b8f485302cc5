"""A table of shares as a map of coloured cells, each with its number: confusion and migration between shapes."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from tasks.jobs.normalisation import (
    Counts,
    Floats,
)
from tasks.report.style import DENSITY, INK, MUTED, ORANGE

STEPS = ((0.5, DENSITY[2]), (0.2, DENSITY[1]), (0.05, DENSITY[0]))  # the darker ones would hide their numbers
LEAST_WRITTEN = 0.005  # a share below is no number of whole percents
GAP = 0.06  # around a cell, of its size


def row_shares(counts: Counts) -> Floats:
    """Shares of each row, (n_rows, n_columns); a row without any is all NaN."""
    sums = counts.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(counts, sums, out=np.full(counts.shape, np.nan), where=sums > 0))


def draw_cells(axes: Axes, shares: ArrayLike, *, marked: tuple[int, int] | None = None) -> None:
    """Cells of shares in percent, (n_rows, n_columns), the first row on top; missing ones stay empty.

    The diagonal has a frame; `marked` (row, column) a strong one."""
    table = np.asarray(shares, dtype=float)
    n_rows, n_columns = table.shape
    for row, column in np.ndindex(n_rows, n_columns):
        value = table[row, column]
        colour = next((colour for least, colour in STEPS if value >= least), "none")
        edge, width = (ORANGE, 1.8) if (row, column) == marked else (MUTED, 0.8) if row == column else ("none", 0.0)
        corner, size = (column - 0.5 + GAP / 2, row - 0.5 + GAP / 2), 1 - GAP
        axes.add_patch(Rectangle(corner, size, size, facecolor=colour, edgecolor=edge, linewidth=width))
        if value >= LEAST_WRITTEN:
            axes.text(column, row, f"{100 * value:.0f}", ha="center", va="center", color=INK)
    axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5))
    axes.set_xticks(range(n_columns))
    axes.set_yticks(range(n_rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
