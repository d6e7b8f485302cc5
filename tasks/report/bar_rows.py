"""Rows of bars whose names may be long: beside the bars on a page, in two lines at most, above them on a phone."""

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.report.style import INK, is_narrow, new_figure, plain_label

ROW_IN = {False: 0.34, True: 0.5}  # by whether the figure is narrow
NAMES_IN, EDGE_IN = 2.75, 0.15  # left of the bars
NAME_CHARS = {False: 36, True: 44}
TWO_LINES_IN = 0.4  # a row where any name has two
NARROW_BAR = (0.22, 0.5)  # middle and thickness of a bar under its name, of a row
WIDE_BAR = (0.0, 0.68)


def row_axes(
    names: Sequence[str], width_in: float, *, head_in: float, foot_in: float, right_in: float
) -> tuple[Figure, Axes, float, float]:
    """A figure with a row a name, the first on top. Returns it, its axes, and middle and thickness of what a row holds.

    The middle counts from the number of the row, downwards."""
    narrow, n = is_narrow(width_in), max(1, len(names))
    shown = [_in_lines(name, narrow) for name in names]
    row_in = max(ROW_IN[narrow], TWO_LINES_IN) if any("\n" in lines for lines in shown) else ROW_IN[narrow]
    height_in = head_in + row_in * n + foot_in
    figure = new_figure(width_in, height_in, top_in=head_in)
    left_in = EDGE_IN if narrow else NAMES_IN
    figure.subplots_adjust(left=left_in / width_in, right=1 - right_in / width_in, bottom=foot_in / height_in)
    axes = figure.subplots()
    axes.set_ylim(n - 0.5, -0.5)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    for row, words in enumerate(shown):
        at, side, middle = (0.0, "left", row - 0.25) if narrow else (-0.02, "right", float(row))
        axes.annotate(
            words,
            (at, middle),
            xycoords=("axes fraction", "data"),
            ha=side,
            va="center",
            color=INK,
            linespacing=1.15,
            annotation_clip=False,
        )
    middle, thickness = NARROW_BAR if narrow else WIDE_BAR
    return figure, axes, middle, thickness


def _in_lines(name: str, narrow: bool) -> str:
    """A name as one line, or broken at a space into two; one that does not fit is cut in the middle."""
    width = NAME_CHARS[narrow]
    plain = plain_label(name, len(name) or 1)
    if not narrow and len(lines := textwrap.wrap(plain, width, break_long_words=False)) == 2:
        return plain_label(name, width) if max(map(len, lines)) > width else "\n".join(lines)
    return plain_label(name, width)
