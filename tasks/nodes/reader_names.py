"""The names of the readers as forms and flags offer them: light, where the readers themselves import pandas."""

from typing import Literal

NodeReader = Literal["auto", "recorded", "azure-vm-noise", "long", "perona-sqlite", "sparecores", "logs"]
AUTO: NodeReader = "auto"


def reader_asked_for(name: NodeReader) -> str:
    """The reader's name for an intake: empty where the file decides."""
    return "" if name == AUTO else name
