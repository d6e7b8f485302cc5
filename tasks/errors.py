"""The handful of errors that a user can meet. Each is one line: what, where, expected, what to do."""


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
