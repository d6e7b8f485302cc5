"""Figures inside artifacts: their words are text, and an image that would slow the page down is left out."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from flows import pictures
from flows.pictures import picture_part
from tasks.report.jobs_figures import FigureOfPage


def figure_of(**changed: Any) -> FigureOfPage:
    """A figure of one line."""
    fields = {"name": "one", "title": "A [title]", "words": "Some words.", "evidence": "n = 3 runs", "draw": line}
    return FigureOfPage(**{**fields, **changed})


def line(width_in: float) -> Figure:
    """One line."""
    figure = Figure(figsize=(width_in, 1))
    figure.subplots().plot(np.arange(3))
    return figure


def test_a_figure_is_its_title_words_image_and_evidence_in_this_order() -> None:
    parts = picture_part(figure_of(), "The job: a|b.", level=3).split("\n\n")
    assert parts[0] == "### A \\[title\\]"
    assert parts[1] == "Some words. The job: a\\|b."
    assert parts[2].startswith("![A \\[title\\]](data:image/png;base64,")
    assert parts[3:] == ["*n = 3 runs*"]


def test_a_figure_with_nothing_to_draw_keeps_its_words() -> None:
    assert picture_part(figure_of(draw=None)) == "## A \\[title\\]\n\nSome words.\n\n*n = 3 runs*"


def test_an_image_that_is_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_PNG_BYTES", 100)
    assert "data:image" not in picture_part(figure_of())
