"""The predictors that figures compare, each always in the same colour and line."""

from tasks.report.style import BLUE, INK, MUTED, ORANGE

COLOURS = {"model": BLUE, "history": ORANGE, "forest": INK, "global": MUTED}
LINES = {"model": "-", "history": "--", "forest": "-.", "global": ":"}


def colour_of(predictor: str) -> str:
    """Of a predictor by its name; any other is muted."""
    return COLOURS.get(predictor, MUTED)


def line_of(predictor: str) -> str:
    """Its line, so that it is told apart without colours."""
    return LINES.get(predictor, ":")
