"""How many bins a distribution should have: how stable the labels are, and how well held-out runs are foretold."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tasks.jobs.normalisation import Floats
from tasks.report.direct_labels import write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, new_figure, whorl_style

COLUMNS = ["n_bins", "stability", "log_score", "n_groups"]
PLOT_IN, TITLE_IN, FOOT_IN = 1.5, 0.36, 0.56
LEFT_IN, RIGHT_IN, BETWEEN_IN = 0.62, 0.3, 0.75
ROOM = (0.12, 0.3)  # below the lowest and above the highest value, of their span: for words
LEAST_NATS = 0.25  # of the axis of log-scores: less is no difference to speak of


@dataclass(frozen=True)
class BinComparison:
    """table: COLUMNS, one row a number of bins, rising; log_score may be missing. chosen: bins of the shapes."""

    table: pd.DataFrame
    chosen: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n = int(self.table["n_groups"].max()) if len(self.table) else 0
        return f"n = {n:,} jobs, their runs dealt into two halves; {len(self.table)} numbers of bins"


def draw_bins(compared: BinComparison, width_in: float) -> Figure | None:
    """A panel for stability, and one for the log-score where it is known; the number in use is orange."""
    table, narrow = compared.table, is_narrow(width_in)
    if table.empty:
        return None
    panels = [("stability", "halves agree (adjusted Rand index)"), ("log_score", "log-score of held-out runs (nats)")]
    panels = [(name, words) for name, words in panels if table[name].notna().any()]
    rows, columns = (len(panels), 1) if narrow else (1, len(panels))
    with whorl_style():
        height_in = rows * (PLOT_IN + TITLE_IN + FOOT_IN)
        figure = new_figure(width_in, height_in, top_in=TITLE_IN)
        plot_in = (width_in - LEFT_IN - RIGHT_IN - (columns - 1) * BETWEEN_IN) / columns
        figure.subplots_adjust(
            left=LEFT_IN / width_in,
            right=1 - RIGHT_IN / width_in,
            bottom=FOOT_IN / height_in,
            wspace=BETWEEN_IN / plot_in,
            hspace=(TITLE_IN + FOOT_IN) / PLOT_IN,
        )
        for axes, (name, words) in zip(figure.subplots(rows, columns, squeeze=False).flat, panels, strict=True):
            is_chosen = (table["n_bins"] == compared.chosen).to_numpy()
            values = table[name].to_numpy(dtype=float)
            ends = (min(0.0, float(np.nanmin(values))), 1.0) if name == "stability" else None
            _draw_panel(axes, table["n_bins"].tolist(), values, is_chosen, ends)
            axes.set_title(words, loc="left", fontsize="medium", pad=6, x=-0.1)
    return figure


def _draw_panel(
    axes: Axes, n_bins: list[int], values: Floats, is_chosen: NDArray[np.bool_], ends: tuple[float, float] | None
) -> None:
    at = np.arange(len(n_bins))
    axes.plot(at, values, color=BLUE, linewidth=1.4, marker="o", markersize=4.5)
    axes.plot(at[is_chosen], values[is_chosen], color=ORANGE, linewidth=0, marker="o", markersize=7)
    for place, value, chosen in zip(at, values, is_chosen, strict=True):
        if np.isfinite(value):
            write(
                axes,
                f"{round(value, 3) or 0.0:.3f}",
                (place, value),
                (0, 6),
                ORANGE if chosen else INK,
                ha="center",
                va="bottom",
            )
    low, high = ends or (float(np.nanmin(values)), float(np.nanmax(values)))
    span = max(high - low, LEAST_NATS)
    low = min(low, high - span)
    axes.set(xlim=(-0.4, len(at) - 0.6), ylim=(low - ROOM[0] * span, high + ROOM[1] * span))
    if ends:
        for end in (0, 1):
            axes.axhline(end, color=MUTED, linewidth=0.8, linestyle=":", zorder=1)
        axes.set_yticks([0, 1])
        axes.tick_params(axis="y", length=0)
    else:
        axes.set_yticks([])
    axes.set_xticks(at, [f"{n:,}" for n in n_bins])
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=GRID)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("bins", color=MUTED)
