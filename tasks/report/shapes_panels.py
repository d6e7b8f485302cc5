"""Figure 5 and Table 2 of the paper: the typical distributions, a row each, ranked by their 25th-75th gap."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import ShapeSet
from tasks.quantities import duration, share
from tasks.report.direct_labels import INSIDE, write
from tasks.report.shapes_axis import BinAxis, bin_axis, share_axis
from tasks.report.style import BLUE, DENSITY, INK, MUTED, ORANGE, is_narrow, new_figure, whorl_style

AXES_IN = 0.5
GAP_IN = {False: 0.12, True: 0.44}  # between panels, where a narrow figure has two lines of words
HEAD_IN = {False: 0.42, True: 0.46}
FOOT_IN = {False: 0.56, True: 0.72}
NUMBERS_IN = {False: 3.4, True: 0.25}  # right of the panels
LEFT_IN = {False: 0.92, True: 0.62}
COLUMNS_IN = (0.45, 1.14, 1.88, 2.62, 3.32)  # right ends of the columns, from the end of the panels
NUMBER_IN = 0.25  # from the left of the figure to the middle of the number of a shape
PT = 72  # to an inch
HEIGHT_WORDS = "share of the runs in a bin"
HEADS = ("jobs", "25–75\ngap", "95th", "sd", "outliers")


@dataclass(frozen=True)
class ShapePanels:
    """shapes: the steadiest first; table: their rows of Table 2 in the same order (shapes.rank_by_runs)."""

    shapes: ShapeSet
    table: pd.DataFrame

    @property
    def kind(self) -> Kind:
        """How the runtimes were normalised."""
        return self.shapes.bins.kind

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n_runs, n_jobs = int(self.table["n_runs"].sum()), int(self.table["n_groups"].sum())
        return f"n = {n_runs:,} runs of {n_jobs:,} jobs in {len(self.table)} shapes, {self.shapes.bins.n_bins} bins"


def draw_shapes(panels: ShapePanels, width_in: float) -> Figure:
    """A panel a shape over one axis of normalised runtime; shares are logarithmic, so that tails are seen."""
    narrow, k = is_narrow(width_in), len(panels.table)
    axis = bin_axis(panels.shapes.bins, panels.shapes.centres)
    pitch_in = AXES_IN + GAP_IN[narrow]
    with whorl_style():
        height_in = HEAD_IN[narrow] + k * pitch_in - GAP_IN[narrow] + FOOT_IN[narrow]
        figure = new_figure(width_in, height_in, top_in=HEAD_IN[narrow])
        right_in = NUMBERS_IN[narrow]
        figure.subplots_adjust(
            left=LEFT_IN[narrow] / width_in,
            right=1 - right_in / width_in,
            bottom=FOOT_IN[narrow] / height_in,
            hspace=GAP_IN[narrow] / AXES_IN,
        )
        strips = figure.subplots(k, 1, sharex=True, squeeze=False)[:, 0]
        for number, (axes, row) in enumerate(zip(strips, panels.table.to_dict("records"), strict=True)):
            _draw_panel(axes, panels.shapes.centres[number], axis)
            words = [f"{row['n_groups']:,}", *_numbers(row, panels.kind)]
            if narrow:
                _title_above(axes, number, words)
            else:
                _numbers_beside(axes, number, words)
        axis.label(strips[-1])
        if narrow:
            strips[-1].set_xlabel(f"{strips[-1].get_xlabel()}\n{HEIGHT_WORDS}, logarithmic")
        else:
            strips[0].set_title(f"{HEIGHT_WORDS}, logarithmic", loc="left", fontsize="medium", color=MUTED, pad=4)
    return figure


def _draw_panel(axes: Axes, pmf: np.ndarray, axis: BinAxis) -> None:
    share_axis(axes, n_ticks=2)
    inside = axis.inside(pmf)
    axes.stairs(inside, axis.edges, baseline=axes.get_ylim()[0], fill=True, color=DENSITY[1])
    axes.stairs(inside, axis.edges, baseline=None, color=BLUE, linewidth=1)
    for edges, mass in axis.outliers(pmf):
        axes.stairs([mass], edges, baseline=axes.get_ylim()[0], fill=True, color=ORANGE)
    axes.axvline(axis.at_median, color=MUTED, linewidth=0.8, linestyle=":")
    axes.set_xlim(*axis.limits)


def _numbers(row: Mapping[Any, Any], kind: Kind) -> list[str]:
    show = duration if kind == "delta" else _two_decimals
    values = [show(row[name]) for name in ("p25_p75", "p95", "std")]
    return [*values, share(row["outlier_percent"] / 100)]


def _two_decimals(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _title_above(axes: Axes, number: int, words: list[str]) -> None:
    jobs, gap, p95, sd, outliers = words
    title = f"shape {number} · {jobs} job{'' if jobs == '1' else 's'} · outliers {outliers}"
    axes.set_title(f"{title}\ngap {gap} · 95th {p95} · sd {sd}", loc="left", fontsize="medium", pad=3, x=-0.1)


def _numbers_beside(axes: Axes, number: int, words: list[str]) -> None:
    for at_in, head, word in zip(COLUMNS_IN, HEADS, words, strict=True):
        write(axes, word, (1, 0.5), (at_in * PT, 0), INK, at=INSIDE, ha="right")
        if number == 0:
            write(axes, head, (1, 1), (at_in * PT, 2), MUTED, at=INSIDE, ha="right", va="bottom")
    left = (NUMBER_IN - LEFT_IN[False]) * PT
    write(axes, str(number), (0, 0.5), (left, 0), INK, at=INSIDE, ha="center").set_fontsize("x-large")
    if number == 0:
        write(axes, "shape", (0, 1), (left, 2), MUTED, at=INSIDE, ha="center", va="bottom")
