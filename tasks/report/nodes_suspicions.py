"""Suspicions over time: how far each execution is from what its node usually does."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from tasks.nodes.node_words import is_true
from tasks.nodes.type_tables import Floats
from tasks.report.date_ticks import date_axis
from tasks.report.direct_labels import INSIDE, RIGHT_OF_ROW, write
from tasks.report.nodes_words import node_name
from tasks.report.style import BLUE, INK, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style

STRIP_IN, HEAD_IN, FOOT_IN, TOP_IN = 0.62, 0.3, 0.56, 0.05
LEFT_IN, RIGHT_IN = 0.15, {False: 0.95, True: 0.75}
LEAST, MOST = 0.1, 20.0  # multiples of the way to the threshold; what lies outside stands at the edge
TICKS = {False: 7, True: 4}
TIMES_MARGIN = 0.02


@dataclass(frozen=True)
class Suspicions:
    """rows: node, is_emulated, started_at, score, threshold, is_suspicious, is_stressed; detector: which one."""

    detector: str
    rows: pd.DataFrame

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n_suspicious = int(self.rows["is_suspicious"].sum())
        return f"n = {len(self.rows):,} executions, {n_suspicious:,} of them suspicious, by {self.detector}"


def draw_suspicions(data: Suspicions, width_in: float) -> Figure | None:
    """A strip a node: executions in time, by how far on the way to the threshold they are. None without any time."""
    rows = data.rows[data.rows["started_at"].notna()]
    if rows.empty:
        return None
    rows = rows.assign(way=ways_to_threshold(rows["score"].to_numpy(), rows["threshold"].to_numpy()))
    strips = [group for _, group in rows.groupby("node", sort=False)]
    first, last = rows["started_at"].min(), rows["started_at"].max()
    margin = max((last - first) * TIMES_MARGIN, pd.Timedelta(seconds=1))
    narrow = is_narrow(width_in)
    height_in = TOP_IN + (HEAD_IN + STRIP_IN) * len(strips) + FOOT_IN
    with whorl_style():
        figure = new_figure(width_in, height_in)
        for at, strip in enumerate(strips):
            bottom_in = height_in - TOP_IN - (at + 1) * (HEAD_IN + STRIP_IN)
            wide_in = width_in - LEFT_IN - RIGHT_IN[narrow]
            axes = figure.add_axes(
                (LEFT_IN / width_in, bottom_in / height_in, wide_in / width_in, STRIP_IN / height_in)
            )
            _draw_strip(axes, strip)
            if at == len(strips) - 1:
                date_axis(axes, first, last, most=TICKS[narrow], what="started")
            else:
                axes.set_xticks([])
            axes.set_xlim(first - margin, last + margin)
    return figure


def ways_to_threshold(scores: Floats, thresholds: Floats) -> Floats:
    """1 at the threshold, above it for what is suspicious, 0 at the usual (median) score: (n,), larger is stranger.

    A threshold that does not lie above the usual score has no such way to it; then the unit is how far scores lie from
    it, at the middle of those that do. So 0 and negative thresholds are drawn like any other."""
    apart = scores - thresholds
    unit = float(np.median(-apart)) if len(apart) else 0.0
    if not unit > 0:
        others = np.abs(apart[np.isfinite(apart) & (apart != 0)])
        unit = float(np.median(others)) if len(others) else 1.0
    if not np.isfinite(unit):  # nothing is ever suspicious
        return np.zeros(len(scores))
    return np.asarray(1 + apart / unit)


def _draw_strip(axes: Axes, strip: pd.DataFrame) -> None:
    multiples = np.clip(strip["way"].to_numpy(dtype=np.float64), LEAST, MOST)
    is_suspicious = strip["is_suspicious"].to_numpy(dtype=bool)
    is_stressed = strip["is_stressed"].map(is_true).to_numpy(dtype=bool)
    times = strip["started_at"].to_numpy()
    axes.set_yscale("log")
    axes.set_ylim(LEAST / 1.3, MOST * 1.3)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.axhline(1, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    for chosen, colour in ((~is_suspicious, BLUE), (is_suspicious, ORANGE)):
        axes.plot(times[chosen], multiples[chosen], "o", color=colour, markersize=2.6, alpha=0.75, markeredgewidth=0)
    if is_stressed.any():
        axes.plot(times[is_stressed], np.full(is_stressed.sum(), LEAST / 1.1), "|", color=INK, markersize=5)
    name = node_name(strip.iloc[0].to_dict())
    n_suspicious = int(is_suspicious.sum())
    write(axes, plain_label(name, 40), (0, 1), (0, 3), INK, at=INSIDE, va="bottom").set_fontweight("bold")
    write(axes, f"{n_suspicious:,} of {len(strip):,}", (1, 1), (0, 3), ORANGE, at=INSIDE, ha="right", va="bottom")
    write(axes, "threshold", (1, 1), (4, 0), MUTED, at=RIGHT_OF_ROW)
