"""What steps tell whoever runs them: the handful of errors that a user can meet, and progress on long work.

Each error is one line: what, where, expected, what to do. Of progress nobody has to know who shows it.

What a message quotes of a file stands in quotes (`quoted`, or '{value}' in a text), so that it can be left out where
names are replaced by pseudonyms: see quoting_nothing and without_quotes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

QUOTES = re.compile(r"'.*'|\".*\"", re.DOTALL)
HIDDEN = "'…'"
QUOTED_CHARS = 200
NAME_CHARS = 40
REASON_CHARS = 200
VALUE = re.compile(r"-?[0-9.]+(e[+-]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}.*", re.IGNORECASE)  # what no header holds
_quotes_nothing: ContextVar[bool] = ContextVar("quotes_nothing", default=False)


class WhorlError(Exception):
    """Base of all errors that the command line prints as one line; `exit_code` is what the shell sees."""

    exit_code = 1


class BadInput(WhorlError):
    """A file, or another source of rows, that cannot be used as a whole."""

    exit_code = 3

    def __init__(self, where: object, problem: str, expected: str, fix: str = "") -> None:
        self.where, self.problem, self.expected, self.fix = str(where), problem, expected, fix
        super().__init__(f"{where}: {problem}; expected {expected}" + (f"; {fix}" if fix else ""))

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str], dict[str, object]]:
        return type(self), (self.where, self.problem, self.expected, self.fix), self.__dict__


class NotAllRead(BadInput):
    """Some files could not be read. result: of a flow, about those that are loaded; refused: a line a file."""

    result: Mapping[str, Any]
    refused: list[str]


def quoted(values: str | Iterable[object], most: int = 20) -> str:
    """A text of a file, or several (names of columns) with commas between them, in quotes, as a message shows them."""
    n_chars = QUOTED_CHARS if isinstance(values, str) else NAME_CHARS
    texts = [value for value in ([values] if isinstance(values, str) else [str(value) for value in values]) if value]
    if texts and _quotes_nothing.get():
        return HIDDEN
    shown = ", ".join(f"'{value[:n_chars]}'" for value in texts[:most])
    return f"{shown} and {len(texts) - most} more" if len(texts) > most else shown


def without_quotes(text: str) -> str:
    """A message without what it quotes."""
    return QUOTES.sub(HIDDEN, text)


@contextmanager
def quoting_nothing(is_wanted: bool = True) -> Iterator[None]:
    """A block whose BadInput, and what `quoted` shows in it, quote nothing of the file that is read in it."""
    token = _quotes_nothing.set(_quotes_nothing.get() or is_wanted)
    try:
        yield
    except BadInput as error:
        if not is_wanted:
            raise
        texts = map(without_quotes, (error.problem, error.expected, error.fix))
        raise BadInput(error.where, *texts) from None  # what led to it quotes the file as well
    finally:
        _quotes_nothing.reset(token)


class BadSetting(WhorlError):
    """A wrong key or value in conf/, the environment, a flag or a flow parameter."""

    exit_code = 2


class NotFound(WhorlError):
    """Something asked for by name (a run, a group, a model, a data set) that does not exist."""

    exit_code = 4


class NoWarehouse(WhorlError):
    """A question to a warehouse that nobody has filled yet."""

    exit_code = 4


class WarehouseBusy(WhorlError):
    """The lock was not free within the stated time; the message names who holds it."""

    exit_code = 5


class WarehouseBroken(WhorlError):
    """A warehouse that this version cannot use: a changed migration, a newer schema, a damaged file."""

    exit_code = 6


class MissingTool(WhorlError):
    """A program that the step needs is not installed; the message names the package."""

    exit_code = 7


def reason_of(error: BaseException) -> str:
    """What an error of Python or a library says, in at most 200 characters of one line; else its kind.

    It may quote the file, so it is left out where nothing is quoted."""
    if _quotes_nothing.get():
        return type(error).__name__
    text = (error.strerror if isinstance(error, OSError) else None) or str(error).strip() or type(error).__name__
    return " ".join(text.split())[:REASON_CHARS]


def headless(names: Sequence[str]) -> str:
    """What to do about a table whose first line is a row, told by the values in it; empty if it may be a header."""
    is_row = any(VALUE.fullmatch(name) for name in names)
    return "the first line seems to be a row: add a line with the names of the columns above it" if is_row else ""


ShowProgress = Callable[[str, float, float | None], None]


def _nowhere(what: str, done: float, total: float | None) -> None:
    """Nobody is watching."""


_show: ContextVar[ShowProgress] = ContextVar("show", default=_nowhere)


def report_progress(what: str, done: float, total: float | None = None) -> None:
    """Say how much of something is done; total is None where nobody knows it."""
    _show.get()(what, done, total)


@contextmanager
def shown_by(show: ShowProgress) -> Iterator[None]:
    """Within the block, progress goes to `show`."""
    token = _show.set(show)
    try:
        yield
    finally:
        _show.reset(token)
