"""Figure 9 of the paper: what each feature adds to one shape, a dot a run; orange where the feature is high."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tasks.jobs.normalisation import Floats
from tasks.report.bar_rows import row_axes
from tasks.report.direct_labels import INSIDE, write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, whorl_style

N_FEATURES = 10
HEAD_IN, FOOT_IN, RIGHT_IN = 0.34, 0.56, 0.3
MARGIN = 0.06
MIDDLE, UNKNOWN = "#aab2bb", "none"
LOW_TO_HIGH = LinearSegmentedColormap.from_list("low to high", [BLUE, MIDDLE, ORANGE])
DOT = 7.0
DOTS_DPI = 160  # dots are an image within the drawing: thousands of marks would make a page large
SHAP_ROW = 0.4  # half of what shap.plots.beeswarm gives a row, of the distance between rows
MISSING_COLOUR = (0x77 / 255,) * 3  # in which it draws runs whose feature is unknown


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
        return f"n = {len(self.added):,} runs; {len(self.order)} of {len(self.words)} features"


def draw_swarm(swarm: Swarm, width_in: float) -> Figure | None:
    """A row a feature, the one that adds most on top; rows are higher where dots are many. None without any.

    The dots are those of shap.plots.beeswarm."""
    order = swarm.order
    if not len(order):
        return None
    with whorl_style():
        names = [str(swarm.words[feature]) for feature in order]
        figure, axes, middle, thickness = row_axes(names, width_in, head_in=HEAD_IN, foot_in=FOOT_IN, right_in=RIGHT_IN)
        figure.set_dpi(DOTS_DPI)
        _draw_dots(axes, swarm.added[:, order], swarm.of_feature[:, order])
        _into_rows(axes, len(order), middle, thickness)
        low, high = min(0.0, float(swarm.added[:, order].min())), max(0.0, float(swarm.added[:, order].max()))
        axes.set_xlim(low - MARGIN * (high - low), high + MARGIN * (high - low))
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID)
        for row in np.arange(len(order)) + middle:
            axes.plot([0, 0], [row - thickness / 2, row + thickness / 2], color=MUTED, linewidth=0.8, zorder=1)
        _name_colours(axes)
        axes.locator_params(axis="x", nbins=5)
        less, more = ("←", "→") if is_narrow(width_in) else ("← less likely ·", "· more likely →")
        axes.set_xlabel(f"{less} {swarm.towards}, log-odds {more}", color=MUTED, fontsize="medium")
    return figure


def _draw_dots(axes: Axes, added: Floats, of_feature: Floats) -> None:
    """The rows of shap.plots.beeswarm, (n, p) each, the first feature at 0."""
    # takes seconds: nobody who does not ask for this figure waits for it
    from shap import Explanation  # type: ignore[import-untyped, unused-ignore]
    from shap.plots import beeswarm  # type: ignore[import-untyped, unused-ignore]

    p = added.shape[1]
    asked = Explanation(values=added, data=of_feature, feature_names=[str(feature) for feature in range(p)])
    with _same_each_time():
        beeswarm(
            asked,
            max_display=p,
            order=list(range(p))[::-1],
            color=LOW_TO_HIGH,
            axis_color=INK,
            ax=axes,
            show=False,
            color_bar=False,
            s=DOT,
            plot_size=None,
            group_remaining_features=False,
        )


@contextmanager
def _same_each_time() -> Iterator[None]:
    """The beeswarm shuffles by NumPy's global generator: seeded here, and left as it was found."""
    state = np.random.get_state()
    np.random.seed(0)
    try:
        yield
    finally:
        np.random.set_state(state)


def _into_rows(axes: Axes, n: int, middle: float, thickness: float) -> None:
    """Move the dots to where our rows are, and take away what shap writes beside them."""
    for line in list(axes.lines):
        line.remove()
    axes.set_yticks([])
    axes.set_ylim(n - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize="medium")
    for dots in axes.collections:
        places = np.asarray(dots.get_offsets(), dtype=float)
        rows = np.rint(places[:, 1])
        within = (places[:, 1] - rows) * thickness / (2 * SHAP_ROW)
        dots.set_offsets(np.column_stack([places[:, 0], rows + middle + within]))
        dots.set_rasterized(True)
        if isinstance(dots, PathCollection) and dots.get_array() is None and _is_missing(dots):
            dots.set(facecolor=UNKNOWN, edgecolor=MUTED, linewidth=0.5)


def _is_missing(dots: PathCollection) -> bool:
    colours = np.atleast_2d(np.asarray(dots.get_facecolor(), dtype=float))
    return bool(len(colours) and np.allclose(colours[0, :3], MISSING_COLOUR))


def _name_colours(axes: Axes) -> None:
    """The three colours in words above the rows."""
    write(axes, "feature low", (0, 1), (0, 5), BLUE, at=INSIDE, va="bottom")
    write(axes, "middle", (0.5, 1), (0, 5), MUTED, at=INSIDE, ha="center", va="bottom")
    write(axes, "high", (1, 1), (0, 5), ORANGE, at=INSIDE, ha="right", va="bottom")
