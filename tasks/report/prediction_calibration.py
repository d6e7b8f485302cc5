"""Whether predicted probabilities can be believed: PIT values as a histogram, and what central intervals cover."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from tasks.jobs.normalisation import Floats
from tasks.quantities import share
from tasks.report.style import BLUE, DENSITY, GRID, MUTED, ORANGE, is_narrow, new_figure, whorl_style

N_BINS = 20
Z = 1.645  # of a 90 % band around what chance alone would give
LEVELS = tuple((np.arange(1, 20) / 20).tolist())
WRITTEN_LEVELS = (0.5, 0.9)
PANEL_IN = 2.3
TITLE_IN = 0.34
FOOT_IN = 0.56
LEFT_IN, RIGHT_IN = 0.72, 0.32


@dataclass(frozen=True)
class CalibrationCheck:
    """pit: (n,) probability that was predicted to lie below each run (scores.pit_values); predictor: whose."""

    pit: Floats
    predictor: str = "model"

    @property
    def n(self) -> int:
        """Runs."""
        return len(self.pit)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n:,} runs; band: 90 % of what chance alone would give"

    def coverage(self, level: float) -> float:
        """Share of the runs inside their central interval of this level. Raises ValueError without runs."""
        if not self.n:
            raise ValueError("no runs to cover")
        return float((np.abs(np.asarray(self.pit) - 0.5) <= level / 2).mean())


def draw_calibration(check: CalibrationCheck, width_in: float) -> Figure | None:
    """Two panels, beside or (narrow) below one another; None without runs."""
    if not check.n:
        return None
    narrow = is_narrow(width_in)
    with whorl_style():
        n_rows = 2 if narrow else 1
        height_in = n_rows * (PANEL_IN + TITLE_IN + FOOT_IN)
        figure = new_figure(width_in, height_in, top_in=TITLE_IN)
        figure.subplots_adjust(
            bottom=FOOT_IN / height_in, hspace=(TITLE_IN + FOOT_IN) / PANEL_IN, wspace=0.34, left=LEFT_IN / width_in
        )
        figure.subplots_adjust(right=1 - RIGHT_IN / width_in)
        left, right = figure.subplots(n_rows, 3 - n_rows).ravel()
        _draw_pit(left, check)
        _draw_coverage(right, check)
    return figure


def _draw_pit(axes: Axes, check: CalibrationCheck) -> None:
    shares = np.histogram(check.pit, bins=N_BINS, range=(0, 1))[0] / check.n
    edges, even = np.linspace(0, 1, N_BINS + 1), 1 / N_BINS
    half = Z * np.sqrt(even * (1 - even) / check.n)
    axes.stairs(shares, edges, fill=True, color=DENSITY[1])
    axes.axhspan(max(0, even - half), even + half, color=GRID, alpha=0.7, linewidth=0, zorder=2)
    axes.axhline(even, color=MUTED, linewidth=0.8, zorder=3)
    axes.stairs(shares, edges, color=BLUE, linewidth=1.2, zorder=4)
    axes.set_ylim(0, 1.25 * max(float(shares.max()), even + half))
    axes.set_xlim(0, 1)
    axes.set_xticks([0.09, 0.5, 0.92], ["sooner", "as predicted", "later"])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.locator_params(axis="y", nbins=4)
    axes.set_title("where runs fell (flat is right)", loc="left", fontsize="medium")
    axes.set_xlabel("place in the prediction", color=MUTED)


def _draw_coverage(axes: Axes, check: CalibrationCheck) -> None:
    found = np.array([check.coverage(level) for level in LEVELS])
    levels = np.array(LEVELS)
    half = Z * np.sqrt(levels * (1 - levels) / check.n)
    axes.fill_between(levels, levels - half, levels + half, color=GRID, alpha=0.7, linewidth=0)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8)
    axes.plot(levels, found, color=BLUE, linewidth=1.6)
    for place, level in enumerate(WRITTEN_LEVELS):
        covered = check.coverage(level)
        axes.plot([level], [covered], color=ORANGE, marker="o", markersize=5)
        words = f"{100 * level:.0f} % holds {share(covered)}"
        axes.text(0.98, 0.06 + 0.1 * place, words, transform=axes.transAxes, ha="right", color=ORANGE)
    axes.set(xlim=(0, 1), ylim=(0, 1.08))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_title("runs inside the interval", loc="left", fontsize="medium")
    axes.set_xlabel("predicted for the interval", color=MUTED)
