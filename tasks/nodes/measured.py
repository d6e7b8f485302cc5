"""What one log of a benchmark tool says."""

from dataclasses import dataclass


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
    """The values of a log, in its order. missing: metrics of the tool that it lacks; they are never zero.

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
