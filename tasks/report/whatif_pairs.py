"""Predicted beside measured change: runs that were really done again with the change, each with its unchanged twin."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from tasks.jobs.normalisation import Floats
from tasks.quantities import digits, share
from tasks.report.direct_labels import RIGHT_OF_ROW, write
from tasks.report.style import BLUE, INK, MUTED, ORANGE, is_narrow, new_figure, plain_label, spaced_ticks, whorl_style

HEIGHT_IN = {False: 4.3, True: 3.9}
HEAD_IN = {False: 0.5, True: 0.68}
LEFT_IN, RIGHT_IN, FOOT_IN = 0.86, 1.15, 0.56
MOST_DOTS = 400
N_BINS, LEAST_IN_BIN = 6, 5
TICKS = ((1.0, 0.5, 2.0, 0.1, 10.0), (0.2, 5.0, 0.8, 1.25, 0.05, 20.0, 50.0, 0.02), (0.9, 1.1, 0.95, 1.05, 1.5, 0.67))
LEAST_SPAN = 1.3  # from 1 to the nearest end of an axis
NAME_CHARS = {False: 80, True: 42}
NEAR = 0.09  # of the height: words closer than this would meet
OUTER = 0.005  # share of the pairs at each end that may stand on the edge


@dataclass(frozen=True)
class PairChanges:
    """predicted, measured: (n,) runtime after over before, above 0; 1 is no change. right_share: of the n_directed
    pairs that changed notably, those whose direction was right, with its interval (low, high); None if unknown."""

    predicted: Floats
    measured: Floats
    scenario: str
    right_share: float | None = None
    right_interval: tuple[float, float] | None = None
    n_directed: int | None = None

    @property
    def n(self) -> int:
        """Pairs."""
        return len(self.measured)

    @property
    def bins(self) -> list[tuple[float, float, float, float]]:
        """Of pairs in order of prediction, cut into parts alike in size: median predicted; 25 %, median, 75 % measured.

        As many parts as have LEAST_IN_BIN pairs, at most N_BINS; none for fewer pairs."""
        n_bins = min(N_BINS, self.n // LEAST_IN_BIN)
        if not n_bins:
            return []
        order = np.argsort(self.predicted, kind="stable")
        found = []
        for part in np.array_split(order, n_bins):
            low, middle, high = np.quantile(self.measured[part], [0.25, 0.5, 0.75])
            found.append((float(np.median(self.predicted[part])), float(low), float(middle), float(high)))
        return found

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        drawn = f", {MOST_DOTS:,} of them drawn" if self.n > MOST_DOTS else ""
        return f"n = {self.n:,} matched pairs{drawn}; thick: median and middle half of pairs predicted alike"


def draw_pairs(pairs: PairChanges, width_in: float) -> Figure | None:
    """Measured over predicted factor, both logarithmic, with the lines of no change and of a right prediction.

    None without pairs."""
    if not pairs.n:
        return None
    narrow = is_narrow(width_in)
    with whorl_style():
        figure = new_figure(width_in, HEIGHT_IN[narrow], top_in=HEAD_IN[narrow])
        figure.subplots_adjust(
            left=LEFT_IN / width_in, right=1 - RIGHT_IN / width_in, bottom=FOOT_IN / HEIGHT_IN[narrow]
        )
        axes = figure.subplots()
        x, y = _limits(pairs.predicted), _limits(pairs.measured)
        _factor_axes(axes, x, y, narrow)
        drawn = np.linspace(0, pairs.n - 1, min(pairs.n, MOST_DOTS)).round().astype(int)
        measured, predicted = np.clip(pairs.measured[drawn], *y), np.clip(pairs.predicted[drawn], *x)
        axes.scatter(predicted, measured, s=11, color=BLUE, alpha=0.5, linewidths=0, clip_on=False)
        _draw_lines(axes, x, y)
        for at, low, middle, high in pairs.bins:
            axes.plot([at, at], np.clip([low, high], *y), color=INK, linewidth=2.4, solid_capstyle="butt")
            axes.plot([at], np.clip([middle], *y), marker="o", markersize=6.5, color=INK)
        axes.set_xlabel("predicted change", color=MUTED)
        axes.set_ylabel("measured change of runtime", color=MUTED)
        name = plain_label(pairs.scenario, NAME_CHARS[narrow])
        figure.text(0.02, 1 - 0.06 / HEIGHT_IN[narrow], name, va="top", ha="left")
        words = _right_in_words(pairs, narrow)
        figure.text(0.02, 1 - 0.25 / HEIGHT_IN[narrow], words, va="top", ha="left", color=MUTED)
    return figure


def _limits(factors: Floats) -> tuple[float, float]:
    low, high = np.quantile(factors, [OUTER, 1 - OUTER])
    return min(float(low) / 1.05, 1 / LEAST_SPAN), max(float(high) * 1.05, LEAST_SPAN)


def _factor_axes(axes: Axes, x: tuple[float, float], y: tuple[float, float], narrow: bool) -> None:
    axes.set(xscale="log", yscale="log", xlim=x, ylim=y)
    for axis, limits, n_ticks in ((axes.xaxis, x, 3 if narrow else 7), (axes.yaxis, y, 6)):
        axis.set_major_locator(FixedLocator(spaced_ticks(*limits, n_ticks, TICKS)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"× {digits(value)}"))
    axes.axvline(1, color=MUTED, linewidth=0.8, linestyle=":")


def _draw_lines(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """No change, which is what predicting nothing would say, and measured as predicted; named at the right."""
    axes.axhline(1, color=MUTED, linewidth=1.2)
    axes.plot(x, x, color=ORANGE, linewidth=1.2, linestyle="--", scalex=False, scaley=False)
    write(axes, "no change", (1, 1), (5, 0), MUTED, at=RIGHT_OF_ROW)
    end = min(max(x[1], y[0]), y[1])
    is_close = abs(np.log(end)) < NEAR * np.log(y[1] / y[0])
    write(axes, "as predicted", (1, end), (5, 13 if is_close else 0), ORANGE, at=RIGHT_OF_ROW)


def _right_in_words(pairs: PairChanges, narrow: bool) -> str:
    if pairs.right_share is None:
        return "share of right directions: not known"
    interval = ""
    if pairs.right_interval is not None:
        low, high = pairs.right_interval
        interval = f" ({100 * low:.0f}–{100 * high:.0f} %)"
    join = "\n" if narrow else " "
    of = f"{pairs.n:,} pairs" if pairs.n_directed is None else f"{pairs.n_directed:,} pairs that changed"
    return f"the direction was right for {share(pairs.right_share)}{interval}{join}of {of}"
