"""Figure 4 of the paper: fingerprints in two dimensions, by benchmark type, with their norms."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.quantities import share
from tasks.report.direct_labels import LINE_IN, spread_apart, write
from tasks.report.style import DENSITY, INK, MUTED, is_narrow, new_figure, plain_label, whorl_style

HIGH_IN = {False: 4.4, True: 3.6}
NAMES_IN = {False: 1.75, True: 1.2}
NAME_CHARS = {False: 24, True: 16}
MARGIN = 0.06
LEFT_IN, TOP_IN, FOOT_IN = 0.15, 0.15, 0.5


@dataclass(frozen=True)
class PlaneOfNodes:
    """points: type, x, y (-1 to 1), log_norm; one row a fingerprint. shown: share of the variance in x and y."""

    points: pd.DataFrame
    shown: float

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n_types = self.points["type"].nunique()
        return f"n = {len(self.points):,} fingerprints of {n_types} benchmarks; {share(self.shown)} of how they vary"


def draw_plane(data: PlaneOfNodes, width_in: float) -> Figure | None:
    """Directions of fingerprints as dots, the darker the larger their norm among those of their benchmark; each
    benchmark is named beside its dots. None without fingerprints."""
    points = data.points.dropna(subset=["x", "y"])
    if points.empty:
        return None
    narrow = is_narrow(width_in)
    high_in, names_in = HIGH_IN[narrow], NAMES_IN[narrow]
    with whorl_style():
        figure = new_figure(width_in, high_in)
        wide_in, tall_in = width_in - LEFT_IN - names_in, high_in - TOP_IN - FOOT_IN
        axes = figure.add_axes((LEFT_IN / width_in, FOOT_IN / high_in, wide_in / width_in, tall_in / high_in))
        _draw_dots(axes, points)
        _name_types(axes, points, tall_in, narrow=narrow)
        axes.set_xlabel("direction of the fingerprint; darker: larger norm, a better execution", color=MUTED)
    return figure


def _draw_dots(axes: Axes, points: pd.DataFrame) -> None:
    """The dots, those with the largest norms on top."""
    place = points.groupby("type")["log_norm"].rank(pct=True).to_numpy(dtype=np.float64)
    steps = np.minimum((place * len(DENSITY)).astype(int), len(DENSITY) - 1)
    for step, colour in enumerate(DENSITY):
        own = points[steps == step]
        axes.plot(own["x"], own["y"], "o", color=colour, markersize=3.2, alpha=0.8, markeredgewidth=0)
    for low, high, limit in (
        (points["x"].min(), points["x"].max(), axes.set_xlim),
        (points["y"].min(), points["y"].max(), axes.set_ylim),
    ):
        margin = max((high - low) * MARGIN, 1e-6)
        limit(low - margin, high + margin)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_visible(False)


def _name_types(axes: Axes, points: pd.DataFrame, tall_in: float, *, narrow: bool) -> None:
    """Each benchmark's name right of the dots, with a line to the middle of its own."""
    middle = points.groupby("type")[["x", "y"]].median()
    low, high = axes.get_ylim()
    height = ((middle["y"] - low) / (high - low)).to_numpy(dtype=np.float64)
    placed = spread_apart(height, LINE_IN / tall_in, 0.0, 1.0)
    left, right = axes.get_xlim()
    for at, (name, row) in enumerate(middle.iterrows()):
        y = low + placed[at] * (high - low)
        axes.plot([row["x"], right], [row["y"], y], color=MUTED, linewidth=0.6, clip_on=False)
        write(axes, plain_label(str(name), NAME_CHARS[narrow]), (right, y), (4, 0), INK)
    axes.set_xlim(left, right)
