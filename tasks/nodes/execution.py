"""One execution of a benchmark as recorders and the readers of small files make it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.nodes.columns import EXECUTION_COLUMNS
from tasks.nodes.measured import Measured

COUNTED = ("n_metrics", "missing_metrics", "n_rows")  # follow from the rest
FACTS = tuple(name for name in EXECUTION_COLUMNS if name not in COUNTED)


@dataclass(frozen=True)
class Sampled:
    """A metric of the node around an execution. at_s: (n_samples,), seconds after its start, rising."""

    metric: str
    unit: str
    at_s: NDArray[np.float64]
    samples: NDArray[np.float64]


@dataclass(frozen=True)
class Execution:
    """facts: columns of nodes.executions (FACTS) by name, missing ones left out; `is_simulated` false unless it says.

    measured: its metrics, each once. missing: metrics that its tool should have told. tool, log: what the tool wrote.
    place: its first row in the file, from 1; n_rows: rows of the file that it was made of."""

    facts: Mapping[str, Any]
    measured: tuple[Measured, ...]
    missing: tuple[str, ...] = ()
    telemetry: tuple[Sampled, ...] = field(default=(), repr=False)
    tool: str = ""
    log: str = field(default="", repr=False)
    place: int = 1
    n_rows: int = 1

    @property
    def execution_id(self) -> str:
        """Its name within its source."""
        return str(self.facts["execution_id"])
