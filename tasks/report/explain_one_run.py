"""Why one run is predicted as it is: from what is usual to its prediction, a factor a reason."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from tasks.quantities import number, ratio
from tasks.report.bar_rows import WIDE_BAR, row_axes
from tasks.report.direct_labels import write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, plain_label, whorl_style

HEAD_IN, FOOT_IN, RIGHT_IN = {False: 0.34, True: 0.34}, 0.56, 0.55
N_REASONS = 8
NO_CHANGE = 0.005  # a factor within half a percent of 1 is none
SMALL = (0.5, 2.0)  # factors between are told with two decimals
TITLE_CHARS = {False: 80, True: 44}
ROOM = 0.16  # of the span, on both sides, for the factors


@dataclass(frozen=True)
class Reason:
    """words: such as "input 3.1 times its usual size"; factor: by which it multiplies, above 0."""

    words: str
    factor: float


@dataclass(frozen=True)
class RunReasons:
    """run: its name; what: is multiplied, such as "odds of a slow run"; start, end: before and after all reasons.

    reasons: in any order; what they leave of end / start is drawn as "all else". is_worse_up: more of it is worse."""

    run: str
    what: str
    start: float
    end: float
    reasons: Sequence[Reason]
    n_runs: int
    start_words: str = "usual"
    is_worse_up: bool = True

    @property
    def shown(self) -> list[Reason]:
        """The largest reasons, at most N_REASONS, and last all else; those that change nothing are left out."""
        ranked = sorted(self.reasons, key=lambda reason: -abs(np.log(reason.factor)))[:N_REASONS]
        kept = [reason for reason in ranked if abs(np.log(reason.factor)) > NO_CHANGE]
        rest = self.end / self.start / float(np.prod([reason.factor for reason in kept]))
        return [*kept, Reason("all else", rest)] if abs(np.log(rest)) > NO_CHANGE else kept

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n = len(self.shown)
        return f"one run, against {self.n_runs:,} others; {n} step{'' if n == 1 else 's'} from {self.start_words} to it"


def draw_one_run(run: RunReasons, width_in: float) -> Figure | None:
    """A waterfall on a logarithmic axis: each bar begins where the last ended. None if nothing changes anything."""
    shown, narrow = run.shown, is_narrow(width_in)
    if not shown:
        return None
    with whorl_style():
        names = [run.start_words, *(reason.words for reason in shown), "this run"]
        figure, axes, middle, thickness = row_axes(
            names, width_in, head_in=HEAD_IN[narrow], foot_in=FOOT_IN, right_in=RIGHT_IN if not narrow else 0.2
        )
        places = run.start * np.cumprod([1.0, *(reason.factor for reason in shown)])
        low, high = float(places.min()), float(places.max())
        pad = (high / low) ** ROOM
        axes.set_xscale("log")
        axes.set_xlim(low / pad, high * pad)
        for row, (reason, begin, end) in enumerate(zip(shown, places[:-1], places[1:], strict=True), 1):
            _draw_step(axes, row + middle, thickness, reason.factor, (begin, end), run.is_worse_up)
        for row, value in ((0, run.start), (len(names) - 1, run.end)):
            _draw_end(axes, row + middle, thickness, value)
        _ticks(axes, narrow)
        axes.set_xlabel(run.what, color=MUTED)
        axes.set_title(
            plain_label(run.run, TITLE_CHARS[narrow]), loc="left", fontsize="medium", x=0 if narrow else -0.6
        )
    return figure


def _draw_step(
    axes: Axes, at: float, thickness: float, factor: float, ends: tuple[float, float], is_worse_up: bool
) -> None:
    begin, end = ends
    colour = ORANGE if (factor > 1) == is_worse_up else BLUE
    axes.barh(at, end - begin, thickness, left=begin, color=colour)
    if thickness == WIDE_BAR[1]:  # else words stand between the bars
        axes.plot([end, end], [at + thickness / 2, at + 1 - thickness / 2], color=MUTED, linewidth=0.8)
    goes_right = end > begin
    shift_pt = (4 if goes_right else -4, 0)
    write(
        axes,
        f"× {ratio(factor) if SMALL[0] < factor < SMALL[1] else number(factor)}",
        (end, at),
        shift_pt,
        INK,
        ha="left" if goes_right else "right",
    )


def _draw_end(axes: Axes, at: float, thickness: float, value: float) -> None:
    axes.plot([value, value], [at - thickness / 2, at + thickness / 2], color=INK, linewidth=2.2)
    write(axes, number(value), (value, at), (6, 0), INK)


def _ticks(axes: Axes, narrow: bool) -> None:
    """A few round values; the limits may span less than a decade or many."""
    low, high = axes.get_xlim()
    round_values = [step * 10.0**power for power in range(-9, 10) for step in (1, 2, 5)]
    inside = [value for value in round_values if low <= value <= high]
    every = -(-len(inside) // (4 if narrow else 7)) or 1
    axes.xaxis.set_major_locator(FixedLocator(inside[::every]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=GRID)
