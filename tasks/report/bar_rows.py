"""Rows of bars whose names may be long: beside the bars on a page, above them on a phone."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.report.style import INK, is_narrow, new_figure, plain_label

ROW_IN = {False: 0.34, True: 0.5}  # by whether the figure is narrow
NAMES_IN, EDGE_IN = 2.75, 0.15  # left of the bars
NAME_CHARS = {False: 36, True: 44}
NARROW_BAR = (0.22, 0.5)  # middle and thickness of a bar under its name, of a row
WIDE_BAR = (0.0, 0.68)


def row_axes(
    names: Sequence[str], width_in: float, *, head_in: float, foot_in: float, right_in: float
) -> tuple[Figure, Axes, float, float]:
    """A figure with a row a name, the first on top. Returns it, its axes, and middle and thickness of what a row holds.

    The middle counts from the number of the row, downwards."""
    narrow, n = is_narrow(width_in), max(1, len(names))
    height_in = head_in + ROW_IN[narrow] * n + foot_in
    figure = new_figure(width_in, height_in, top_in=head_in)
    left_in = EDGE_IN if narrow else NAMES_IN
    figure.subplots_adjust(left=left_in / width_in, right=1 - right_in / width_in, bottom=foot_in / height_in)
    axes = figure.subplots()
    axes.set_ylim(n - 0.5, -0.5)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    for row, name in enumerate(names):
        words = plain_label(name, NAME_CHARS[narrow])
        at, side, middle = (0.0, "left", row - 0.25) if narrow else (-0.02, "right", float(row))
        axes.annotate(
            words,
            (at, middle),
            xycoords=("axes fraction", "data"),
            ha=side,
            va="center",
            color=INK,
            annotation_clip=False,
        )
    middle, thickness = NARROW_BAR if narrow else WIDE_BAR
    return figure, axes, middle, thickness
