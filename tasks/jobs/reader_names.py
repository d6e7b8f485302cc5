"""The names of the readers as forms and flags offer them: light, where the readers themselves import pandas."""

from typing import Literal

ReaderName = Literal["auto", "own", "swf", "slurm", "spark", "airflow", "prefect-api"]
AUTO: ReaderName = "auto"


def reader_asked_for(name: ReaderName) -> str:
    """The reader's name for an Intake: empty where the file decides."""
    return "" if name == AUTO else name
