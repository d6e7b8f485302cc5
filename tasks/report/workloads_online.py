"""How soon a run is known: the share of runs called right after so many seconds."""

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.quantities import number, share
from tasks.report.direct_labels import EndLabel, Side, label_ends, write
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, is_narrow, new_figure, whorl_style

HEIGHT_IN, HEAD_IN = 2.7, 0.2
LEFT_IN, RIGHT_IN = 0.72, {False: 1.35, True: 1.12}
CHANCE = "guessing"
COLOURS = (BLUE, ORANGE, INK)
LEAST_IN = 0.55  # between the numbers at two points of the first line
TICKS = (0, 0.25, 0.5, 0.75, 1)


@dataclass(frozen=True)
class OnlineCurve:
    """accuracy: by name of a line (the first is told in numbers), of each time in seconds the share called right.

    n_runs: at each time; n_workloads: to choose from."""

    accuracy: Mapping[str, Mapping[float, float]]
    n_runs: int
    n_workloads: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n_runs:,} held-out runs of {self.n_workloads} workloads"


def draw_online(data: OnlineCurve, width_in: float) -> Figure | None:
    """Share called right over the seconds seen; dotted: what a guess would reach. None without a time."""
    lines = {name: dict(sorted(line.items())) for name, line in data.accuracy.items() if line}
    if not lines:
        return None
    narrow = is_narrow(width_in)
    with whorl_style():
        figure = new_figure(width_in, HEIGHT_IN, top_in=HEAD_IN)
        figure.subplots_adjust(left=LEFT_IN / width_in, right=1 - RIGHT_IN[narrow] / width_in)
        axes = figure.subplots()
        last = max(second for line in lines.values() for second in line)
        axes.set(xlim=(0, last), ylim=(0, 1.12))
        axes.set_yticks(TICKS, [f"{100 * tick:.0f} %" for tick in TICKS])
        axes.set_axisbelow(True)
        axes.grid(axis="y", color=GRID)
        ends = _draw_lines(axes, lines)
        chance = 1 / data.n_workloads if data.n_workloads else 0.0
        axes.axhline(chance, color=MUTED, linewidth=1, linestyle=":")
        label_ends(axes, [*ends, EndLabel(CHANCE, chance, MUTED)])
        _write_numbers(axes, next(iter(lines.values())))
        times = sorted({second for line in lines.values() for second in line})
        axes.set_xticks(times, [number(second) for second in times])
        axes.set_xlabel("seconds of the run seen", color=MUTED)
        axes.set_ylabel("called right")
    return figure


def _draw_lines(axes: Axes, lines: Mapping[str, Mapping[float, float]]) -> list[EndLabel]:
    ends = []
    for place, (name, line) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(list(line), list(line.values()), color=colour, linewidth=1.6, marker="o", markersize=4, clip_on=False)
        ends.append(EndLabel(name, list(line.values())[-1], colour))
    return ends


def _write_numbers(axes: Axes, line: Mapping[float, float]) -> None:
    """The shares of the first line above its points, as long as they do not meet."""
    width_in = axes.get_position().width * axes.figure.get_size_inches()[0]  # type: ignore[union-attr]
    span, before, last = axes.get_xlim()[1], float("-inf"), max(line)
    for second, value in line.items():
        at_in = second / span * width_in - (LEAST_IN / 2 if second == last else 0)
        if at_in - before >= LEAST_IN:
            ha: Side = "right" if second == last else "center"
            write(axes, share(value), (second, value), (0, 8), BLUE, ha=ha, va="bottom")
            before = at_in
