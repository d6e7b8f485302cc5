"""How good each node is in each aspect: scores with their intervals, the best on top."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from tasks.quantities import ratio
from tasks.report.direct_labels import INSIDE, RIGHT_OF_ROW, write
from tasks.report.nodes_words import OVERALL, aspect_name, node_name
from tasks.report.style import BLUE, GRID, INK, MUTED, is_narrow, new_figure, plain_label, spaced_ticks, whorl_style

ROW_IN, HEAD_IN, GAP_IN, FOOT_IN, TOP_IN = 0.3, 0.3, 0.12, 0.56, 0.1
NAMES_IN, SCORES_IN = {False: 2.3, True: 1.45}, {False: 1.05, True: 0.85}
NAME_CHARS = {False: 30, True: 18}
MARGIN = 1.04  # beside the outermost interval, as a factor
WIDE_RANGE = 8.0  # from this ratio on ticks are 1, 2, 5, 10
N_TICKS, N_FAR_TICKS = 4, 5
ROUND_TICKS = tuple(10.0**power for power in range(-6, 7))
FINE_TICKS = tuple(step * tick for tick in ROUND_TICKS for step in (2, 5))
REFERENCE = 1.0


@dataclass(frozen=True)
class RankedNodes:
    """scores: aspect, node, is_emulated, score, low, high, rank, is_tied, n_executions; by aspect, the best first."""

    scores: pd.DataFrame

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        overall = self.scores[self.scores["aspect"] == OVERALL]
        n, n_nodes = int(overall["n_executions"].sum()), len(overall)
        return f"n = {n:,} executions on {n_nodes:,} node{'' if n_nodes == 1 else 's'}"


def draw_ranking(data: RankedNodes, width_in: float) -> Figure | None:
    """A panel an aspect, a row a node: the score as a dot on its interval, and in numbers. None without scores."""
    panels = [(str(aspect), rows) for aspect, rows in data.scores.groupby("aspect", sort=False)]
    if not panels:
        return None
    narrow = is_narrow(width_in)
    height_in = TOP_IN + sum(HEAD_IN + ROW_IN * len(rows) for _, rows in panels) + GAP_IN * (len(panels) - 1) + FOOT_IN
    measured = data.scores[["low", "high", "score"]].to_numpy(dtype=float)
    ends = [REFERENCE, *(float(value) for value in measured.ravel() if value == value)]
    limits = min(ends) / MARGIN, max(ends) * MARGIN
    with whorl_style():
        figure = new_figure(width_in, height_in)
        top_in = height_in - TOP_IN
        for at, (aspect, rows) in enumerate(panels):
            tall_in = ROW_IN * len(rows)
            top_in -= HEAD_IN
            wide_in = width_in - NAMES_IN[narrow] - SCORES_IN[narrow]
            place = (NAMES_IN[narrow], top_in - tall_in, wide_in, tall_in)
            axes = figure.add_axes(
                (place[0] / width_in, place[1] / height_in, place[2] / width_in, place[3] / height_in)
            )
            _draw_panel(axes, aspect_name(aspect), rows.to_dict("records"), narrow=narrow)
            _score_axis(axes, *limits, is_last=at == len(panels) - 1)
            top_in -= tall_in + GAP_IN
    return figure


def _draw_panel(axes: Axes, aspect: str, rows: list[dict[Any, Any]], *, narrow: bool) -> None:
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.axvline(REFERENCE, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    write(axes, aspect, (0, 1), (0, 4), INK, at=INSIDE, va="bottom").set_fontweight("bold")
    for row, one in enumerate(rows):
        axes.plot([one["low"], one["high"]], [row, row], color=BLUE, linewidth=3, alpha=0.45, solid_capstyle="butt")
        axes.plot([one["score"]], [row], "o", color=BLUE, markersize=5.5)
        write(
            axes, plain_label(node_name(one), NAME_CHARS[narrow]), (0, row), (-6, 0), INK, at=RIGHT_OF_ROW, ha="right"
        )
        tied = " tied" if one["is_tied"] else ""
        write(axes, f"{ratio(one['score'])}{tied}", (1, row), (6, 0), INK, at=RIGHT_OF_ROW)


def ratio_ticks(low: float, high: float, n: int, *, far: int) -> list[float]:
    """About `n` ticks of a logarithmic axis of ratios, within its ends; `far` of them if these are far apart."""
    if high / low > WIDE_RANGE:
        return spaced_ticks(low, high, far, (ROUND_TICKS, FINE_TICKS))
    return [float(tick) for tick in MaxNLocator(nbins=n).tick_values(low, high) if low <= tick <= high]


def _score_axis(axes: Axes, low: float, high: float, *, is_last: bool) -> None:
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(ratio_ticks(low, high, N_TICKS, far=N_FAR_TICKS)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if is_last else ""))
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=GRID)
    if is_last:
        axes.set_xlabel("score; 1 (dashed) is the reference fleet, more is better", color=MUTED)
    else:
        axes.tick_params(axis="x", length=0)
