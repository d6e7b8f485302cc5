"""The ticks of an axis of times: round moments, as many as there is room for, with labels that say each part once."""

import matplotlib.dates as mdates
import pandas as pd
from matplotlib.axes import Axes

from tasks.report.style import MUTED

FEWEST_ASKED = 5  # with less, matplotlib finds no interval for some spans, such as 100 s, and draws too many


def date_axis(axes: Axes, first: pd.Timestamp, last: pd.Timestamp, *, most: int, what: str = "submitted") -> None:
    """Ticks from first to last, about `most` of them, and below what happened then, with the day that they share.

    The limits of the axis are the caller's: set them after this."""
    locator = mdates.AutoDateLocator(minticks=2, maxticks=max(most, FEWEST_ASKED))  # type: ignore[no-untyped-call]
    ticks = locator.tick_values(first, last)  # type: ignore[no-untyped-call]
    low, high = mdates.date2num([first, last])  # type: ignore[no-untyped-call]
    inside = ticks[(ticks >= low) & (ticks <= high)]
    ticks = inside if len(inside) else ticks
    if len(ticks) > most:
        ticks = ticks[:: -(-len(ticks) // most)]
    formatter = mdates.ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    labels = formatter.format_ticks(ticks)  # type: ignore[no-untyped-call]
    axes.set_xticks(ticks, labels)  # once: several panels would find them again
    day = formatter.get_offset()  # type: ignore[no-untyped-call]
    axes.set_xlabel(f"{what} (UTC){f', {day}' if day else ''}", color=MUTED)
