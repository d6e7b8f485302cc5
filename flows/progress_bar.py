"""Progress of long work on stderr, where a person watches a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from flows.invocation import Invocation
from tasks.progress import shown_by


@contextmanager
def progress_bar(invocation: Invocation, *, first: str = "") -> Iterator[None]:
    """Within the block, what steps report as progress is shown; nothing without a terminal or with --quiet.

    first: what to show until the first report. One bar at a time: that of the latest report."""
    if invocation.is_quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    what, amount = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[shown]}")
    columns = (SpinnerColumn(), what, BarColumn(), amount, TimeElapsedColumn())
    bars: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def show(what: str, done: float, total: float | None) -> None:
            if what not in bars:
                for bar in bars.values():
                    progress.update(bar, visible=False)
                bars[what] = progress.add_task(what, total=total, shown="")
            shown = f"{done:,.0f} of {total:,.0f}" if total else f"{done:,.0f}" if done else ""
            progress.update(bars[what], completed=done, total=total, shown=shown)

        if first:
            show(first, 0, None)
        with shown_by(show):
            yield
