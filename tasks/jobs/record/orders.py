"""What a worker is asked to run, and what it measured: the two messages between recorder and engine."""

from dataclasses import dataclass, field

from tasks.jobs.record.datasets import PARTS
from tasks.jobs.record.template import Source


@dataclass(frozen=True)
class Order:
    """One vertex to run, or one job to plan (`is_explain`).

    parts: first part of the data set and number of parts, wrapping around; none for a merge.
    partials: results of earlier vertices that it reads; result: the file that it writes, if any.
    """

    vertex_id: str
    sql: str
    data_set: str
    parts: tuple[int, int] | None
    source: Source
    databases: tuple[str, ...]
    writes: str | None = None
    partials: tuple[str, ...] = ()
    result: str | None = None
    threads: int = 1
    memory_mb: int = 256
    is_cold: bool = False
    is_explain: bool = False

    def part_numbers(self) -> list[int]:
        """The parts in reading order."""
        if self.parts is None:
            return []
        first, count = self.parts
        return [(first + step) % PARTS for step in range(count)]


@dataclass(frozen=True)
class Measured:
    """What a vertex saw. Times in seconds; bytes as bytes. buffer_bytes: the most that the engine held in buffers."""

    runtime_s: float
    lock_wait_s: float = 0.0
    query_s: float = 0.0
    cpu_s: float = 0.0
    temp_bytes: int = 0
    input_rows: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    disk_read_bytes: int = 0
    peak_memory_bytes: int = 0
    buffer_bytes: int = 0
    error: str = ""


@dataclass(frozen=True)
class Planned:
    """What the engine's planner says of a whole job before it runs."""

    signature: str | None = None
    operators: dict[str, int] = field(default_factory=dict)
    estimated_rows: float = 0.0
    estimated_cost: float = 0.0
    error: str = ""
