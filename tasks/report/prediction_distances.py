"""How far the predicted distribution of each job lies from its runs: one dot a job, one row a predictor."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.jobs.normalisation import Floats
from tasks.jobs.scores import GroupDistance
from tasks.report.direct_labels import INSIDE, RIGHT_OF_ROW, write
from tasks.report.prediction_colours import colour_of
from tasks.report.style import GRID, INK, MUTED, is_narrow, new_figure, whorl_style

ROW_IN, HEAD_IN, FOOT_IN = 0.62, 0.3, 0.56
LEFT_IN, MEAN_IN = 0.82, 0.55
MOST_DOTS = 250
SPREAD = 0.27  # of a row, up and down
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class DistanceComparison:
    """distances: by the name of the predictor, in the order shown (distances.ks_by_group)."""

    distances: Mapping[str, GroupDistance]

    @property
    def shown(self) -> dict[str, GroupDistance]:
        """Those that have a job with enough runs."""
        return {name: one for name, one in self.distances.items() if one.n_groups}

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        one = max(self.distances.values(), key=lambda found: found.n_groups, default=None)
        if one is None or not one.n_groups:
            return "n = 0 jobs"
        small = f"; {one.n_small:,} jobs with too few runs left out" if one.n_small else ""
        return f"n = {one.n_groups:,} jobs, {one.n_runs:,} runs{small}"


def draw_distances(comparison: DistanceComparison, width_in: float) -> Figure | None:
    """Dots by distance, 0 is right; the tick is the mean, written beside. None if no job has enough runs."""
    shown = comparison.shown
    if not shown:
        return None
    with whorl_style():
        height_in = HEAD_IN + ROW_IN * len(shown) + FOOT_IN
        figure = new_figure(width_in, height_in, top_in=HEAD_IN)
        figure.subplots_adjust(left=LEFT_IN / width_in, right=1 - MEAN_IN / width_in, bottom=FOOT_IN / height_in)
        axes = figure.subplots()
        for row, (name, found) in enumerate(shown.items()):
            _draw_row(axes, row, name, found)
        axes.set_yticks(range(len(shown)), list(shown))
        for label, name in zip(axes.get_yticklabels(), shown, strict=True):
            label.set_color(colour_of(name))
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlim(0, min(1.0, 1.05 * max(float(one.by_group.max()) for one in shown.values()) + 0.02))
        axes.locator_params(axis="x", nbins=4 if is_narrow(width_in) else 8)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID)
        write(axes, "mean", (1, 1), (6, 4), MUTED, at=INSIDE, va="bottom")
        axes.set_xlabel("KS distance of a job's runs", color=MUTED)
    return figure


def _draw_row(axes: Axes, row: int, name: str, found: GroupDistance) -> None:
    colour, values = colour_of(name), _thinned(found.by_group)
    places = np.modf((np.arange(len(values)) + 0.5) * GOLDEN)[0]  # even, and the same each time
    axes.scatter(values, row + SPREAD * (2 * places - 1), s=9, color=colour, alpha=0.45, linewidths=0, clip_on=False)
    mean = float(found.by_group.mean())
    axes.plot([mean, mean], [row - 0.4, row + 0.4], color=INK, linewidth=2)
    write(axes, f"{mean:.2f}", (1, row), (6, 0), INK, at=RIGHT_OF_ROW)


def _thinned(values: Floats) -> Floats:
    """At most MOST_DOTS of them, evenly over their order: the row looks as it would with all."""
    ordered = np.sort(np.asarray(values, dtype=float))
    if len(ordered) <= MOST_DOTS:
        return ordered
    return np.asarray(ordered[np.linspace(0, len(ordered) - 1, MOST_DOTS).round().astype(int)])
