"""Figures that somebody asked for, in a folder of theirs: a page with all of them, and each as an image."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from tasks.report.images import FILE_DPI, to_png
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.jobs_page import drawn
from tasks.report.page import file_slug, render, write_page
from tasks.report.style import WIDE_IN
from tasks.warehouse.versions import code_version


@dataclass(frozen=True)
class Asked:
    """What the page says beside its figures. made_of: data or model; again: the command that makes it again.

    lists: sentences by their title."""

    title: str
    words: str
    made_of: str
    again: str
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)


def write_figures(folder: Path, name: str, figures: Sequence[FigureOfPage], asked: Asked) -> list[Path]:
    """Write <folder>/<name>.html, and <figure>.png for each figure that has something to draw; the page comes first.

    The folder is made if it is not there; files of these names are replaced, each in one step."""
    values = {
        **vars(asked),
        "figures": [drawn(figure) for figure in figures],
        "code_version": f"whorl {code_version()}",
    }
    page = write_page(folder, name, render("figures.html", values))
    return [page, *write_images(folder, figures)]


def write_images(folder: Path, figures: Sequence[FigureOfPage]) -> list[Path]:
    """Write <figure>.png for each figure that has something to draw, whole or not at all."""
    return [_write_png(folder, one.name, one.draw(WIDE_IN)) for one in figures if one.draw is not None]


def _write_png(folder: Path, name: str, figure: Figure) -> Path:
    path = folder / f"{file_slug(name)}.png"
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    draft.write_bytes(to_png(figure, dpi=FILE_DPI))
    draft.replace(path)
    return path
