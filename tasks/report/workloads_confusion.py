"""What runs were taken for: a row what ran, a column what it was called, in percent of the row."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from tasks.quantities import share
from tasks.report.cells import GAP, LEAST_WRITTEN, STEPS, row_shares
from tasks.report.direct_labels import INSIDE, RIGHT_OF_ROW, write
from tasks.report.style import INK, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style
from tasks.workloads.telemetry import FloatArray

CELL_IN, ROW_IN = 0.46, 0.3  # of a cell at most; of a row
LINE_IN = 0.21  # a name above its cells, where the figure is narrow
LEFT_IN, RIGHT_IN = {False: 2.1, True: 0.1}, 0.55
HEAD_IN, FOOT_IN = 0.56, 0.34
NAME_CHARS = {False: 24, True: 40}
LEAST_CELL_IN = 0.29  # a smaller one holds no number
WORST_CHARS = {False: 86, True: 45}


@dataclass(frozen=True)
class WorkloadConfusion:
    """counts: (k, k) runs, rows what ran, columns what it was called, in the order of `workloads`; by: what called it.

    (k, k + 1): the last column holds runs that were called unknown. Runs of repeated splits count each time."""

    workloads: tuple[str, ...]
    counts: NDArray[np.int64]
    by: str = "trees"

    @property
    def n(self) -> int:
        """Runs that were called something."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float | None:
        """Share that were called what they are; None without any."""
        return float(np.trace(self.counts)) / self.n if self.n else None

    @property
    def shares(self) -> FloatArray:
        """Of what ran: (k, k); NaN for a workload without a run."""
        return row_shares(self.counts)

    @property
    def worst(self) -> tuple[int, int] | None:
        """Row and column of the error with the largest share of its row; None without an error."""
        wrong = np.nan_to_num(self.shares)
        np.fill_diagonal(wrong, 0.0)
        if not wrong.any():
            return None
        row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
        return int(row), int(column)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n:,} runs called by {self.by}, {share(self.accuracy)} right; percent of what ran"


def draw_workload_confusion(data: WorkloadConfusion, width_in: float) -> Figure | None:
    """Numbered rows and columns, cells in percent; framed in grey what is right, in orange the worst error.

    None without a run."""
    (k, n_columns), narrow = data.counts.shape, is_narrow(width_in)
    if not data.n:
        return None
    cell_in = min(CELL_IN, (width_in - LEFT_IN[narrow] - RIGHT_IN) / n_columns)
    row_in = ROW_IN + (LINE_IN if narrow else 0.0)
    height_in = HEAD_IN + row_in * k + FOOT_IN
    with whorl_style():
        figure = new_figure(width_in, height_in, top_in=HEAD_IN)
        left_in = LEFT_IN[narrow]
        figure.subplots_adjust(
            left=left_in / width_in, right=(left_in + cell_in * n_columns) / width_in, bottom=FOOT_IN / height_in
        )
        axes = figure.subplots()
        axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(k - 0.5, -0.5), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        top = LINE_IN / row_in if narrow else 0.0  # of a row, above its cells
        for row, name in enumerate(data.workloads):
            _draw_cells(axes, data, row, top, has_numbers=cell_in >= LEAST_CELL_IN)
            _write_name(axes, f"{row + 1} {plain_label(name, NAME_CHARS[narrow])}", row, top)
            write(axes, f"{data.counts[row].sum():,}", (1, row + top / 2), (6, 0), INK, at=RIGHT_OF_ROW)
        for column in range(n_columns):
            words = str(column + 1) if column < k else "?"
            write(axes, words, (column, -0.5), (0, 3), INK, ha="center", va="bottom")
        write(axes, "runs", (1, 1), (4, 3), MUTED, at=INSIDE, va="bottom")
        words = f"columns: what they were called{'; ?: unknown' if n_columns > k else ''}"
        figure.text(0.02, 0.07 / height_in, words, color=MUTED, ha="left", va="bottom")
        colour = ORANGE if data.worst else MUTED
        figure.text(0.02, 1 - 0.06 / height_in, _in_words(data, narrow), color=colour, ha="left", va="top")
    return figure


def _draw_cells(axes: Axes, data: WorkloadConfusion, row: int, top: float, *, has_numbers: bool) -> None:
    for column, value in enumerate(data.shares[row]):
        colour = next((colour for least, colour in STEPS if value >= least), "none")
        edge, width = (MUTED, 0.8) if row == column else ("none", 0.0)
        if (row, column) == data.worst:
            edge, width = ORANGE, 1.8
        corner = (column - 0.5 + GAP / 2, row - 0.5 + top + GAP / 2)
        cell = Rectangle(corner, 1 - GAP, 1 - top - GAP, facecolor=colour, edgecolor=edge, linewidth=width)
        axes.add_patch(cell)
        if has_numbers and value >= LEAST_WRITTEN:
            axes.text(column, row + top / 2, f"{100 * value:.0f}", ha="center", va="center", color=INK)


def _write_name(axes: Axes, name: str, row: int, top: float) -> None:
    if top:
        write(axes, name, (-0.5, row - 0.5 + top / 2), (0, 0), INK)
    else:
        write(axes, name, (-0.5, row), (-6, 0), INK, ha="right")


def _in_words(data: WorkloadConfusion, narrow: bool) -> str:
    """The worst error in words."""
    if data.worst is None:
        return "every run was called what it is"
    row, column = data.worst
    part = f"{100 * data.shares[row, column]:.0f} %"
    actual, called = data.workloads[row], (*data.workloads, "unknown")[column]
    words = (
        f"{part} of {actual} called {called}" if narrow else f"worst: {part} of the runs of {actual} called {called}"
    )
    return plain_label(words, WORST_CHARS[narrow])
