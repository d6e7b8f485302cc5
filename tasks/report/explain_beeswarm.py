"""Figure 9 of the paper: what each feature adds to one shape, a dot a run; orange where the feature is high."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tasks.jobs.pmf import Floats
from tasks.report.bar_rows import row_axes
from tasks.report.direct_labels import INSIDE, write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, whorl_style

N_FEATURES = 10
MOST_DOTS = 120  # a feature: the page stays small
SLICES = 40  # of the width, in which dots are counted
FULL = 12  # dots of a slice that fill the height of a row
GOLDEN = 0.6180339887498949
HEAD_IN, FOOT_IN, RIGHT_IN = 0.34, 0.56, 0.3
LOW, HIGH = 1 / 3, 2 / 3  # ranks of the values that count as low and high
MARGIN = 0.06


@dataclass(frozen=True)
class Swarm:
    """added: (n, p) SHAP values in log-odds of what `towards` names; of_feature: (n, p) values, NaN if unknown.

    words: (p,) of the features; towards: such as "shape 6"."""

    added: Floats
    of_feature: Floats
    words: Sequence[str]
    towards: str

    @property
    def order(self) -> NDArray[np.intp]:
        """Features by their mean size, the largest first; those that add nothing are left out: at most N_FEATURES."""
        sizes = np.abs(self.added).mean(axis=0) if len(self.added) else np.zeros(self.added.shape[1])
        ranked = np.argsort(-sizes, kind="stable")[:N_FEATURES]
        return np.asarray(ranked[sizes[ranked] > 0], dtype=np.intp)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n = len(self.added)
        dots = f", {MOST_DOTS} of them drawn evenly over their order" if n > MOST_DOTS else ""
        return f"n = {n:,} runs{dots}; {len(self.order)} of {len(self.words)} features"


def draw_swarm(swarm: Swarm, width_in: float) -> Figure | None:
    """A row a feature, the one that adds most on top; rows are higher where dots are many. None without any."""
    order = swarm.order
    if not len(order):
        return None
    with whorl_style():
        names = [str(swarm.words[feature]) for feature in order]
        figure, axes, middle, thickness = row_axes(names, width_in, head_in=HEAD_IN, foot_in=FOOT_IN, right_in=RIGHT_IN)
        shown = np.abs(swarm.added[:, order])
        reach = (1 + MARGIN) * float(shown.max())
        axes.set_xlim(-reach, reach)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID)
        for row, feature in enumerate(order):
            _draw_row(axes, row + middle, thickness, swarm.added[:, feature], swarm.of_feature[:, feature])
        _name_colours(axes)
        axes.locator_params(axis="x", nbins=5)
        less, more = ("←", "→") if is_narrow(width_in) else ("← less likely ·", "· more likely →")
        axes.set_xlabel(f"{less} {swarm.towards}, log-odds {more}", color=MUTED)
    return figure


def _name_colours(axes: Axes) -> None:
    """The three colours in words above the rows."""
    write(axes, "feature low", (0, 1), (0, 5), BLUE, at=INSIDE, va="bottom")
    write(axes, "middle", (0.5, 1), (0, 5), MUTED, at=INSIDE, ha="center", va="bottom")
    write(axes, "high", (1, 1), (0, 5), ORANGE, at=INSIDE, ha="right", va="bottom")


def _draw_row(axes: Axes, middle: float, thickness: float, added: Floats, values: Floats) -> None:
    chosen = _even(added)
    ranks = pd.Series(values).rank(pct=True).to_numpy()[chosen]
    if len(np.unique(values[np.isfinite(values)])) < 2:
        ranks = np.full(len(chosen), 0.5)
    x = added[chosen]
    axes.plot([0, 0], [middle - thickness / 2, middle + thickness / 2], color=MUTED, linewidth=0.8, zorder=1)
    y = middle + thickness * _piled(x, axes.get_xlim())
    is_low, is_high = ranks <= LOW, ranks > HIGH
    is_unknown = np.isnan(ranks)
    groups = (
        (is_unknown, GRID, "o"),
        (~is_low & ~is_high & ~is_unknown, MUTED, "o"),
        (is_low, BLUE, "o"),
        (is_high, ORANGE, "o"),
    )
    for mask, colour, marker in groups:
        edge = INK if colour == GRID else "none"
        axes.scatter(x[mask], y[mask], s=9, marker=marker, color=colour, edgecolors=edge, linewidths=0.3, zorder=2)


def _even(added: Floats) -> NDArray[np.intp]:
    """At most MOST_DOTS runs, evenly over the order of what was added, both ends among them."""
    order = np.argsort(added, kind="stable")
    if len(order) <= MOST_DOTS:
        return np.asarray(order)
    return np.asarray(order[np.linspace(0, len(order) - 1, MOST_DOTS).round().astype(int)])


def _piled(x: Floats, limits: tuple[float, float]) -> Floats:
    """Heights within [-0.5, 0.5], the wider the more dots lie around; even, and the same each time."""
    slices = ((x - limits[0]) / (limits[1] - limits[0]) * SLICES).astype(int)
    n = np.bincount(slices)[slices] if len(slices) else np.zeros(0)
    widths = np.where(n > 1, np.sqrt(n / max(FULL, float(n.max(initial=1)))), 0.0)
    return np.asarray(widths * (np.modf((np.arange(len(x)) + 0.5) * GOLDEN)[0] - 0.5))
