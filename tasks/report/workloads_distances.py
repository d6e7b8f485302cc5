"""Table IV of the paper as a figure: how far runs of a workload lie from each other, and from runs of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tasks.report.direct_labels import INSIDE, write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style
from tasks.report.workloads_units import short_number
from tasks.workloads.similarity.thresholds import Spread, spread_by_workload, spread_of
from tasks.workloads.telemetry import FloatArray

ROW_IN, HEAD_IN, FOOT_IN, GAP_IN = 0.3, 0.5, 0.56, 0.25
NAMES_IN = {False: 1.75, True: 1.3}
NAME_CHARS = {False: 22, True: 16}
APART = 0.15  # of a row: the workload's own distances lie above those to others
TITLES = {"ed": "Euclidean (ED)", "dtw": "dynamic time warping (DTW)"}


@dataclass(frozen=True)
class WorkloadDistances:
    """by: of each distance (`ed`, `dtw`) and workload, its spread among its own runs, and to all other runs.

    None: a workload with one run has no own distance, one without others none to them."""

    by: Mapping[str, Mapping[str, tuple[Spread | None, Spread | None]]]
    n_runs: int

    @property
    def workloads(self) -> list[str]:
        """All that have any distance, in the order given."""
        return list(dict.fromkeys(name for one in self.by.values() for name in one))

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n_pairs = sum(own.n for own, _ in next(iter(self.by.values()), {}).values() if own)
        return f"n = {self.n_runs:,} runs of {len(self.workloads)} workloads, {n_pairs:,} pairs of the same workload"


def spreads_of(distances: FloatArray, workloads: Sequence[str]) -> dict[str, tuple[Spread | None, Spread | None]]:
    """Of each workload the spread of the distances among its own runs, and to all runs of others.

    distances: (n, n), symmetric."""
    own, labels = spread_by_workload(distances, workloads), np.asarray(workloads)
    found: dict[str, tuple[Spread | None, Spread | None]] = {}
    for name in sorted(set(workloads)):
        is_it = labels == name
        found[name] = own.get(name), spread_of(distances[np.ix_(is_it, ~is_it)].ravel())
    return found


def draw_distances_of_workloads(data: WorkloadDistances, width_in: float) -> Figure | None:
    """A row a workload: blue mean ± deviation among its own runs, orange to runs of others. None without any."""
    names, narrow, kinds = data.workloads, is_narrow(width_in), list(data.by)
    if not names:
        return None
    n_across, n_down = (1, len(kinds)) if narrow else (len(kinds), 1)
    tall_in = ROW_IN * len(names)
    height_in = n_down * (HEAD_IN + tall_in + FOOT_IN)
    left_in = NAMES_IN[narrow]
    panel_in = (width_in - left_in - 0.2 - GAP_IN * (n_across - 1)) / n_across
    with whorl_style():
        figure = new_figure(width_in, height_in)
        for place, kind in enumerate(kinds):
            across, down = (0, place) if narrow else (place, 0)
            bottom_in = height_in - (down + 1) * (HEAD_IN + tall_in + FOOT_IN) + FOOT_IN
            at_in = left_in + across * (panel_in + GAP_IN)
            axes = figure.add_axes((at_in / width_in, bottom_in / height_in, panel_in / width_in, tall_in / height_in))
            _draw_panel(axes, names, data.by[kind], TITLES.get(kind, kind))
            if across == 0:
                for row, name in enumerate(names):
                    write(axes, plain_label(name, NAME_CHARS[narrow]), (0, row), (-6, 0), INK, ha="right")
    return figure


def _draw_panel(
    axes: Axes, names: Sequence[str], spreads: Mapping[str, tuple[Spread | None, Spread | None]], title: str
) -> None:
    far = 0.0
    for row, name in enumerate(names):
        for spread, colour, shift in zip(spreads.get(name, (None, None)), (BLUE, ORANGE), (-APART, APART), strict=True):
            if spread is not None:
                ends = max(0.0, spread.mean - spread.deviation), spread.mean + spread.deviation
                axes.plot(ends, [row + shift] * 2, color=colour, linewidth=2, solid_capstyle="butt")
                axes.plot([spread.mean], [row + shift], "o", color=colour, markersize=5)
                far = max(far, ends[1])
    axes.set(xlim=(0, 1.06 * far or 1.0), ylim=(len(names) - 0.5, -0.5), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=GRID)
    axes.set_xlabel(title, color=MUTED)
    write(axes, "to its own runs", (0, 1), (0, 4), BLUE, at=INSIDE, va="bottom")
    write(axes, "to others", (1, 1), (0, 4), ORANGE, at=INSIDE, ha="right", va="bottom")
