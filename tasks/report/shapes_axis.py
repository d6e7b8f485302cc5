"""The axis of figures of shapes: bins of normalised runtime, ratios logarithmic, outliers in bars of their own."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from tasks.jobs.normalisation import (
    Bins,
    Floats,
)
from tasks.quantities import duration, number
from tasks.report.style import MUTED

FLOOR = 1e-4  # smaller shares are not drawn
RATIO_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 20, 50, 200, 500)
LEAST_SHOWN = 0.5  # the axis of ratios begins here at the latest
SLOT, SLOT_GAP = 0.035, 0.012  # width of the bar of outliers and the gap before it, of the width of the bins
SHARE_TICKS = {2: (1e-3, 1e-1), 3: (1e-4, 1e-2, 1)}


@dataclass(frozen=True)
class BinAxis:
    """Places of the bins: edges (n_shown + 1,) of those inside that are shown, on the scale of the axis.

    first: the first bin shown; low_slot, high_slot: edges of the bars of outliers, None where there are none."""

    bins: Bins
    edges: Floats
    first: int
    low_slot: tuple[float, float] | None
    high_slot: tuple[float, float]

    @property
    def limits(self) -> tuple[float, float]:
        """Of the axis."""
        return (self.low_slot or (float(self.edges[0]), 0.0))[0], self.high_slot[1]

    @property
    def at_median(self) -> float:
        """Where a run as long as the historic median stands."""
        return 0.0

    def inside(self, pmf: Floats) -> Floats:
        """The shares of the bins shown, never below what a logarithmic axis can show."""
        return np.asarray(np.maximum(np.asarray(pmf)[self.first : -1], FLOOR / 10))

    def outliers(self, pmf: Floats) -> Iterator[tuple[tuple[float, float], float]]:
        """The places and shares of the open bins that hold anything."""
        for slot, mass in ((self.low_slot, pmf[0]), (self.high_slot, pmf[-1])):
            if slot is not None and mass >= FLOOR:
                yield slot, float(mass)

    def label(self, axes: Axes) -> None:
        """Ticks in ratios or times, and what the axis shows."""
        high = self.bins.high
        if self.bins.kind == "ratio":
            inside = [tick for tick in RATIO_TICKS if self.edges[0] <= np.log10(tick) and tick <= 0.6 * high]
            ticks = [float(np.log10(tick)) for tick in inside]
            names = [number(tick) for tick in inside]
            more, what = f"≥ {number(high)}", "runtime / historic median"
        else:
            ticks = [-high / 2, 0.0, high / 2]
            names = [f"−{duration(high / 2)}", "0", f"+{duration(high / 2)}"]
            more, what = "more", "runtime − historic median"
            if self.low_slot is not None:
                ticks, names = [sum(self.low_slot) / 2, *ticks], ["less", *names]
        axes.set_xticks([*ticks, sum(self.high_slot) / 2], [*names, more])
        axes.set_xlabel(what, color=MUTED)


def bin_axis(bins: Bins, pmfs: Floats) -> BinAxis:
    """The axis for some PMFs, (n, n_bins): ratios from the first bin that any of them fills, delta from `low`."""
    inner = bins.edges[1:-1]
    if bins.kind == "delta":
        width = bins.high - bins.low
        low = bins.low - width * SLOT_GAP
        return BinAxis(bins, inner, 1, (low - width * SLOT, low), _slot(bins.high, width))
    is_filled = (np.atleast_2d(pmfs)[:, 1:-1] >= FLOOR).any(axis=0)
    latest = int(np.searchsorted(inner, LEAST_SHOWN, side="right")) - 1
    start = min(int(is_filled.argmax()), latest) if is_filled.any() else latest
    ends = inner[start:].copy()
    if ends[0] <= 0:
        ends[0] = ends[1] / 2  # a logarithm has no 0
    edges = np.log10(ends)
    return BinAxis(bins, edges, start + 1, None, _slot(float(edges[-1]), float(edges[-1] - edges[0])))


def _slot(end: float, width: float) -> tuple[float, float]:
    return end + width * SLOT_GAP, end + width * (SLOT_GAP + SLOT)


def share_axis(axes: Axes, *, n_ticks: int) -> None:
    """A logarithmic axis of shares of runs, from FLOOR to all."""
    axes.set_yscale("log")
    axes.set_ylim(FLOOR, 1)
    axes.yaxis.set_major_locator(FixedLocator(list(SHARE_TICKS[n_ticks])))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
