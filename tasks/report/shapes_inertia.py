"""The inertia curve: how far the jobs lie from their shape, by the number of shapes, with the elbow and the choice."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from tasks.jobs.shapes import InertiaCurve
from tasks.quantities import share
from tasks.report.direct_labels import INSIDE, write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, new_figure, whorl_style

HEIGHT_IN = {False: 3.0, True: 2.8}
LINE_PT = 13  # from a line of words to the next
TOP = 1.32  # of the axis: above all shares there is room for two lines
MOST_TICKS = 14


@dataclass(frozen=True)
class InertiaChoice:
    """The curve of n_jobs jobs, and the number of shapes that was chosen."""

    curve: InertiaCurve
    chosen: int
    n_jobs: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n_jobs:,} jobs, {len(self.curve.ks)} numbers of shapes"


def draw_inertia(choice: InertiaChoice, width_in: float) -> Figure:
    """Inertia as a share of that of the fewest shapes; the chord below which the elbow lies deepest."""
    narrow, curve = is_narrow(width_in), choice.curve
    first = curve.inertias[0] or 1.0
    shares = [inertia / first for inertia in curve.inertias]
    with whorl_style():
        figure = new_figure(width_in, HEIGHT_IN[narrow])
        axes = figure.subplots()
        axes.plot(curve.ks, shares, color=BLUE, marker="o", markersize=4, linewidth=1.4)
        axes.set_ylim(0, TOP)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        pad = 0.35 * max(1, len(curve.ks)) / 10
        axes.set_xlim(curve.ks[0] - pad, curve.ks[-1] + pad)
        step = -(-len(curve.ks) // (MOST_TICKS // 2 if narrow else MOST_TICKS))
        axes.xaxis.set_major_locator(FixedLocator(curve.ks[::step]))
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.set_axisbelow(True)
        axes.grid(axis="y", color=GRID)
        _mark(axes, curve, shares, choice.chosen)
        axes.set_xlabel("number of shapes", color=MUTED)
        fewest = f"{curve.ks[0]} shape{'' if curve.ks[0] == 1 else 's'}"
        axes.set_ylabel("inertia" if narrow else f"inertia, {fewest} = 100 %")
    return figure


def _mark(axes: Axes, curve: InertiaCurve, shares: list[float], chosen: int) -> None:
    """Rings around elbow and choice; their words stand above the curve, where nothing else ever is."""
    at = dict(zip(curve.ks, shares, strict=True))
    marks: list[tuple[int, str, str]] = []
    if curve.elbow is not None:
        axes.plot([curve.ks[0], curve.ks[-1]], [shares[0], shares[-1]], color=MUTED, linewidth=0.8, linestyle=":")
        marks.append((curve.elbow, f"elbow{' and choice' if chosen == curve.elbow else ''}: {curve.elbow}", ORANGE))
    if chosen in at and chosen != curve.elbow:
        marks.append((chosen, f"chosen: {chosen} ({share(at[chosen])})", INK))
    for line, (k, words, colour) in enumerate(marks):
        (ring,) = axes.plot([k], [at[k]], marker="o", markersize=11, markerfacecolor="none", linewidth=0)
        ring.set(markeredgecolor=colour, markeredgewidth=1.6)
        write(axes, words, (1, 1), (0, -line * LINE_PT), colour, at=INSIDE, ha="right", va="top")
