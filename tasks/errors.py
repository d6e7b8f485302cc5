"""The handful of errors that a user can meet. Each is one line: what, where, expected, what to do."""

import re
from collections.abc import Sequence

REASON_CHARS = 200
NAMES_SHOWN, NAME_CHARS = 20, 40
VALUE = re.compile(r"-?[0-9.]+(e[+-]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}.*", re.IGNORECASE)  # what no header holds


class WhorlError(Exception):
    """Base of all errors that the command line prints as one line; `exit_code` is what the shell sees."""

    exit_code = 1


class BadInput(WhorlError):
    """A file, or another source of rows, that cannot be used as a whole."""

    exit_code = 3

    def __init__(self, where: object, problem: str, expected: str, fix: str = "") -> None:
        self.where, self.problem, self.expected, self.fix = str(where), problem, expected, fix
        super().__init__(f"{where}: {problem}; expected {expected}" + (f"; {fix}" if fix else ""))

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        return type(self), (self.where, self.problem, self.expected, self.fix)


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
    """What an error of Python or a library says, in at most 200 characters of one line; else its kind."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error).strip() or type(error).__name__
    return " ".join(said.split())[:REASON_CHARS]


def listed(names: Sequence[str]) -> str:
    """Names as a message shows them: at most 20, of each at most 40 characters."""
    shown = ", ".join(name[:NAME_CHARS] for name in names[:NAMES_SHOWN])
    return f"{shown} and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else shown or "none"


def headless(names: Sequence[str]) -> str:
    """What to do about a table whose first line is a row, told by the values in it; empty if it may be a header."""
    is_row = any(VALUE.fullmatch(name) for name in names)
    return "the first line seems to be a row: add a line with the names of the columns above it" if is_row else ""
