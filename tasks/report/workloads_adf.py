"""In how many phases the Dickey–Fuller statistic is determined, by how long they are."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tasks.quantities import share
from tasks.report.bar_rows import row_axes
from tasks.report.direct_labels import write
from tasks.report.style import BLUE, DENSITY, INK, MUTED, whorl_style

BINS = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 29), (30, 99), (100, None))
HEAD_IN, FOOT_IN, RIGHT_IN = 0.15, 0.52, 0.3
ROOM = 1.6  # right of the longest bar, for its words


@dataclass(frozen=True)
class AdfShares:
    """lengths: (n,) samples of each phase; is_determined: (n,) whether it has the statistic."""

    lengths: NDArray[np.int64]
    is_determined: NDArray[np.bool_]

    @property
    def share(self) -> float | None:
        """Of all phases; None without any."""
        return float(self.is_determined.mean()) if len(self.lengths) else None

    @property
    def rows(self) -> list[tuple[str, int, int]]:
        """Words, phases and those determined of each length that occurs."""
        found = []
        for least, most in BINS:
            inside = (self.lengths >= least) & (self.lengths <= (most or np.inf))
            if inside.any():
                words = "1 sample" if most == 1 else f"{least} or more" if most is None else f"{least} to {most}"
                found.append((words, int(inside.sum()), int(self.is_determined[inside].sum())))
        return found

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {len(self.lengths):,} phases of all counters, {share(self.share)} determined"


def draw_adf(data: AdfShares, width_in: float) -> Figure | None:
    """A bar a length of phases: how many there are, blue those with the statistic. None without a phase."""
    rows = data.rows
    if not rows:
        return None
    with whorl_style():
        names = [words if "sample" in words else f"{words} samples" for words, _, _ in rows]
        figure, axes, middle, thickness = row_axes(names, width_in, head_in=HEAD_IN, foot_in=FOOT_IN, right_in=RIGHT_IN)
        places = np.arange(len(rows)) + middle
        axes.barh(places, [n for _, n, _ in rows], thickness, color=DENSITY[0])
        axes.barh(places, [n for _, _, n in rows], thickness, color=BLUE)
        for place, (_, n, determined) in zip(places, rows, strict=True):
            write(axes, f"{n:,}, {share(determined / n)}", (n, place), (4, 0), INK)
        axes.set_xlim(0, ROOM * max(n for _, n, _ in rows))
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.set_xlabel("phases; blue: with the statistic", color=MUTED)
    return figure
