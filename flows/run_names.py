"""Names of flow runs from their own parameters: the source that they are about, or the files that they read."""

from pathlib import Path
from typing import Any

from prefect.runtime import flow_run


def of_source(verb: str) -> str:
    """The verb, and the source of the run."""
    return f"{verb} {flow_run.parameters['source'] or 'the only source'}"


def of_ingest(key: str, otherwise: str) -> str:
    """What is read into the source of the run. key: its parameter of paths; otherwise: what it reads without any."""
    return f"ingest {in_short(flow_run.parameters.get(key) or [otherwise])} into {flow_run.parameters['source']}"


def of_evaluation(key: str, called: str = "paths") -> str:
    """What is evaluated: see files_or_source."""
    return f"evaluate {files_or_source(key, called)}"


def files_or_source(key: str, called: str = "paths") -> str:
    """The files that the run reads, else its source. key: its parameter of paths; called: what many of them are."""
    paths = flow_run.parameters.get(key) or []
    return in_short(paths, called) if paths else str(flow_run.parameters["source"] or "the only source")


def in_short(paths: list[Any], called: str = "paths") -> str:
    """The name of the only path, or how many there are."""
    return Path(str(paths[0])).name or str(paths[0]) if len(paths) == 1 else f"{len(paths)} {called}"
