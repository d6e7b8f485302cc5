"""Figure 7(a) of the paper: predicted against actual shape, as shares of the actual one."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from tasks.jobs.normalisation import (
    Counts,
    Floats,
)
from tasks.quantities import share
from tasks.report.cells import draw_cells, row_shares
from tasks.report.direct_labels import INSIDE, RIGHT_OF_ROW, write
from tasks.report.style import INK, MUTED, is_narrow, new_figure, whorl_style

CELL_IN = 0.42
LEFT_IN, FOOT_IN, HEAD_IN = 0.62, 0.56, 0.34
COUNTS_IN = 0.75  # right of the cells: how many runs each row has


@dataclass(frozen=True)
class Confusion:
    """counts: (k, k) runs, rows the actual shape, columns the predicted one."""

    counts: Counts

    @property
    def n(self) -> int:
        """Runs, or jobs, that have both."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float | None:
        """Share on the diagonal; None without any."""
        return float(np.trace(self.counts)) / self.n if self.n else None

    @property
    def shares(self) -> Floats:
        """Of the actual shape: (k, k); a shape that nobody has is a row of NaN."""
        return row_shares(self.counts)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n:,}, accuracy {share(self.accuracy)}; percent of the actual shape"


def draw_confusion(confusion: Confusion, width_in: float) -> Figure:
    """Cells in percent of their row, with the size of the row beside it; the diagonal is right."""
    k, narrow = len(confusion.counts), is_narrow(width_in)
    room_in = width_in - LEFT_IN - COUNTS_IN
    cell_in = min(CELL_IN * (1 if narrow else 1.25), room_in / k)
    with whorl_style():
        height_in = HEAD_IN + cell_in * k + FOOT_IN
        figure = new_figure(width_in, height_in, top_in=HEAD_IN)
        figure.subplots_adjust(
            left=LEFT_IN / width_in, right=(LEFT_IN + cell_in * k) / width_in, bottom=FOOT_IN / height_in
        )
        axes = figure.subplots()
        draw_cells(axes, confusion.shares)
        axes.set_xlabel("predicted shape", color=MUTED)
        axes.set_ylabel("actual shape", color=MUTED)
        write(axes, "n", (1, 1), (8, 5), MUTED, at=INSIDE, va="bottom")
        for row, n in enumerate(confusion.counts.sum(axis=1)):
            write(axes, f"{n:,}", (1, row), (8, 0), INK, at=RIGHT_OF_ROW)
        axes.set_title(f"% of each row; {share(confusion.accuracy)} right", loc="left", fontsize="medium", pad=5)
    return figure
