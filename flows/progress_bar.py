"""Progress of long work on stderr: a bar on a terminal, a line for each step elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from flows.invocation import Invocation
from flows.shown import clean
from tasks.progress import Show, shown_by

EVERY_S = 30  # how often a line says how far a step is, where there is no terminal


@contextmanager
def progress_bar(invocation: Invocation, *, first: str = "") -> Iterator[None]:
    """Within the block, what steps report as progress is shown; nothing with --quiet.

    first: what a bar shows until the first report. One bar at a time: that of the latest report."""
    if invocation.is_quiet:
        yield
        return
    if not sys.stderr.isatty():
        with shown_by(_lines()):
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
            progress.update(bars[what], completed=done, total=total, shown=_amount(done, total))

        if first:
            show(first, 0, None)
        with shown_by(show):
            yield


def _lines() -> Show:
    """Prints a line when a step begins, the same step once, and now and then how far work is; with the time passed."""
    started, begun, said = time.monotonic(), set[str](), 0.0

    def show(what: str, done: float, total: float | None) -> None:
        nonlocal said
        passed = time.monotonic() - started
        is_new = not done and what not in begun
        if is_new or passed - said >= EVERY_S:
            line = clean(f"{what} {_amount(done, total)}".rstrip())
            print(f"{passed:4.0f} s  {line}", file=sys.stderr, flush=True)
            begun.add(what)
            said = passed

    return show


def _amount(done: float, total: float | None) -> str:
    return f"{done:,.0f} of {total:,.0f}" if total and done else f"{done:,.0f}" if done else ""
