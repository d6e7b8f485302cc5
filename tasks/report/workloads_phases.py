"""Figure 4 of the paper for any runs: the phases of their counters side by side, as levels on the learned scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tasks.quantities import number
from tasks.report.direct_labels import INSIDE, write
from tasks.report.style import INK, MUTED, is_narrow, new_figure, plain_label, whorl_style
from tasks.report.workloads_levels import THICKNESS, draw_key, draw_row
from tasks.report.workloads_moved import movement, pick_counters
from tasks.report.workloads_run_phases import RunPhases, on_counters
from tasks.report.workloads_units import time_unit
from tasks.workloads.telemetry import OWN_PREFIX

N_ROWS, PER_FAMILY = 14, 3
ROW_IN, HEAD_IN, TITLE_IN, FOOT_IN = 0.185, 0.34, 0.46, 0.5
TICKS_IN = 0.26  # under the panels that are not the last
GAP_IN = 0.26
NAMES_IN = {False: 2.5, True: 1.62}
NAME_CHARS = {False: 29, True: 18}
COLUMNS = {False: 3, True: 1}
CHAR_IN = 0.09


@dataclass(frozen=True)
class PhasesOfRuns:
    """runs: with the same counters, those that are drawn; n_counters: that were compared to choose them."""

    runs: tuple[RunPhases, ...]
    n_counters: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n = len(self.runs)
        shown = len(self.runs[0].counters) if self.runs else 0
        return f"n = {n} run{'' if n == 1 else 's'}; {shown} of {self.n_counters:,} counters, those that differ most"


def phases_of_runs(runs: Sequence[RunPhases], n_rows: int = N_ROWS) -> PhasesOfRuns:
    """The runs on those of their common counters whose levels lie furthest apart over all their phases."""
    names = sorted(set.intersection(*(set(run.counters) for run in runs))) if runs else []
    common = [on_counters(run, names) for run in runs]
    levels = [np.concatenate([run.levels[c] for run in common]) for c in range(len(names))]
    edges = [_end_to_end([np.diff(run.bounds[c]) for run in common]) for c in range(len(names))]
    places = pick_counters(names, movement(levels, edges), n_rows, per_family=PER_FAMILY)
    shown = sorted((names[place] for place in places), key=_in_order)
    return PhasesOfRuns(tuple(on_counters(run, shown) for run in common), len(names))


def _end_to_end(lengths: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.concatenate(lengths))])


def _in_order(name: str) -> tuple[str, bool]:
    """Counters of one family together, that of the workload's own group after that of the machine."""
    return name.removeprefix(OWN_PREFIX), name.startswith(OWN_PREFIX)


def draw_phases(data: PhasesOfRuns, width_in: float) -> Figure | None:
    """A panel a run, a row a counter, a cell a phase as long as it lasted. None without a counter that varies."""
    if not data.runs or not data.runs[0].counters:
        return None
    narrow, counters = is_narrow(width_in), data.runs[0].counters
    n_columns = min(len(data.runs), COLUMNS[narrow])
    n_lines = -(-len(data.runs) // n_columns)
    tall_in = ROW_IN * len(counters)
    height_in = HEAD_IN + n_lines * (TITLE_IN + tall_in + TICKS_IN) + FOOT_IN - TICKS_IN
    panel_in = (width_in - NAMES_IN[narrow] - 0.15 - GAP_IN * (n_columns - 1)) / n_columns
    unit_s, unit = time_unit(max(run.duration_s for run in data.runs))
    with whorl_style():
        figure = new_figure(width_in, height_in)
        draw_key(figure, 0.08, 0.08)
        for place, run in enumerate(data.runs):
            line, column = divmod(place, n_columns)
            bottom_in = height_in - HEAD_IN - line * (TITLE_IN + tall_in + TICKS_IN) - TITLE_IN - tall_in
            left_in = NAMES_IN[narrow] + column * (panel_in + GAP_IN)
            axes = figure.add_axes(
                (left_in / width_in, bottom_in / height_in, panel_in / width_in, tall_in / height_in)
            )
            _draw_run(axes, run, unit_s, int(panel_in / CHAR_IN))
            axes.set_xlim(0, max(run.duration_s for run in data.runs) / unit_s)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, steps=[1, 2, 5, 10]))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
            if column == 0:
                for row, name in enumerate(counters):
                    write(axes, plain_label(name, NAME_CHARS[narrow]), (0, row), (-5, 0), INK, ha="right")
        at = (NAMES_IN[narrow] + (width_in - NAMES_IN[narrow] - 0.15) / 2) / width_in
        figure.text(at, 0.08 / height_in, f"{unit} after the start", color=MUTED, ha="center", va="bottom")
    return figure


def _draw_run(axes: Axes, run: RunPhases, unit_s: float, most_chars: int) -> None:
    for row, (edges, levels) in enumerate(zip(run.bounds, run.levels, strict=True)):
        draw_row(axes, row, edges * run.interval_s / unit_s, levels, THICKNESS)
    axes.set_ylim(len(run.counters) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=2, pad=2)
    title, below = (run.workload, run.input) if run.workload else (run.run_id, None)
    write(axes, plain_label(title, most_chars), (0, 1), (0, 16 if below else 3), INK, at=INSIDE, va="bottom")
    if below:
        write(axes, plain_label(below, most_chars), (0, 1), (0, 3), MUTED, at=INSIDE, va="bottom")
