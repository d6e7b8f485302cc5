"""A workload to record: what it is, its inputs, what it needs, and how it is prepared, run and stopped."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import Place, make_place

__all__ = ["Input", "Need", "Place", "Program", "make_place"]

Option = str | int | float
Role = Literal["workload", "unlearned", "load", "idle"]


@dataclass(frozen=True)
class Input:
    """One way to load a workload: data size, mix or concurrency. words: one line of what it is."""

    name: str
    options: Mapping[str, Option]
    words: str


class Program(Protocol):
    """One workload.

    Servers start within the run, with the load, and stop at its end: start-up is part of what is recorded, and no
    run finds the warm caches of the one before. Only what lies on disk stays from `prepare` on. Servers and clients
    are spawned alike, so both belong to the workload."""

    @property
    def name(self) -> str:
        """The workload's name, as it stands in recordings."""
        ...

    @property
    def title(self) -> str:
        """What it is, in one line."""
        ...

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Ways to load it, two at least."""
        ...

    @property
    def other_inputs(self) -> tuple[Input, ...]:
        """More ways, recorded only as a condition."""
        ...

    @property
    def role(self) -> Role:
        """Whether it is a workload to learn, one that is never learned, a load that only disturbs, or nothing."""
        ...

    @property
    def needs(self) -> tuple[Need, ...]:
        """What must be installed."""
        ...

    @property
    def kin(self) -> str | None:
        """The workload that it resembles most, by design; None where there is none."""
        ...

    def prepare(self, place: Place) -> None:
        """Make the data on disk, once a round; no process is left. Raises MissingTool or ProgramFailed."""
        ...

    def run(self, place: Place, input: Input, seconds: float) -> None:
        """Start everything, load it until `seconds` have passed, stop everything.

        Returns early, without an error, once `stop` is called from elsewhere. Raises ProgramFailed if it fails."""
        ...

    def stop(self, place: Place) -> None:
        """End every process of the place at once, also those of a recorder that was killed; may be called twice."""
        ...
