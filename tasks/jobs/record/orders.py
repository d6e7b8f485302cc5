"""What a worker is asked to run, and what it measured: the two messages between recorder and engine."""

from dataclasses import dataclass, field

from tasks.jobs.record.datasets import PARTS
from tasks.jobs.record.template import Source


@dataclass(frozen=True)
class Order:
    """What a worker is asked to run: SQL over some parts of a data set, with its resources."""

    run_id: str
    sql: str
    data_set: str
    parts: tuple[int, int]  # first part and number of parts; part numbers wrap around
    source: Source
    databases: tuple[str, ...]
    writes: str | None
    threads: int
    memory_mb: int
    time_limit_s: float
    is_cold: bool

    def part_numbers(self) -> list[int]:
        """The parts in reading order."""
        first, count = self.parts
        return [(first + step) % PARTS for step in range(count)]


@dataclass(frozen=True)
class Measured:
    """What the job itself saw. Times in seconds of this run; bytes as bytes."""

    runtime_s: float
    lock_wait_s: float = 0.0
    plan_s: float = 0.0
    query_s: float = 0.0
    cpu_wait_s: float = 0.0
    temp_bytes: int = 0
    input_rows: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    signature: str | None = None
    estimated_rows: float = 0.0
    operators: dict[str, int] = field(default_factory=dict)
    error: str = ""
