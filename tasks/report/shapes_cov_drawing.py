"""The figure of the three faults of the COV: a panel each, named by what it shows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from tasks.quantities import number, ratio
from tasks.report.direct_labels import INSIDE, EndLabel, label_ends, write
from tasks.report.shapes_cov_faults import FIRST, Biased, Coarse, CovFaults, Unstable
from tasks.report.style import (
    BLUE,
    DENSITY,
    GRID,
    INK,
    LEFT_IN,
    MUTED,
    ORANGE,
    is_narrow,
    log_time_axis,
    new_figure,
    plain_label,
    spaced_ticks,
    whorl_style,
)

PANEL_IN, TITLE_IN, FOOT_IN = 1.55, 0.56, 0.56
PT = 72  # to an inch
EDGE_IN = 0.12  # left of the titles
RIGHT_IN = {False: 1.6, True: 0.88}
COV_TICKS = ((0.01, 0.1, 1, 10, 100), (0.03, 0.3, 3, 30), (0.02, 0.05, 0.2, 0.5, 2, 5))
N_BINS, MARGIN = 30, 1.05
TAIL = 0.995  # of the runs, that the third panel shows
NAME_CHARS = {False: 34, True: 18}
MOST_DOTS = 600


def draw_cov_faults(faults: CovFaults, width_in: float) -> Figure | None:
    """Bias, instability and coarseness below one another, those that the log shows; None if it shows none."""
    narrow = is_narrow(width_in)
    panels: list[tuple[Callable[[Axes, Any, bool], None], Any]] = [
        (_draw_bias, faults.biased),
        (_draw_instability, faults.unstable),
        (_draw_coarseness, faults.coarse),
    ]
    shown = [(draw, data) for draw, data in panels if data is not None]
    if not shown:
        return None
    with whorl_style():
        height_in = len(shown) * (PANEL_IN + TITLE_IN + FOOT_IN)
        figure = new_figure(width_in, height_in, top_in=TITLE_IN)
        gaps = (TITLE_IN + FOOT_IN) / PANEL_IN
        figure.subplots_adjust(bottom=FOOT_IN / height_in, hspace=gaps, right=1 - RIGHT_IN[narrow] / width_in)
        for axes, (draw, data) in zip(figure.subplots(len(shown), 1, squeeze=False)[:, 0], shown, strict=True):
            draw(axes, data, narrow)
    return figure


def _draw_bias(axes: Axes, biased: Biased, narrow: bool) -> None:
    covs = np.maximum(biased.cov, COV_TICKS[0][0])
    low, high = float(covs.min()) / 1.3, float(covs.max()) * 1.3
    log_time_axis(axes, "x", biased.median_s.min() / 1.2, biased.median_s.max() * 1.2, n_ticks=4 if narrow else 7)
    axes.set(yscale="log", ylim=(low, high))
    axes.yaxis.set_major_locator(FixedLocator(spaced_ticks(low, high, 4, COV_TICKS)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    chosen = np.linspace(0, len(covs) - 1, min(len(covs), MOST_DOTS)).round().astype(int)
    axes.scatter(biased.median_s[chosen], covs[chosen], s=9, color=BLUE, alpha=0.5, linewidths=0)
    bands = np.maximum(np.array(biased.bands), COV_TICKS[0][0])
    axes.plot(bands[:, 0], bands[:, 1], color=ORANGE, marker="o", markersize=5, linewidth=1.4)
    label_ends(axes, [EndLabel("bands" if narrow else "median of jobs alike", bands[-1, 1], ORANGE)])
    axes.set_ylabel("COV", color=MUTED)
    axes.set_xlabel("median runtime of the job", color=MUTED)
    shortest, longest = biased.bands[0][1], biased.bands[-1][1]
    words = f"COV {ratio(shortest)} for the shortest jobs, {ratio(longest)} for the longest"
    if narrow:
        words = f"COV {ratio(shortest)} for short jobs, {ratio(longest)} for long"
    _title(axes, "bias: COV by the length of jobs", words)


def _draw_instability(axes: Axes, unstable: Unstable, narrow: bool) -> None:
    n = np.arange(FIRST, FIRST + len(unstable.cov))
    axes.plot(n, unstable.cov, color=ORANGE, linewidth=1.4)
    axes.plot(n, unstable.gap, color=BLUE, linewidth=1.4)
    axes.set_xlim(FIRST, n[-1])
    axes.set_ylim(0, 1.1 * max(float(unstable.cov.max()), float(unstable.gap.max())))
    gap_words = "25–75 gap" if narrow else "25–75 gap / median"
    label_ends(
        axes,
        [EndLabel("COV", float(unstable.cov[-1]), ORANGE), EndLabel(gap_words, float(unstable.gap[-1]), BLUE)],
    )
    axes.locator_params(axis="y", nbins=4)
    axes.locator_params(axis="x", nbins=4 if narrow else 8, integer=True)
    axes.set_xlabel("runs of the job so far", color=MUTED)
    place = unstable.jump_at - FIRST
    before, after = unstable.cov[place], unstable.cov[place + 1]
    words = f"one run of {number(unstable.runtime_ratio)} × its median: {ratio(before)} → {ratio(after)}"
    name = "" if narrow else f"{plain_label(unstable.group_key, NAME_CHARS[narrow])}: "
    _title(axes, "instability: one run can move it", f"{name}{words}")


def _draw_coarseness(axes: Axes, coarse: Coarse, narrow: bool) -> None:
    low = min(float(np.quantile(values, 1 - TAIL)) for values in coarse.ratios) / MARGIN
    top = max(float(np.quantile(values, TAIL)) for values in coarse.ratios) * MARGIN
    edges = np.geomspace(low, top, N_BINS + 1)
    for values, colour, fill in zip(coarse.ratios, (BLUE, ORANGE), (DENSITY[1], None), strict=True):
        shares = np.histogram(np.clip(values, low, top), bins=edges)[0] / len(values)
        if fill:
            axes.stairs(shares, edges, fill=True, color=fill)
        axes.stairs(shares, edges, baseline=0, color=colour, linewidth=1.4)
    axes.axvline(1, color=MUTED, linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlim=(low, top))
    axes.xaxis.set_major_locator(FixedLocator(spaced_ticks(low, top, 4 if narrow else 7, COV_TICKS)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=GRID)
    axes.set_xlabel("runtime / mean of the job", color=MUTED)
    axes.set_ylabel("runs", color=MUTED)
    words = [f"n {len(values):,}\nCOV {ratio(cov)}" for values, cov in zip(coarse.ratios, coarse.covs, strict=True)]
    for text, colour, at in zip(words, (BLUE, ORANGE), (0.72, 0.22), strict=True):
        write(axes, text, (1, at), (5, 0), colour, at=INSIDE)
    names = [plain_label(key, NAME_CHARS[narrow]) for key in coarse.keys]
    _title(axes, "coarseness: one COV, two distributions", names)


def _title(axes: Axes, fault: str, words: str | Sequence[str]) -> None:
    """The fault, and below it what is seen."""
    line = words if isinstance(words, str) else " and ".join(words)
    shift_pt = (-PT * (LEFT_IN - EDGE_IN), 6)
    write(axes, f"{fault}\n{line}", (0, 1), shift_pt, INK, at=INSIDE, va="bottom")
