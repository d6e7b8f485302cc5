"""Figure 2 of the paper for any run: counters over time, where they change, and how probable each change is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from tasks.report.direct_labels import INSIDE, spread_apart, write
from tasks.report.style import BLUE, DENSITY, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style
from tasks.report.workloads_thinned import thinned
from tasks.report.workloads_units import tick_words, time_unit, whole_percent
from tasks.workloads.identify.phases import bounds_of
from tasks.workloads.telemetry import FloatArray

PANEL_IN, GAP_IN, HEAD_IN, FOOT_IN, LEFT_IN = 0.82, 0.36, 0.62, 0.56, 0.66
HEADROOM, FOOTROOM = 0.42, 0.08  # above and below the values, of their span: room for the probabilities
NAME_CHARS = {False: 84, True: 42}
COUNTER_CHARS = {False: 70, True: 38}
LABEL_IN = 0.5  # least distance of two probabilities
FULL = 0.75  # of a panel's width that labels may fill
MOST_LABELS = 6
MOST_POINTS = 800
MOST_DOTS = 80
ROUNDING = 1e-9
TICKS = MaxNLocator(nbins=3, steps=[1, 2, 5, 10])
BESIDE_IN = 0.03  # from a line to its probability


@dataclass(frozen=True)
class CounterSeries:
    """One counter. values: (n,), NaN missing; changes: (k,) rows of the first sample after each change.

    probabilities: (k,) that there is a change so near; NaN from a method that gives none. unit: of the values."""

    name: str
    unit: str
    values: FloatArray
    changes: NDArray[np.int64]
    probabilities: FloatArray


@dataclass(frozen=True)
class RunSeries:
    """Some counters of one run. at_s: (n,) seconds after the start; n_counters: that the run has in all."""

    run: str
    at_s: FloatArray
    counters: Sequence[CounterSeries]
    n_counters: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n, shown = len(self.at_s), len(self.counters)
        return f"n = {n:,} samples of one run; {shown} of {self.n_counters:,} counters"


def draw_series(run: RunSeries, width_in: float) -> Figure | None:
    """A panel a counter: samples, the level of each phase, and a dashed line at each change. None without a counter."""
    n, narrow = len(run.counters), is_narrow(width_in)
    if not n or not len(run.at_s):
        return None
    with whorl_style():
        height_in = HEAD_IN + n * (PANEL_IN + GAP_IN) - GAP_IN + FOOT_IN
        figure = new_figure(width_in, height_in, top_in=HEAD_IN)
        figure.subplots_adjust(
            left=LEFT_IN / width_in, right=1 - 0.12 / width_in, bottom=FOOT_IN / height_in, hspace=GAP_IN / PANEL_IN
        )
        strips = figure.subplots(n, 1, sharex=True, squeeze=False)[:, 0]
        unit_s, unit = time_unit(float(run.at_s[-1] - run.at_s[0]))
        for axes, counter in zip(strips, run.counters, strict=True):
            _draw_panel(axes, run.at_s / unit_s, counter)
            words = f"{counter.name}, {counter.unit}" if counter.unit else counter.name
            axes.set_title(plain_label(words, COUNTER_CHARS[narrow]), loc="left", fontsize="medium", pad=4)
            _write_probabilities(axes, run.at_s / unit_s, counter)
        strips[-1].set_xlabel(f"{unit} after the start", color=MUTED)
        figure.text(0.02, 1 - 0.06 / height_in, plain_label(run.run, NAME_CHARS[narrow]), va="top", ha="left")
    return figure


def _draw_panel(axes: Axes, times: FloatArray, counter: CounterSeries) -> None:
    edges = _edges(times)
    for start, end in pairwise(bounds_of(counter.changes, len(times))):
        phase = counter.values[start:end]
        if np.isfinite(phase).any():
            level = float(np.nanmean(phase))
            axes.plot([edges[start], edges[end]], [level, level], color=DENSITY[1], linewidth=5, solid_capstyle="butt")
    for change in counter.changes:
        axes.axvline(edges[change], color=ORANGE, linewidth=1.2, linestyle="--")
    points = thinned(times, counter.values, MOST_POINTS)
    axes.plot(*points, color=BLUE, linewidth=1.2, marker="." if len(times) <= MOST_DOTS else "", markersize=4)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(*_limits(counter.values))
    low, high = axes.get_ylim()
    places = [0.0 if abs(tick) < ROUNDING * (high - low) else float(tick) for tick in TICKS.tick_values(low, high)]
    inside = [place for place in places if low <= place <= high]
    axes.set_yticks(inside, tick_words(inside))


def _edges(times: FloatArray) -> FloatArray:
    """Where samples meet: half way between two of them, (n + 1,); a change lies there."""
    if len(times) == 1:
        return np.array([times[0] - 0.5, times[0] + 0.5])
    half = np.diff(times) / 2
    return np.concatenate([[times[0] - half[0]], times[:-1] + half, [times[-1] + half[-1]]])


def _limits(values: FloatArray) -> tuple[float, float]:
    there = values[np.isfinite(values)]
    low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
    span = high - low or max(abs(high), 1.0)
    return low - FOOTROOM * span, high + HEADROOM * span


def _write_probabilities(axes: Axes, times: FloatArray, counter: CounterSeries) -> None:
    """How probable each change is, beside its line; of more than there is room for, how many and the least sure."""
    width_in = axes.get_position().width * axes.figure.get_size_inches()[0]  # type: ignore[union-attr]
    told = np.flatnonzero(np.isfinite(counter.probabilities))
    if len(told) > min(MOST_LABELS, max(1, int(FULL * width_in / LABEL_IN))):
        words = f"{len(told)} changes, least sure {whole_percent(float(counter.probabilities[told].min()))}"
        write(axes, words, (1, 1), (0, 0), ORANGE, at=INSIDE, ha="right", va="top")
        return
    low, high = axes.get_xlim()
    lines_in = (_edges(times)[counter.changes[told]] - low) / (high - low) * width_in
    side = np.where(lines_in + LABEL_IN + BESIDE_IN <= width_in, 1, -1)  # right of its line where there is room
    wanted_in = lines_in + side * (LABEL_IN / 2 + BESIDE_IN)
    places = spread_apart(wanted_in, LABEL_IN, LABEL_IN / 2, width_in - LABEL_IN / 2)
    for place, at_in in zip(told, places, strict=True):
        words = whole_percent(float(counter.probabilities[place]))
        write(axes, words, ((at_in - LABEL_IN / 2) / width_in, 1), (0, 0), ORANGE, at=INSIDE, va="top")
