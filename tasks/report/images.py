"""A figure as text of the page or as the bytes of an image."""

import base64
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from tasks.report.style import CSS_VARIABLES, whorl_style

PNG_DPI = 80  # keeps the figures of an artifact under 100 kB
FILE_DPI = 160  # of figures in files of their own


def to_svg(figure: Figure, name: str, alt: str) -> Markup:
    """The figure as an <svg> element: deterministic, in CSS colours; `name` keeps its ids apart on the page."""
    buffer = io.StringIO()
    with whorl_style(), mpl.rc_context({"svg.hashsalt": name}), _missing_glyphs_ignored():
        FigureCanvasSVG(figure)
        figure.savefig(
            buffer, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    text = buffer.getvalue()
    svg = text[text.index("<svg") :]
    for colour, variable in CSS_VARIABLES.items():
        svg = re.sub(rf"(?<=: ){colour}(?=[;\"])", f"var({variable})", svg)
    svg = re.sub(r"<[^>]+>", _coarse, svg)
    return Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1))


def _coarse(tag: re.Match[str]) -> str:
    """The tag with its places to a hundredth of a point; words between tags stay as they are."""
    return re.sub(r"(?<=\d\.\d\d)\d+", "", tag.group())


def to_png(figure: Figure, *, dpi: int = PNG_DPI) -> bytes:
    """The figure as PNG on white, at 80 dots an inch."""
    buffer = io.BytesIO()
    with whorl_style(), _missing_glyphs_ignored():
        FigureCanvasAgg(figure)
        figure.savefig(buffer, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def data_uri(png: bytes) -> str:
    """A PNG as an address that needs no request."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


@contextmanager
def _missing_glyphs_ignored() -> Iterator[None]:
    """Names in scripts that the font lacks are drawn as boxes in a PNG; the page itself shows them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
