"""Figure 8 of the paper: predicted against actual percentiles of all runs together, and the error of each."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from tasks.jobs.scores import Pooled
from tasks.quantities import duration
from tasks.report.direct_labels import EndLabel, label_ends
from tasks.report.prediction_colours import colour_of, line_of
from tasks.report.style import GRID, MUTED, is_narrow, log_time_axis, new_figure, whorl_style

SQUARE_IN = {False: 1.45, True: 1.35}
TITLE_IN = 0.66
ERROR_IN = 1.7
LEFT_IN, FOOT_IN, LABELS_IN = 0.78, 0.52, 0.72
BETWEEN_IN = 0.62  # squares and errors
GAP_IN = {False: 0.2, True: 0.2}
PERCENTILE_TICKS = (1, 25, 50, 75, 99)
LEAST_SHARE = 1e-4  # of the largest error: smaller ones are drawn there, since 0 has no logarithm


@dataclass(frozen=True)
class QuantileComparison:
    """pooled: by the name of the predictor, in the order shown; those without runs are left out of the figure."""

    pooled: Mapping[str, Pooled]

    @property
    def shown(self) -> dict[str, Pooled]:
        """Those that have runs."""
        return {name: one for name, one in self.pooled.items() if one.n and (one.actual_s > 0).any()}

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n = max((one.n for one in self.pooled.values()), default=0)
        return f"n = {n:,} runs, percentiles 1 to 99 of all of them together"


def draw_quantiles(comparison: QuantileComparison, width_in: float) -> Figure | None:
    """A square of percentiles a predictor, on the diagonal if right; below, the error by percentile.

    None if no predictor has runs."""
    shown, narrow = comparison.shown, is_narrow(width_in)
    if not shown:
        return None
    columns = min(len(shown), 2 if narrow else 4)
    rows = -(-len(shown) // columns)
    with whorl_style():
        squares_in = rows * (SQUARE_IN[narrow] + TITLE_IN) + (rows - 1) * GAP_IN[narrow]
        height_in = squares_in + BETWEEN_IN + ERROR_IN + FOOT_IN
        figure = new_figure(width_in, height_in)
        above = figure.add_gridspec(
            rows,
            columns,
            left=LEFT_IN / width_in,
            right=1 - 0.12 / width_in,
            top=1 - TITLE_IN / height_in,
            bottom=1 - squares_in / height_in,
            wspace=0.12,
            hspace=(TITLE_IN + GAP_IN[narrow]) / SQUARE_IN[narrow],
        )
        limits = _limits(shown)
        for place, (name, pooled) in enumerate(shown.items()):
            axes = figure.add_subplot(above[place // columns, place % columns])
            is_lowest = place + columns >= len(shown)
            _draw_square(axes, name, pooled, limits, (place % columns == 0, is_lowest))
        below = figure.add_gridspec(
            1,
            1,
            left=LEFT_IN / width_in,
            right=1 - LABELS_IN / width_in,
            top=(FOOT_IN + ERROR_IN) / height_in,
            bottom=FOOT_IN / height_in,
        )
        _draw_errors(figure.add_subplot(below[0]), shown)
    return figure


def _limits(shown: Mapping[str, Pooled]) -> tuple[float, float]:
    values = np.concatenate([np.r_[one.predicted_s, one.actual_s] for one in shown.values()])
    values = values[(values > 0) & np.isfinite(values)]
    return float(values.min()) / 1.4, float(values.max()) * 1.4


def _draw_square(
    axes: Axes, name: str, pooled: Pooled, limits: tuple[float, float], has_labels: tuple[bool, bool]
) -> None:
    log_time_axis(axes, "x", *limits, n_ticks=3)
    log_time_axis(axes, "y", *limits, n_ticks=4)
    axes.plot(limits, limits, color=MUTED, linewidth=0.8)
    axes.plot(pooled.actual_s, pooled.predicted_s, color=colour_of(name), linewidth=0, marker="o", markersize=2.6)
    distance = "–" if pooled.ks is None else f"{pooled.ks:.2f}"
    title = f"{name}\nKS {distance}\nerror {duration(pooled.mae_s)}"
    axes.set_title(title, loc="left", fontsize="medium", color=colour_of(name), pad=4)
    is_left, is_lowest = has_labels
    axes.tick_params(labelleft=is_left, labelbottom=is_lowest)
    if is_left:
        axes.set_ylabel("predicted", color=MUTED)
    if is_lowest:
        axes.set_xlabel("actual", color=MUTED)


def _draw_errors(axes: Axes, shown: Mapping[str, Pooled]) -> None:
    high = max(float(one.error_s.max()) for one in shown.values()) or 1.0
    least = min((float(e) for one in shown.values() for e in one.error_s if e > 0), default=high)
    low = min(max(least, high * LEAST_SHARE), high / 10)
    log_time_axis(axes, "y", low / 1.3, high * 1.3, n_ticks=4)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=GRID)
    ends = []
    for name, pooled in shown.items():
        errors = np.maximum(pooled.error_s, low)
        axes.plot(pooled.percentiles, errors, color=colour_of(name), linestyle=line_of(name), linewidth=1.4)
        ends.append(EndLabel(name, float(errors[-1]), colour_of(name)))
    axes.set_xlim(1, 99)
    axes.xaxis.set_major_locator(FixedLocator(list(PERCENTILE_TICKS)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("percentile of all runs", color=MUTED)
    axes.set_ylabel("error", color=MUTED)
    label_ends(axes, ends)
