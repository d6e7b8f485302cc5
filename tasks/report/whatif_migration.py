"""How jobs move between shapes when something is changed (section 7 of the paper): a table of shares as a map."""

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
from tasks.report.style import INK, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style

CELL_IN = {False: 0.5, True: 0.37}
LEFT_IN, FOOT_IN, HEAD_IN = 0.62, 0.56, {False: 0.5, True: 0.66}
COUNTS_IN = 0.7
TITLE_CHARS = {False: 76, True: 40}


@dataclass(frozen=True)
class MigrationMap:
    """counts: (k, k) runs or jobs, rows the shape before, columns after the change that `scenario` names."""

    counts: Counts
    scenario: str
    what: str = "runs"

    @property
    def n(self) -> int:
        """Runs or jobs with a shape before and after."""
        return int(self.counts.sum())

    @property
    def shares(self) -> Floats:
        """Of those that were in the shape of the row: (k, k); NaN for a shape that had none."""
        return row_shares(self.counts)

    @property
    def moved(self) -> float | None:
        """Share in another shape than before; None without any."""
        return 1 - float(np.trace(self.counts)) / self.n if self.n else None

    @property
    def largest(self) -> tuple[int, int] | None:
        """The move from one shape to another that most make: (before, after). None if nobody moves."""
        moves = np.where(np.eye(len(self.counts), dtype=bool), 0, self.counts)
        if not moves.any():
            return None
        before, after = np.unravel_index(int(moves.argmax()), moves.shape)
        return int(before), int(after)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n:,} {self.what}, {share(self.moved)} moved; percent of the shape before"


def draw_migration(migration: MigrationMap, width_in: float) -> Figure:
    """Cells in percent of their row; framed in grey who stays, in orange the move that most make, told in words."""
    k, narrow = len(migration.counts), is_narrow(width_in)
    cell_in = min(CELL_IN[narrow], (width_in - LEFT_IN - COUNTS_IN) / k)
    with whorl_style():
        height_in = HEAD_IN[narrow] + cell_in * k + FOOT_IN
        figure = new_figure(width_in, height_in, top_in=HEAD_IN[narrow])
        figure.subplots_adjust(
            left=LEFT_IN / width_in, right=(LEFT_IN + cell_in * k) / width_in, bottom=FOOT_IN / height_in
        )
        axes = figure.subplots()
        draw_cells(axes, migration.shares, marked=migration.largest)
        axes.set_xlabel("shape after", color=MUTED)
        axes.set_ylabel("shape before", color=MUTED)
        write(axes, "n", (1, 1), (8, 5), MUTED, at=INSIDE, va="bottom")
        for row, n in enumerate(migration.counts.sum(axis=1)):
            write(axes, f"{n:,}", (1, row), (8, 0), INK, at=RIGHT_OF_ROW)
        name = plain_label(migration.scenario, TITLE_CHARS[narrow])
        figure.text(0.02, 1 - 0.06 / height_in, name, va="top", ha="left")
        words, colour = _move_in_words(migration, narrow)
        figure.text(0.02, 1 - 0.25 / height_in, words, va="top", ha="left", color=colour)
    return figure


def _move_in_words(migration: MigrationMap, narrow: bool) -> tuple[str, str]:
    move = migration.largest
    if move is None:
        return "nobody changes shape", MUTED
    before, after = move
    part = share(float(migration.shares[before, after]))
    most = f"most often {before} → {after}: {part} of shape {before}"
    join = "\n" if narrow else " "
    return f"{share(migration.moved)} move;{join}{most}", ORANGE
