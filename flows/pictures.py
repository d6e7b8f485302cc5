"""A figure of a report inside an artifact: markdown that needs no request, in Prefect's UI and out of it."""

from typing import TYPE_CHECKING

from tasks.markdown import plain

if TYPE_CHECKING:
    from tasks.report.jobs_figures import FigureOfPage

MAX_PNG_BYTES = 100_000  # Prefect's page grows slow above


def picture_part(figure: "FigureOfPage", more: str = "", *, level: int = 2) -> str:
    """Title, words and image of a figure, and what it stands for; more: after its words; level: of its heading.

    A figure that there is nothing to draw of keeps its title and words, and so does one whose image is too large."""
    from tasks.report.images import data_uri, to_png  # matplotlib: a second that other flows need not pay
    from tasks.report.style import WIDE_IN

    title, words = plain(figure.title), plain(figure.words)
    parts = [f"{'#' * level} {title}", f"{words} {plain(more)}".strip()]
    png = to_png(figure.draw(WIDE_IN)) if figure.draw else b""
    if 0 < len(png) < MAX_PNG_BYTES:
        parts.append(f"![{title}]({data_uri(png)})")
    return "\n\n".join([*parts, f"*{plain(figure.evidence)}*"])
