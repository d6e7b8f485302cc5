"""Two runs phase by phase, the shorter one at its best offset in the longer one (V-D): how like each other they are."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.quantities import number
from tasks.report.direct_labels import write
from tasks.report.style import BLUE, INK, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style
from tasks.report.workloads_levels import draw_key, draw_row
from tasks.report.workloads_moved import movement, pick_counters
from tasks.report.workloads_run_phases import RunPhases, on_counters
from tasks.report.workloads_units import short_number, time_unit
from tasks.workloads.similarity.distances import Measure, match_phases
from tasks.workloads.telemetry import OWN_PREFIX, FloatArray

N_ROWS, PER_FAMILY = 10, 2
ROW_IN, STRIP = 0.34, 0.36  # a row holds two strips, each so much of it
HEAD_IN, FOOT_IN, BARS_IN, GAP_IN = 1.08, 0.34, 0.5, 0.46
NAMES_IN, RIGHT_IN = {False: 2.5, True: 1.62}, 0.15
NAME_CHARS, RUN_CHARS = {False: 29, True: 18}, {False: 80, True: 41}
MOST_PHASES = {False: 18, True: 9}
BEFORE = 2  # phases shown before the first that is compared, where not all fit
TICK_IN, NUMBER_IN = 0.32, 0.5
WORDS: dict[Measure, str] = {"ed": "Euclidean", "dtw": "DTW, manhattan cost", "dtw_squared": "DTW, squared cost"}


@dataclass(frozen=True)
class Alignment:
    """offset: phases of the longer run before the shorter one begins; distances: (n_compared,) phase by phase.

    distance: of the runs, by `measure`, on all counters; the figure shows those that differ most over both."""

    longer: RunPhases
    shorter: RunPhases
    offset: int
    distances: FloatArray
    distance: float
    measure: str

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n, of = len(self.distances), len(self.longer.workload_bounds) - 1
        return f"n = {n} of {of} phase{'' if of == 1 else 's'} compared on {len(self.longer.counters):,} counters"


def align(one: RunPhases, other: RunPhases, measure: Measure = "dtw") -> Alignment | None:
    """Both runs on their common counters, at the offset with the smallest distance; None without a common one."""
    names = sorted(set(one.counters) & set(other.counters))
    if not names:
        return None
    one, other = on_counters(one, names), on_counters(other, names)
    longer, shorter = (one, other) if len(one.vectors) >= len(other.vectors) else (other, one)
    match = match_phases(longer.vectors, shorter.vectors, measure)
    return Alignment(longer, shorter, match.offset, match.phases, match.distance, WORDS[measure])


def draw_alignment(data: Alignment, width_in: float) -> Figure | None:
    """A column a phase; in each row the upper strip is the longer run and the lower one the shorter; below, distances.

    None without a counter that varies."""
    shown = _shown_counters(data)
    if not shown:
        return None
    narrow, n = is_narrow(width_in), len(data.distances)
    first, last = _shown_phases(data, MOST_PHASES[narrow])
    longer, shorter = on_counters(data.longer, shown), on_counters(data.shorter, shown)
    tall_in = ROW_IN * len(shown)
    height_in = HEAD_IN + tall_in + GAP_IN + BARS_IN + FOOT_IN
    wide_in = width_in - NAMES_IN[narrow] - RIGHT_IN
    with whorl_style():
        figure = new_figure(width_in, height_in)
        left, width = NAMES_IN[narrow] / width_in, wide_in / width_in
        axes = figure.add_axes((left, (FOOT_IN + BARS_IN + GAP_IN) / height_in, width, tall_in / height_in))
        bars = figure.add_axes((left, FOOT_IN / height_in, width, BARS_IN / height_in))
        _draw_strips(axes, longer.workload_levels[first:last], 0, -1)
        begin, end = max(first, data.offset) - data.offset, min(last, data.offset + n) - data.offset
        _draw_strips(axes, shorter.workload_levels[begin:end], data.offset + begin - first, 1)
        axes.set(xlim=(0, last - first), xticks=[])
        for row, name in enumerate(shown):
            write(axes, plain_label(name, NAME_CHARS[narrow]), (0, row), (-5, 0), INK, ha="right")
        every = max(1, ceil((last - first) * TICK_IN / wide_in))
        _time_ticks(axes, data.longer, (first, last), 0, every, is_top=True)
        _time_ticks(axes, data.shorter, (begin, end), data.offset + begin - first, every, is_top=False)
        _draw_bars(bars, data, (first, last), wide_in)
        _write_head(figure, data, narrow)
    return figure


def _shown_counters(data: Alignment) -> list[str]:
    """Those whose levels lie furthest apart over the phases of both runs."""
    names = data.longer.counters
    levels = np.concatenate([data.longer.workload_levels, data.shorter.workload_levels])
    moved = movement(list(levels.T), [np.arange(len(levels) + 1, dtype=np.int64)] * len(names))
    places = pick_counters(names, moved, N_ROWS, per_family=PER_FAMILY)
    return sorted((names[place] for place in places), key=lambda name: (name.removeprefix(OWN_PREFIX), name))


def _shown_phases(data: Alignment, most: int) -> tuple[int, int]:
    """The phases of the longer run that are drawn: all, or those around what is compared."""
    n = len(data.longer.workload_levels)
    if n <= most:
        return 0, n
    first = min(max(0, data.offset - BEFORE), n - most)
    return first, first + most


def _draw_strips(axes: Axes, levels: FloatArray, start: int, side: int) -> None:
    """levels: (n_phases, n_counters); side: -1 above the middle of the row, 1 below it."""
    edges = np.arange(len(levels) + 1) + start
    for row, of_counter in enumerate(levels.T):
        draw_row(axes, row + side * STRIP / 2, edges, of_counter, STRIP)
    axes.set_ylim(levels.shape[1] - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _time_ticks(axes: Axes, run: RunPhases, part: tuple[int, int], start: int, every: int, *, is_top: bool) -> None:
    """When the phases of a run begin, at the edges of its columns: those of the longer above, of the shorter below."""
    unit_s, _ = time_unit(run.duration_s)
    edges = run.workload_bounds[part[0] : part[1] + 1] * run.interval_s / unit_s
    bottom, top = axes.get_ylim()
    for place in range(0, len(edges), every):
        at, words = start + place, number(float(edges[place]))
        if is_top:
            write(axes, words, (at, top), (0, 2), MUTED, ha="center", va="bottom")
        else:
            write(axes, words, (at, bottom), (0, -2), MUTED, ha="center", va="top")


def _draw_bars(axes: Axes, data: Alignment, part: tuple[int, int], wide_in: float) -> None:
    """Distance of each pair of phases, under their column."""
    first, last = part
    places = np.arange(len(data.distances)) + data.offset - first
    inside = (places >= 0) & (places < last - first)
    axes.bar(places[inside] + 0.5, data.distances[inside], 0.6, color=BLUE)
    axes.set_xlim(0, last - first)
    axes.set_ylim(0, 1.55 * max(float(data.distances.max()), 1e-9))
    if wide_in / (last - first) >= NUMBER_IN:
        for place, value in zip(places[inside], data.distances[inside], strict=True):
            write(axes, short_number(float(value)), (place + 0.5, value), (0, 1), INK, ha="center", va="bottom")
    axes.set(xticks=[], yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("distance of the phases that meet", color=MUTED)


def _write_head(figure: Figure, data: Alignment, narrow: bool) -> None:
    height_in = figure.get_size_inches()[1]
    _, unit = time_unit(data.longer.duration_s)
    lines = (
        (f"upper strip: {_title(data.longer)}", INK),
        (f"lower strip: {_title(data.shorter)}", INK),
        (f"distance {short_number(data.distance)} ({data.measure}), offset {data.offset}; edges in {unit}", ORANGE),
    )
    if narrow:
        lines = (
            (f"upper strip: {data.longer.name}", INK),
            (f"lower strip: {data.shorter.name}", INK),
            (f"distance {short_number(data.distance)}, offset {data.offset}; edges in {unit}", ORANGE),
        )
    for place, (words, colour) in enumerate(lines):
        shown = plain_label(words, RUN_CHARS[narrow])
        figure.text(0.02, 1 - (0.05 + 0.18 * place) / height_in, shown, va="top", ha="left", color=colour)
    draw_key(figure, 0.08, 0.64)


def _title(run: RunPhases) -> str:
    return run.name if run.name == run.run_id else f"{run.name} ({run.run_id})"
