"""Figure 4 of the paper: fingerprints in two dimensions by benchmark type, and their norms within each type.

Types are apart by direction, executions of a type by norm, so there are two panels with the same rows of names between
them: where the fingerprints of a type point to, and how long they are."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from tasks.quantities import share
from tasks.report.direct_labels import INSIDE, Side, write
from tasks.report.nodes_leads import rows_of_names
from tasks.report.nodes_ranking import ratio_ticks
from tasks.report.style import DENSITY, GRID, INK, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style

ROW_IN, LEAST_IN = 0.32, {False: 2.9, True: 2.0}
HEAD_IN, FOOT_IN, LEFT_IN, RIGHT_IN = 0.34, 0.56, 0.1, 0.24
PLANE_IN, NAMES_IN = {False: 3.0, True: 1.15}, {False: 1.75, True: 1.32}
NAME_CHARS = {False: 20, True: 15}
N_TICKS, N_FAR_TICKS = {False: 4, True: 2}, {False: 4, True: 1}
PLACE_OF_FLAGGED: dict[bool, tuple[float, Side]] = {False: (1.0, "right"), True: (0.0, "left")}
SHADES = DENSITY[1:]  # the lightest one is lost on white
MARGIN, NORM_MARGIN, LEAST_RANGE = 0.06, 1.03, 1.02
GOLDEN, HIGH = 0.618, 0.56  # dots of a row lie at different heights within so much of it

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PlaneOfNodes:
    """points: type, x, y, ratio (the norm as a multiple of the median of its type), is_flagged; one row a fingerprint.

    n: fingerprints there are, of which the points may be a part. n_types: benchmarks that they are of, of which those
    with most are drawn. shown: share of the variance of directions that x and y hold."""

    points: pd.DataFrame
    n: int
    n_types: int
    shown: float

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n_drawn, n_types = len(self.points), self.points["type"].nunique()
        of = f" of {self.n:,}" if n_drawn < self.n else ""
        of_types = f" of {self.n_types:,}" if n_types < self.n_types else ""
        kinds = "benchmark" if max(n_types, self.n_types) == 1 else "benchmarks"
        return f"n = {n_drawn:,}{of} fingerprints of {n_types}{of_types} {kinds}; x and y hold {share(self.shown)}"


def draw_plane(data: PlaneOfNodes, width_in: float) -> Figure | None:
    """Directions left, norms right, in rows by type; the darker a dot, the larger its norm among those of its type, and
    orange what was flagged. None without fingerprints."""
    points = data.points.dropna(subset=["x", "y", "ratio"]).reset_index(drop=True)
    if points.empty:
        return None
    narrow = is_narrow(width_in)
    middle = _in_rows(points)
    body_in = max(ROW_IN * len(middle), LEAST_IN[narrow])
    height_in = HEAD_IN + body_in + FOOT_IN
    strips_in = LEFT_IN + PLANE_IN[narrow] + NAMES_IN[narrow]
    with whorl_style():
        figure = new_figure(width_in, height_in)
        plane, strips = (
            figure.add_axes((left / width_in, FOOT_IN / height_in, wide / width_in, body_in / height_in))
            for left, wide in ((LEFT_IN, PLANE_IN[narrow]), (strips_in, width_in - strips_in - RIGHT_IN))
        )
        _draw_directions(plane, points, middle, narrow=narrow)
        _draw_norms(strips, points, [str(name) for name in middle.index], narrow=narrow)
    return figure


def _in_rows(points: pd.DataFrame) -> pd.DataFrame:
    """The middles of the types, x and y, in the order of their rows."""
    middle = points.groupby("type")[["x", "y"]].median()
    shares = []
    for name in ("x", "y"):
        low, high = _limits(points[name].to_numpy(dtype=np.float64))
        shares.append((middle[name].to_numpy(dtype=np.float64) - low) / (high - low))
    return middle.iloc[rows_of_names(shares[0], shares[1])]


def _limits(values: Floats) -> tuple[float, float]:
    """The ends of an axis with some margin. values: (n,)."""
    margin = max(float(np.ptp(values)) * MARGIN, 1e-6)
    return float(values.min()) - margin, float(values.max()) + margin


def _draw_directions(axes: Axes, points: pd.DataFrame, middle: pd.DataFrame, *, narrow: bool) -> None:
    """The dots, and right of them the name of each type in its row, with a line to the middle of its dots."""
    across, up = (points[name].to_numpy(dtype=np.float64) for name in ("x", "y"))
    axes.set_xlim(*_limits(across))
    axes.set_ylim(*_limits(up))
    right, (low, high) = axes.get_xlim()[1], axes.get_ylim()
    for row, (name, place) in enumerate(middle.iterrows()):
        level = 1 - (row + 0.5) / len(middle)
        ends = [place["y"], low + level * (high - low)]
        axes.plot([place["x"], right], ends, color=MUTED, linewidth=0.6, clip_on=False, zorder=1)
        write(axes, plain_label(str(name), NAME_CHARS[narrow]), (1, level), (4, 0), INK, at=INSIDE)
    _draw_dots(axes, across, up, points)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    _head(axes, "Directions")
    if not narrow:
        write(axes, "darker: larger norm", (0, 0), (0, -8), MUTED, at=INSIDE, va="top")
    if n_flagged := int(points["is_flagged"].sum()):
        end, side = PLACE_OF_FLAGGED[narrow]
        write(axes, f"{n_flagged:,} flagged", (end, 0), (0, -8), ORANGE, at=INSIDE, ha=side, va="top")


def _draw_norms(axes: Axes, points: pd.DataFrame, names: list[str], *, narrow: bool) -> None:
    """A row a type: its norms as multiples of their median."""
    ratio = points["ratio"].to_numpy(dtype=np.float64)
    rows = points["type"].map({name: row for row, name in enumerate(names)}).to_numpy(dtype=np.float64)
    heights = (np.arange(len(points)) * GOLDEN % 1 - 0.5) * HIGH
    low, high = min(float(ratio.min()), 1 / LEAST_RANGE) / NORM_MARGIN, max(float(ratio.max()), LEAST_RANGE)
    high *= NORM_MARGIN
    axes.axvline(1, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    _draw_dots(axes, ratio, rows + heights, points)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks = ratio_ticks(low, high, N_TICKS[narrow], far=N_FAR_TICKS[narrow])
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=GRID)
    axes.set_xlabel("÷ median" if narrow else "÷ median; more is better", color=MUTED)
    _head(axes, "Norms")


def _draw_dots(axes: Axes, across: Floats, up: Floats, points: pd.DataFrame) -> None:
    """Each in the same colour in both panels; flagged ones on top. across, up: (n,)."""
    is_flagged = points["is_flagged"].to_numpy(dtype=bool)
    place = points.groupby("type")["ratio"].rank(pct=True).to_numpy(dtype=np.float64)  # above 0, at most 1
    shade = np.minimum((place * len(SHADES)).astype(int), len(SHADES) - 1)
    for number, colour in enumerate(SHADES):
        own = (shade == number) & ~is_flagged
        axes.plot(across[own], up[own], "o", color=colour, markersize=3.4, alpha=0.85, markeredgewidth=0)
    axes.plot(across[is_flagged], up[is_flagged], "o", color=ORANGE, markersize=3.6, alpha=0.85, markeredgewidth=0)


def _head(axes: Axes, words: str) -> None:
    write(axes, words, (0, 1), (0, 6), INK, at=INSIDE, va="bottom").set_fontweight("bold")
