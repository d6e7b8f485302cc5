"""Progress on long work: steps report it, whoever runs them may show it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Show = Callable[[str, float, float | None], None]


def _nowhere(what: str, done: float, total: float | None) -> None:
    """Nobody is watching."""


_show: ContextVar[Show] = ContextVar("show", default=_nowhere)


def report_progress(what: str, done: float, total: float | None = None) -> None:
    """Say how much of something is done; total is None where nobody knows it."""
    _show.get()(what, done, total)


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """Within the block, progress goes to `show`."""
    token = _show.set(show)
    try:
        yield
    finally:
        _show.reset(token)
