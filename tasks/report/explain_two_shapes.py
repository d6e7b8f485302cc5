"""What speaks for one shape and what for another: what each feature adds where it is low and high."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tasks.jobs.normalisation import Floats
from tasks.report.bar_rows import row_axes
from tasks.report.direct_labels import INSIDE, write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, whorl_style

N_FEATURES = 10
HEAD_IN, FOOT_IN, RIGHT_IN = 0.34, 0.56, 0.3
MARGIN = 0.12
LOW, HIGH = 1 / 3, 2 / 3


@dataclass(frozen=True)
class TwoShapes:
    """difference: (n, p) what each feature adds to the log-odds of `one` over `other`: SHAP of one minus of the other.

    values: (n, p) of the features, NaN if unknown; words: (p,); one, other: such as "shape 0", "shape 2"."""

    difference: Floats
    values: Floats
    words: Sequence[str]
    one: str
    other: str

    @property
    def ends(self) -> Floats:
        """Mean addition over the runs whose feature is in its lowest and in its highest third: (p, 2).

        NaN for a feature that is constant or unknown. Ends that are tied with more runs hold them all."""
        n, p = self.difference.shape
        found = np.full((p, 2), np.nan)
        for feature in range(p if n else 0):
            values = self.values[:, feature]
            known = values[np.isfinite(values)]
            if len(np.unique(known)) < 2:
                continue
            low, high = np.quantile(known, [LOW, HIGH], method="nearest")
            is_low, is_high = values <= min(low, known[known < known.max()].max()), values >= high
            is_high &= ~is_low
            for side, mask in enumerate((is_low, is_high)):
                if mask.any():
                    found[feature, side] = self.difference[mask, feature].mean()
        return found

    @property
    def order(self) -> NDArray[np.intp]:
        """Features by how far apart their ends are, at most N_FEATURES; those without two ends are left out."""
        gaps = np.abs(self.ends[:, 1] - self.ends[:, 0])
        ranked = np.argsort(-np.nan_to_num(gaps), kind="stable")[:N_FEATURES]
        return np.asarray(ranked[np.nan_to_num(gaps)[ranked] > 0], dtype=np.intp)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {len(self.difference):,} runs; means over the lowest and the highest third of each feature"


def draw_two_shapes(shapes: TwoShapes, width_in: float) -> Figure | None:
    """A line a feature from where it is low to where it is high; left speaks for one shape, right for the other.

    None if no feature has two ends."""
    order, ends = shapes.order, shapes.ends
    if not len(order):
        return None
    with whorl_style():
        names = [str(shapes.words[feature]) for feature in order]
        figure, axes, middle, thickness = row_axes(names, width_in, head_in=HEAD_IN, foot_in=FOOT_IN, right_in=RIGHT_IN)
        reach = (1 + MARGIN) * float(np.nanmax(np.abs(ends[order])))
        axes.set_xlim(reach, -reach)  # what speaks for `one` stands on the left
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID)
        for row, feature in enumerate(order):
            _draw_row(axes, row + middle, thickness, ends[feature])
        axes.set_xticks([])
        if is_narrow(width_in):
            left, right = f"← {shapes.one}", f"{shapes.other} →"
        else:
            left, right = f"← speaks for {shapes.one}", f"speaks for {shapes.other} →"
        write(axes, left, (0, 0), (0, -5), INK, at=INSIDE, va="top")
        write(axes, right, (1, 0), (0, -5), INK, at=INSIDE, ha="right", va="top")
        write(axes, "feature low", (0, 1), (0, 5), BLUE, at=INSIDE, va="bottom")
        write(axes, "feature high", (1, 1), (0, 5), ORANGE, at=INSIDE, ha="right", va="bottom")
    return figure


def _draw_row(axes: Axes, at: float, thickness: float, ends: Floats) -> None:
    axes.plot([0, 0], [at - thickness / 2, at + thickness / 2], color=MUTED, linewidth=0.8)
    axes.plot(ends, [at, at], color=MUTED, linewidth=1.2, zorder=2)
    for value, colour in zip(ends, (BLUE, ORANGE), strict=True):
        axes.plot([value], [at], marker="o", markersize=6.5, color=colour, linewidth=0, zorder=3)
