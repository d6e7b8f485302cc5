"""Executions on disk as soon as they have ended: a small file each, later put together into parts."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from tasks.errors import BadInput
from tasks.nodes.execution import Execution, Measured, Sampled

SPOOL = "finished"  # folder of the files of single executions
ENDING = ".execution.json"
TIMES = ("started_at", "ended_at")
Facts = dict[str, Any]


@dataclass(frozen=True)
class Spooled:
    """One finished execution. status: clean, or why it was to be repeated; facts: for the record of its part."""

    execution: Execution
    status: str
    facts: Facts


def write_spooled(folder: Path, one: Spooled) -> Path:
    """Write one down; its file appears whole or not at all."""
    path = folder / SPOOL / f"{one.execution.execution_id}{ENDING}"
    temporary = path.with_suffix(".tmp")
    with temporary.open("w") as file:
        json.dump(_as_json(one), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return path


def spooled_paths(folder: Path) -> list[Path]:
    """The files of single executions, in the order of their names."""
    return sorted((folder / SPOOL).glob(f"*{ENDING}"))


def read_spooled(path: Path) -> Spooled:
    """One file back. Raises BadInput."""
    try:
        return _from_json(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError) as problem:
        expected = "a finished execution of the recorder"
        raise BadInput(path, f"cannot be read ({problem})", expected, "move it away") from problem


def _as_json(one: Spooled) -> Facts:
    execution = one.execution
    facts = {key: value.isoformat() if key in TIMES else value for key, value in execution.facts.items()}
    return {
        "status": one.status,
        "facts": one.facts,
        "execution": facts,
        "measured": [asdict(measured) for measured in execution.measured],
        "missing": execution.missing,
        "telemetry": [[s.metric, s.unit, _listed(s.at_s), _listed(s.samples)] for s in execution.telemetry],
        "tool": execution.tool,
        "log": execution.log,
    }


def _from_json(told: Facts) -> Spooled:
    facts = {key: datetime.fromisoformat(value) if key in TIMES else value for key, value in told["execution"].items()}
    telemetry = tuple(
        Sampled(metric, unit, np.array(at_s, dtype=float), np.array(samples, dtype=float))
        for metric, unit, at_s, samples in told["telemetry"]
    )
    measured = tuple(Measured(**one) for one in told["measured"])
    execution = Execution(facts, measured, tuple(told["missing"]), telemetry, told["tool"], told["log"])
    return Spooled(execution, told["status"], told["facts"])


def _listed(values: Sequence[float] | np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    """Numbers as JSON has them: NaN is null there."""
    return [None if value != value else float(value) for value in values]
