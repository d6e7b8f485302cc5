"""A round: every workload gets fresh data and a place of its own, the runs follow one another, everything stops."""

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.errors import WhorlError
from tasks.machine_groups import Group
from tasks.workloads.record.bench import Bench, Outcome, Part, joined, own_group
from tasks.workloads.record.plan import PlannedRun
from tasks.workloads.record.programs.program import Place, Program, make_place

MAY_BE_ENTERED = 0o011  # the workloads' folders belong to another user
logger = logging.getLogger(__name__)


@dataclass
class Clock:
    """When a call stops to start runs, on the monotonic clock."""

    ends_s: float
    slack_s: float = 0.0

    def is_over(self) -> bool:
        """Whether a run that starts now would end too late."""
        return time.monotonic() + self.slack_s > self.ends_s


@dataclass
class Round:
    """The runs that are left of one round."""

    bench: Bench
    programs: Mapping[str, Program]
    scratch: Path
    clock: Clock
    places: dict[str, Place] = field(default_factory=dict)

    def record(self, runs: Sequence[PlannedRun], keep: Callable[[Outcome], None]) -> None:
        """Prepare, run one after the other, hand each outcome to `keep`, and stop all services at the end."""
        self.scratch.chmod(self.scratch.stat().st_mode | MAY_BE_ENTERED)
        try:
            lost = self._prepare(
                list(dict.fromkeys(name for run in runs for name in (run.workload, run.beside) if name))
            )
            for run in runs:
                if self.clock.is_over():
                    return
                if reasons := [lost[name] for name in (run.workload, run.beside) if name in lost]:
                    keep(Outcome(run, "failed", error=reasons[0]))
                    continue
                beside = self._part(run.beside, run.beside_input) if run.beside else None
                keep(self.bench.record(run, self._part(run.workload, run.input), beside))
        finally:
            self.stop()

    def _part(self, name: str, input: str) -> Part:
        return Part(self.programs[name], self.places[name], input)

    def _prepare(self, workloads: Sequence[str]) -> dict[str, str]:
        """Fresh data for each; returns those that could not be prepared, with the reason."""
        lost: dict[str, str] = {}
        for name in workloads:
            if self.clock.is_over():
                break
            folder = self.scratch / name
            stop_leftovers(self.programs[name], folder)
            shutil.rmtree(folder, ignore_errors=True)
            place = self.places[name] = make_place(folder)
            try:
                with own_group(self.bench.group, f"prepare-{name}") as group:
                    self._prepare_one(self.programs[name], place, group)
            except WhorlError as error:
                logger.warning("%s cannot be prepared: %s", name, error)
                lost[name] = str(error)
        return lost

    def _prepare_one(self, program: Program, place: Place, group: Group | None) -> None:
        began = time.monotonic()
        try:
            program.prepare(joined(place, group, self.bench.params.seed))
        finally:
            program.stop(place)
        logger.info("prepared %s in %.1f s", program.name, time.monotonic() - began)

    def stop(self) -> None:
        """End all services and remove their data."""
        for name, place in self.places.items():
            self.programs[name].stop(place)
            shutil.rmtree(self.scratch / name, ignore_errors=True)


def stop_leftovers(program: Program, folder: Path) -> None:
    """End what a recorder that was killed left running in this folder."""
    if folder.is_dir():
        program.stop(make_place(folder))
