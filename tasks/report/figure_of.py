"""A figure with its words for the page, or the words that say why there is none."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from matplotlib.figure import Figure

from tasks.report.jobs_figures import FigureOfPage

D = TypeVar("D")


def figure_of(
    name: str,
    title: str,
    words: str,
    evidence: str,
    draw: Callable[[D, float], Figure | None],
    data: D | None,
    *,
    nothing: str,
    is_empty: bool = False,
) -> FigureOfPage:
    """The figure of `data` for the page; without data, or with empty data, `nothing` says why there is none."""
    if data is None or is_empty:
        return FigureOfPage(name, title, nothing, "n = 0", None)
    return FigureOfPage(name, title, words, evidence, partial(_draw, draw, data))


def _draw(draw: Callable[[D, float], Figure | None], data: D, width_in: float) -> Figure:
    figure = draw(data, width_in)
    if figure is None:
        raise ValueError("nothing to draw; expected data that is not empty")
    return figure
