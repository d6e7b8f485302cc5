"""SIGTERM as an exception: every `finally` of a recorder runs before it ends."""

import contextlib
import signal
import threading
from collections.abc import Iterator

STATUS = 128 + signal.SIGTERM


@contextlib.contextmanager
def sigterm_unwinds() -> Iterator[None]:
    """SIGTERM raises SystemExit here; only the main thread can have it so, in others nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: object) -> None:
        raise SystemExit(STATUS)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
