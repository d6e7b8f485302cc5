"""Precision over recall of each detector: how many of the flagged executions were stressed, the more are found."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from tasks.quantities import ratio
from tasks.report.nodes_evaluation_words import detector_name
from tasks.report.style import BLUE, GRID, INK, MUTED, is_narrow, new_figure, whorl_style

PANEL_IN, GAP_IN, HEAD_IN, FOOT_IN, LEFT_IN, RIGHT_IN = 1.25, 0.28, 0.55, 0.56, 0.62, 0.12
ACROSS = {False: 4, True: 2}
TICKS = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class PrecisionRecall:
    """curves: detector, recall, precision; areas: of each detector, under its curve.

    base: share of the tested executions that are stressed, which guessing reaches; n: tested executions."""

    curves: pd.DataFrame
    areas: dict[str, float]
    base: float
    n: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n:,} tested executions, later than those learned from"


def draw_precision(data: PrecisionRecall, width_in: float) -> Figure | None:
    """A panel a detector, the largest area first; dotted is what guessing would reach. None without a curve."""
    names = sorted({str(name) for name in data.curves["detector"]}, key=lambda one: (-data.areas.get(one, 0.0), one))
    if not names:
        return None
    across = min(len(names), ACROSS[is_narrow(width_in)])
    down = -(-len(names) // across)
    panel_in = (width_in - LEFT_IN - RIGHT_IN - GAP_IN * (across - 1)) / across
    height_in = down * (HEAD_IN + PANEL_IN) + FOOT_IN
    with whorl_style():
        figure = new_figure(width_in, height_in)
        for at, name in enumerate(names):
            row, column = divmod(at, across)
            bottom_in = height_in - (row + 1) * (HEAD_IN + PANEL_IN)
            left_in = LEFT_IN + column * (panel_in + GAP_IN)
            axes = figure.add_axes(
                (left_in / width_in, bottom_in / height_in, panel_in / width_in, PANEL_IN / height_in)
            )
            _draw_panel(axes, data, name)
            axes.set_yticklabels([] if column else ["0", "0.5", "1"])
            if column == 0:
                axes.set_ylabel("precision", color=MUTED)
            if row == down - 1:
                axes.set_xlabel("recall", color=MUTED)
    return figure


def _draw_panel(axes: Axes, data: PrecisionRecall, name: str) -> None:
    own = data.curves[data.curves["detector"] == name].sort_values("recall")
    recall = np.concatenate([[0.0], own["recall"].to_numpy()])
    precision = own["precision"].to_numpy()
    axes.stairs(precision, recall, color=BLUE, linewidth=1.6, baseline=None)
    axes.axhline(data.base, color=MUTED, linewidth=0.9, linestyle=":")
    axes.set(xlim=(0, 1.02), ylim=(0, 1.04))
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(color=GRID)
    axes.set_axisbelow(True)
    words = detector_name(name).replace("median of the last executions", "last-k median")
    axes.set_title(f"{words}\narea {ratio(data.areas.get(name))}", loc="left", color=INK, fontsize="medium", pad=4)
