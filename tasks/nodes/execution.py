"""One execution of a benchmark: its columns, what the log of its tool says, what recorders and readers make."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tasks.nodes.aspects import Aspect

TIMESTAMP = pa.timestamp("us")  # UTC, without a time zone
VALUES = pa.list_(pa.float64())
NAMES = pa.list_(pa.string())
Status = Literal["completed", "failed", "timeout"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)
STATUSES: tuple[Status, ...] = get_args(Status)
EXECUTION_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "execution_id": (pa.string(), "name of the execution within its source"),
    "node": (pa.string(), "machine that it ran on; names are unique within a source"),
    "machine_type": (pa.string(), "type of that machine; missing where nobody says"),
    "benchmark": (pa.string(), "what ran: tool and part of the machine, such as cpu-sysbench"),
    "aspect": (pa.string(), "cpu, memory, disk, network, system, application or unknown: what it is a measure of"),
    "template": (pa.string(), "how it was called: options of the tool, without what differs by node"),
    "template_hash": (pa.string(), "hash of the template; with the benchmark the type, and types are never compared"),
    "tool_version": (pa.string(), "version of the tool, as it says itself"),
    "started_at": (TIMESTAMP, "start, UTC; missing where nobody says"),
    "ended_at": (TIMESTAMP, "end, UTC"),
    "duration_s": (pa.float64(), "seconds from start to end"),
    "status": (pa.string(), "completed, failed or timeout"),
    "is_stressed": (pa.bool_(), "label: stress was applied while it ran; missing where nobody says"),
    "stress_wanted": (pa.bool_(), "stress was planned for it"),
    "dose": (pa.string(), "which stress, such as cpu-16; empty for none"),
    "dose_level": (pa.int64(), "0: none; 1, 2, 3: meant to move the main metric by about 1, 3, 10 deviations"),
    "is_contaminated": (pa.bool_(), "others used the machine while it ran, more than the recorder lets pass"),
    "foreign_cores": (pa.float64(), "cores that processes other than benchmark and stress used, mean"),
    "steal_cores": (pa.float64(), "cores that the hypervisor withheld, mean"),
    "load_1m": (pa.float64(), "load average over one minute at its start"),
    "is_emulated": (pa.bool_(), "true where the node is made of limits on a larger machine"),
    "campaign": (pa.string(), "recording that it is part of"),
    "region": (pa.string(), "where the machine stands"),
    "n_metrics": (pa.int64(), "metrics with a value"),
    "missing_metrics": (NAMES, "metrics that the tool should have told and did not; they are never zero"),
    "is_simulated": (pa.bool_(), "true for values that were drawn, not measured"),
    "n_rows": (pa.int64(), "rows of the file that it was made of"),
}
METRIC_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "execution_id": (pa.string(), "execution that it belongs to (nodes.executions)"),
    "metric": (pa.string(), "what was measured, without its unit"),
    "value": (pa.float64(), "the value, finite, in the unit"),
    "unit": (pa.string(), "unit as the tool wrote it; empty for a plain number"),
}
TELEMETRY_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "execution_id": (pa.string(), "execution that it belongs to (nodes.executions)"),
    "metric": (pa.string(), "what was sampled on the node"),
    "unit": (pa.string(), "unit of the samples; empty where unknown"),
    "at_s": (VALUES, "time of each sample, seconds after the start: negative before it, rising"),
    "samples": (VALUES, "the samples, in the order of at_s; missing ones stay missing"),
}
LOG_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "execution_id": (pa.string(), "execution that it belongs to (nodes.executions)"),
    "tool": (pa.string(), "tool that wrote it"),
    "log": (pa.string(), "what the tool wrote, so that it can be read anew"),
}
PLACE = pa.field("place", pa.int64())  # of the execution in the file: its first row; travels with the rows until ingest
COUNTED = ("n_metrics", "missing_metrics", "n_rows")  # follow from the rest
FACTS = tuple(name for name in EXECUTION_COLUMNS if name not in COUNTED)


def _schema(columns: dict[str, tuple[pa.DataType, str]]) -> pa.Schema:
    return pa.schema([*((name, kind) for name, (kind, _) in columns.items()), PLACE])


EXECUTIONS_SCHEMA = _schema(EXECUTION_COLUMNS)
METRICS_SCHEMA = _schema(METRIC_COLUMNS)
TELEMETRY_SCHEMA = _schema(TELEMETRY_COLUMNS)
LOGS_SCHEMA = _schema(LOG_COLUMNS)
SCHEMAS = {  # of a landed batch, the main table first
    "executions": EXECUTIONS_SCHEMA,
    "metrics": METRICS_SCHEMA,
    "telemetry": TELEMETRY_SCHEMA,
    "logs": LOGS_SCHEMA,
}


@dataclass(frozen=True)
class Measured:
    """One value of a log. unit: as the tool wrote it, empty for a plain number."""

    metric: str
    value: float
    unit: str


@dataclass(frozen=True)
class Fault:
    """One thing in a log that could not be used. place: its line, from 1; raw: the line, at most 500 characters.

    is_failure: the tool itself says that the benchmark failed, or did nothing."""

    place: int
    reason: str
    raw: str
    is_failure: bool = False


@dataclass(frozen=True)
class ParsedLog:
    """The values of a log, in the order of the tool's table. missing: metrics that it lacks; they are never zero.

    settings: how the tool was called as far as the log says (block size, threads, …), by name."""

    measured: tuple[Measured, ...]
    tool: str
    version: str
    missing: tuple[str, ...]
    faults: tuple[Fault, ...]
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the tool says that the benchmark failed, or did nothing."""
        return any(fault.is_failure for fault in self.faults)


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
