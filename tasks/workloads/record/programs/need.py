"""What a workload needs on the machine, and the package that has it."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasks import machine
from tasks.errors import MissingTool

Kind = Literal["program", "module", "file"]
INSTALLERS: dict[Kind, str] = {
    "program": "Debian: apt-get install",
    "file": "Debian: apt-get install",
    "module": "pip install",
}


@dataclass(frozen=True)
class Need:
    """A program, a Python module or a file. names: the first that is there counts; package: where it comes from."""

    names: tuple[str, ...]
    package: str
    kind: Kind = "program"

    def find(self) -> str | None:
        """The path of the program or file, or the name of the module; None where it is not installed."""
        if self.kind == "program":
            return machine.find_tool(*self.names)
        if self.kind == "file":
            return next((name for name in self.names if Path(name).exists()), None)
        return next((name for name in self.names if importlib.util.find_spec(name)), None)

    def path(self) -> str:
        """The path of the program or file. Raises MissingTool, with the package, where it is not installed."""
        found = self.find()
        if found is None:
            raise MissingTool(self.lack())
        return found

    def lack(self) -> str:
        """One line that says what is not installed and what to do."""
        return f"{self.names[0]} is not installed ({INSTALLERS[self.kind]} {self.package})"


def lacks(needs: Sequence[Need]) -> list[str]:
    """One line for each need that is not met."""
    return [need.lack() for need in needs if need.find() is None]
