"""What ran when, as runs were identified: a row a workload, a mark a run, orange where it is not what it should be."""

from collections import Counter as Tally
from collections.abc import Collection
from dataclasses import dataclass

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tasks.report.bar_rows import row_axes
from tasks.report.date_ticks import date_axis
from tasks.report.direct_labels import INSIDE, RIGHT_OF_ROW, write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, whorl_style
from tasks.workloads.telemetry import FloatArray

MOST_RUNS = 300  # the latest
MOST_ROWS = 14
UNKNOWN, OTHERS = "unknown", "others"
HEAD_IN, FOOT_IN, RIGHT_IN = 0.34, 0.56, 0.6
STRENGTH = (0.25, 0.75)  # of the colour where it is not sure at all, and what full confidence adds
MARGIN = 0.03
N_TICKS = {False: 7, True: 4}


@dataclass(frozen=True)
class RunsOverTime:
    """Runs in their order. called: (n,) workload, or unknown; confidence: (n,) 0 to 1; is_odd: (n,) not what should be.

    started_at: (n,) UTC; None where not every run says when it ran."""

    called: tuple[str, ...]
    confidence: FloatArray
    is_odd: NDArray[np.bool_]
    started_at: pd.DatetimeIndex | None

    @property
    def rows(self) -> list[str]:
        """Workloads by name, at most MOST_ROWS, those of the most runs; then others, and unknown."""
        tally = Tally(name for name in self.called if name != UNKNOWN)
        most = sorted(tally, key=lambda name: (-tally[name], name))[:MOST_ROWS]
        rest = [OTHERS] if len(tally) > len(most) else []
        return [*sorted(most), *rest, *([UNKNOWN] if UNKNOWN in self.called else [])]

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {len(self.called):,} identified runs, {int(self.is_odd.sum()):,} not what they should be"


def runs_over_time(found: pd.DataFrame, odd: Collection[str] = ()) -> RunsOverTime:
    """The latest of some identified runs. found: run_id, workload, is_known, confidence, label, started_at.

    odd: ids of runs that have raised an alarm; unknown runs, and those with another label, are odd too."""
    ordered = found.sort_values(["started_at", "run_id"], na_position="first", kind="stable").tail(MOST_RUNS)
    is_known = ordered["is_known"].to_numpy(dtype=bool)
    names = ordered["workload"].where(is_known, UNKNOWN).astype(str)
    is_mislabelled = ordered["label"].notna() & (ordered["label"] != ordered["workload"])
    at = pd.DatetimeIndex(ordered["started_at"])
    return RunsOverTime(
        tuple(names),
        ordered["confidence"].to_numpy(dtype=float),
        ~is_known | is_mislabelled.to_numpy(dtype=bool) | ordered["run_id"].isin(list(odd)).to_numpy(dtype=bool),
        None if at.hasnans or at.nunique() < 2 else at,
    )


def draw_runs_over_time(data: RunsOverTime, width_in: float) -> Figure | None:
    """Marks over time or, where some run does not say when it ran, in their order. None without a run."""
    rows = data.rows
    if not rows:
        return None
    place = {name: row for row, name in enumerate(rows)}
    with whorl_style():
        figure, axes, middle, _ = row_axes(rows, width_in, head_in=HEAD_IN, foot_in=FOOT_IN, right_in=RIGHT_IN)
        at = np.array([place.get(name, place.get(OTHERS, 0)) for name in data.called]) + middle
        if data.started_at is None:
            over = np.arange(1.0, len(data.called) + 1)
            axes.set_xlabel("identified runs, in their order", color=MUTED)
            axes.locator_params(axis="x", nbins=N_TICKS[is_narrow(width_in)], integer=True)
        else:
            over = mdates.date2num(data.started_at.to_numpy())  # type: ignore[no-untyped-call]
            ends = data.started_at[0], data.started_at[-1]
            date_axis(axes, *ends, most=N_TICKS[is_narrow(width_in)], what="started")
        span = float(over[-1] - over[0]) or 1.0
        axes.set_xlim(over[0] - MARGIN * span, over[-1] + MARGIN * span)
        for row in np.arange(len(rows)) + middle:
            axes.axhline(row, color=GRID, linewidth=0.8, zorder=0)
        for is_odd, colour in ((False, BLUE), (True, ORANGE)):
            own = data.is_odd == is_odd
            colours = to_rgba_array([colour] * int(own.sum()))
            colours[:, 3] = STRENGTH[0] + STRENGTH[1] * np.clip(np.nan_to_num(data.confidence[own]), 0, 1)
            axes.scatter(over[own], at[own], s=26, c=colours, linewidths=0, zorder=2, clip_on=False)
        tally = Tally(at.tolist())
        for row in np.arange(len(rows)) + middle:
            write(axes, f"{tally[row]:,}", (1, row), (6, 0), INK, at=RIGHT_OF_ROW)
        write(axes, "as it should be", (0, 1), (0, 5), BLUE, at=INSIDE, va="bottom")
        write(axes, "not so, or unknown", (1, 1), (-4, 5), ORANGE, at=INSIDE, ha="right", va="bottom")
        write(axes, "runs", (1, 1), (4, 5), MUTED, at=INSIDE, va="bottom")
    return figure
