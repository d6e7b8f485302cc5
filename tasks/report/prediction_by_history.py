"""Figure 7(b) of the paper: accuracy of the label by the number of earlier runs, beside what bounds it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.quantities import share
from tasks.report.direct_labels import EndLabel, label_ends, write
from tasks.report.style import BLUE, DENSITY, GRID, INK, MUTED, ORANGE, is_narrow, new_figure, whorl_style

HEIGHT_IN = 3.9
FOOT_IN = {False: 0.52, True: 0.7}
LABELS_IN = {False: 1.55, True: 0.74}  # right of the axes, by whether the figure is narrow
LEFT_IN = 0.84
THOUSAND = 1000
MARKS = {"model": "o", "ceiling": "_", "history": "s"}


@dataclass(frozen=True)
class AccuracyBand:
    """Runs whose job had so many runs before (`label`, such as 6–10), with the share of right labels.

    ceiling: what an oracle that knows the job's shape would get; history: the label of the job's past.
    None where there is none to compare."""

    label: str
    n: int
    accuracy: float | None
    ceiling: float | None = None
    history: float | None = None


@dataclass(frozen=True)
class AccuracyByHistory:
    """Bands from few to many earlier runs; what: of which n each band counts, such as runs or jobs."""

    bands: Sequence[AccuracyBand]
    what: str = "runs"

    @property
    def n(self) -> int:
        """Runs or jobs over all bands."""
        return sum(band.n for band in self.bands)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n:,} {self.what}"


def draw_accuracy(by_history: AccuracyByHistory, width_in: float) -> Figure:
    """Lines above, named at their ends; bars of counts below, over the same bands."""
    narrow, bands = is_narrow(width_in), by_history.bands
    with whorl_style():
        figure = new_figure(width_in, HEIGHT_IN)
        figure.subplots_adjust(left=LEFT_IN / width_in, right=1 - LABELS_IN[narrow] / width_in, hspace=0.14)
        figure.subplots_adjust(bottom=FOOT_IN[narrow] / HEIGHT_IN)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
        _draw_lines(above, bands, narrow)
        places = np.arange(len(bands))
        below.bar(places, [band.n for band in bands], width=0.62, color=DENSITY[1])
        for place, band in enumerate(bands):
            write(below, _count(band.n, narrow), (place, band.n), (0, 2), INK, ha="center", va="bottom")
        below.set_ylim(0, 1.3 * max(1, *(band.n for band in bands)) if bands else 1)
        below.set_yticks([])
        below.set_ylabel(by_history.what, color=MUTED)
        below.set_xticks(places, [band.label.replace("–", "–\n") if narrow else band.label for band in bands])
        below.tick_params(axis="x", length=0)
        below.set_xlim(-0.5, max(1, len(bands)) - 0.5)
        below.set_xlabel("earlier runs of the job", color=MUTED)
    return figure


def _count(n: int, narrow: bool) -> str:
    """A number of runs; on a phone thousands as k."""
    return f"{n / THOUSAND:,.0f}k" if narrow and n >= 10 * THOUSAND else f"{n:,}"


def _draw_lines(axes: Axes, bands: Sequence[AccuracyBand], narrow: bool) -> None:
    axes.set_ylim(0, 1.02)
    axes.set_xlim(-0.5, max(1, len(bands)) - 0.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=GRID)
    axes.tick_params(axis="x", length=0, labelbottom=False)
    axes.set_ylabel("right labels", color=MUTED)
    lines = (
        ("ceiling", [band.ceiling for band in bands], MUTED, ":"),
        ("model", [band.accuracy for band in bands], BLUE, "-"),
        ("history", [band.history for band in bands], ORANGE, "--"),
    )
    ends = []
    for name, values, colour, style in lines:
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        if not known:
            continue
        axes.plot(*zip(*known, strict=True), color=colour, linestyle=style, marker=MARKS[name], markersize=4.5)
        words = name if narrow else f"{name} {share(known[-1][1])}"
        ends.append(EndLabel(words, known[-1][1], colour))
    label_ends(axes, ends)
