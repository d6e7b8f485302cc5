"""How figures look: one ink, a palette that colour-blind readers can tell apart, and axes in human time units.

Every colour here is also a CSS variable of the page, so that a figure follows the reader's light or dark mode."""

import math
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from tasks.quantities import duration

INK, MUTED, GRID = "#1b1f24", "#5b6571", "#d9dee4"
BLUE, ORANGE = "#0072b2", "#d55e00"  # Okabe and Ito
DENSITY = ("#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08306b")  # few to many
CSS_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    BLUE: "--blue",
    ORANGE: "--orange",
    **{colour: f"--density-{step}" for step, colour in enumerate(DENSITY, 1)},
}
LEFT_IN, RIGHT_IN, BOTTOM_IN = 0.92, 0.2, 0.52
WIDE_IN, NARROW_IN = 7.2, 3.7  # the text column of the page; a phone
FONT_PT = 9.5
RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": FONT_PT,
    "axes.labelsize": FONT_PT,
    "xtick.labelsize": FONT_PT,
    "ytick.labelsize": FONT_PT,
    "text.color": INK,
    "text.parse_math": False,  # a job may be called $x_
    "axes.unicode_minus": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
}
HOUR_S, DAY_S = 3600.0, 86_400.0
ROUND_TICKS_S = (1.0, 60.0, HOUR_S, DAY_S, 1e-3, 1e-2, 0.1, 10, 600, 10 * HOUR_S, 10 * DAY_S, 100 * DAY_S, 1e-4, 1e-5)
FINE_TICKS_S = (
    *(step * size for size in (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1) for step in (2, 5)),
    *(20, 30, 120, 300, 1200, 1800, 2 * HOUR_S, 5 * HOUR_S, 2 * DAY_S, 5 * DAY_S, 20 * DAY_S, 50 * DAY_S),
)
LABEL_CHARS = 60


@contextmanager
def whorl_style() -> Iterator[None]:
    """matplotlib's settings for the block; nothing global stays changed."""
    with mpl.rc_context(RC):
        yield


def new_figure(width_in: float, height_in: float, *, top_in: float = 0.15) -> Figure:
    """An empty figure without pyplot, so that nothing is kept alive and threads do not meet.

    Its margins are fixed, with room for labels such as `47.6 min`: a layout engine costs a third of the drawing."""
    figure = Figure(figsize=(width_in, height_in))
    figure.subplots_adjust(
        left=LEFT_IN / width_in,
        right=1 - RIGHT_IN / width_in,
        bottom=BOTTOM_IN / height_in,
        top=1 - top_in / height_in,
    )
    return figure


def is_narrow(width_in: float) -> bool:
    """Whether a figure of this width is meant for a phone: fewer ticks and shorter words."""
    return width_in <= NARROW_IN


def plain_label(text: str, limit: int = LABEL_CHARS) -> str:
    """A name from a log as one line of a figure: control characters gone, long ones cut in the middle."""
    clean = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text).strip() or "(no name)"
    if len(clean) <= limit:
        return clean
    half = (limit - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"


def log_time_axis(axes: Axes, which: str, low_s: float, high_s: float, n_ticks: int) -> None:
    """Make one axis logarithmic in time with ticks such as 10 ms, 1 s, 5 min, 2 h."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if which == "x":
        axes.set_xscale("log")
        axes.set_xlim(low_s, high_s)
    else:
        axes.set_yscale("log")
        axes.set_ylim(low_s, high_s)
    axis.set_major_locator(FixedLocator(spaced_ticks(low_s, high_s, n_ticks, (ROUND_TICKS_S, FINE_TICKS_S))))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))


def spaced_ticks(low: float, high: float, n_ticks: int, choices: Sequence[Sequence[float]]) -> list[float]:
    """Ticks of a logarithmic axis: the first choices first, later ones as long as none comes too close to another."""
    least = math.log(high / low) / (n_ticks + 1)
    chosen: list[float] = []
    for tick in chain.from_iterable(choices):
        if low <= tick <= high and all(abs(math.log(tick / other)) >= least for other in chosen):
            chosen.append(tick)
    return sorted(chosen)
