"""What a recording has and what it still lacks: each finished execution is on disk at once, parts follow."""

import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tasks.nodes.execution import Sampled
from tasks.nodes.record.begun import begin
from tasks.nodes.record.bench import CLEAN, Outcome
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.parts import KEYS, STEADY, Done, Record, finished, recorded_params, write_parts
from tasks.nodes.record.plan import AGAIN, Plan, PlannedExecution
from tasks.nodes.record.spool import SPOOL, Spooled, spooled_paths, write_spooled
from tasks.nodes.record.steady import Past

MOST_SPOOLED = 600  # executions; they are read again when a part is written


@dataclass
class Ledger:
    """The executions that a folder holds. plan: None where what runs next follows from what ran; record: facts of
    machine and nodes, for the record of each part; campaign: its name; done: by id. most_repeated: how often an
    execution may have been repeated, by these parameters or by those of an earlier call."""

    folder: Path
    params: RecordParams
    plan: Plan | None
    record: Record
    campaign: str = ""
    done: dict[str, Done] = field(default_factory=dict)
    part_due_s: float = 0.0
    most_repeated: int = 0

    def __post_init__(self) -> None:
        self.campaign = begin(self.folder, self.params, self.digest, self.record)
        self.done = {one.execution_id: one for one in finished(self.folder, with_steady=self.plan is None)}
        self.part_due_s = time.monotonic() + self.params.part_minutes * 60
        repeated = (one.rpartition(AGAIN)[2] for one in self.done)
        self.most_repeated = max([self.params.repeats, *(int(n) for n in repeated if n.isdecimal())])

    @property
    def digest(self) -> str:
        """What tells one plan from another."""
        return self.plan.digest() if self.plan else STEADY

    def keep(self, outcome: Outcome, telemetry: Sequence[Sampled]) -> None:
        """Write an execution down."""
        execution = replace(outcome.execution, telemetry=tuple(telemetry))
        write_spooled(self.folder, Spooled(execution, outcome.status, outcome.facts))
        done = Done(**{key: execution.facts[key] for key in KEYS}, status=outcome.status)
        self.done[done.execution_id] = done
        if time.monotonic() >= self.part_due_s or len(spooled_paths(self.folder)) >= MOST_SPOOLED:
            self.write_parts()

    def write_parts(self) -> None:
        """Put the executions kept so far into parts."""
        if spooled_paths(self.folder):
            told = {"params": recorded_params(self.params), "plan": self.digest, "campaign": self.campaign}
            write_parts(self.folder, self.record | told)
        self.part_due_s = time.monotonic() + self.params.part_minutes * 60

    def close(self) -> None:
        """Write what is left into parts, and remove the folder of single executions."""
        self.write_parts()
        shutil.rmtree(self.folder / SPOOL, ignore_errors=True)

    def has_clean(self, planned: PlannedExecution) -> bool:
        """Whether the execution, or any repetition of it, was recorded undisturbed."""
        tries = (planned.again(n) for n in range(self.most_repeated + 1))
        return any((done := self.done.get(one.id_in(self.campaign))) and done.status == CLEAN for one in tries)

    def left(self, planned: Iterable[PlannedExecution]) -> list[PlannedExecution]:
        """Those that were never recorded to their end, clean or not."""
        return [one for one in planned if one.id_in(self.campaign) not in self.done]

    def repetition(self, n: int) -> list[PlannedExecution]:
        """The n-th repetition of all executions that are not clean yet and were not repeated so often."""
        planned = self.plan.executions if self.plan else ()
        return self.left(one.again(n) for one in planned if not self.has_clean(one))

    def past(self, node: str) -> list[Past]:
        """What a node has behind it in this folder."""
        ours = [one for one in self.done.values() if one.node == node]
        return [Past(one.benchmark, one.template_hash, one.started_at, one.status != CLEAN) for one in ours]
