"""Other clusterings of the same distributions beside K-means: how many of the jobs their largest cluster holds."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tasks.quantities import share
from tasks.report.bar_rows import row_axes
from tasks.report.direct_labels import INSIDE, Side, write
from tasks.report.style import BLUE, DENSITY, GRID, INK, MUTED, whorl_style

COLUMNS = ["method", "largest_share", "n_groups"]
OURS = "k-means"
HEAD_IN, FOOT_IN, RIGHT_IN = 0.34, 0.56, 0.3
ROOM = 1.15  # right of the longest bar, for its number


@dataclass(frozen=True)
class RivalClusterings:
    """table: COLUMNS, one row a method; k: clusters of each."""

    table: pd.DataFrame
    k: int

    @property
    def ordered(self) -> pd.DataFrame:
        """K-means first, then the others, the most even first."""
        is_rival = self.table["method"] != OURS
        by = self.table.assign(is_rival=is_rival).sort_values(["is_rival", "largest_share", "method"], kind="stable")
        found: pd.DataFrame = by[COLUMNS].reset_index(drop=True)
        return found

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n = int(self.table["n_groups"].max()) if len(self.table) else 0
        return f"n = {n:,} jobs in {self.k:,} clusters each"


def draw_rivals(rivals: RivalClusterings, width_in: float) -> Figure | None:
    """A bar a method; a line where the largest of k clusters would be if all were alike. None without a method."""
    table = rivals.ordered
    if table.empty:
        return None
    even = 1 / max(rivals.k, 1)
    with whorl_style():
        names = [str(name) for name in table["method"]]
        figure, axes, middle, thickness = row_axes(names, width_in, head_in=HEAD_IN, foot_in=FOOT_IN, right_in=RIGHT_IN)
        values = table["largest_share"].to_numpy(dtype=float)
        rows = np.arange(len(values)) + middle
        axes.barh(rows, values, thickness, color=[BLUE if name == OURS else DENSITY[3] for name in names])
        for row, value in zip(rows, values, strict=True):
            write(axes, share(value), (value, row), (4, 0), INK)
        axes.set_xlim(0, ROOM * max(float(values.max()), even))
        axes.axvline(even, color=MUTED, linewidth=0.8, linestyle=":")
        place = even / axes.get_xlim()[1]
        ha: Side = "left" if place < 0.5 else "right"
        write(axes, f"all alike: {share(even)}", (place, 1), (0, 3), MUTED, at=INSIDE, ha=ha, va="bottom")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.locator_params(axis="x", nbins=4)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID)
        axes.set_xlabel("share of the jobs in the largest cluster", color=MUTED)
    return figure
