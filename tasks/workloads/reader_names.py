"""The names of the readers as forms and flags offer them: light, where the readers themselves import pandas."""

from typing import Literal

TelemetryReader = Literal["auto", "prometheus", "perf", "perfspect", "sadf", "wide"]
AUTO: TelemetryReader = "auto"


def reader_asked_for(name: TelemetryReader) -> str:
    """The reader's name for an intake: empty where the file decides."""
    return "" if name == AUTO else name
