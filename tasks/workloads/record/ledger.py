"""What a campaign has and what it still lacks: each finished run is on disk at once, parts follow now and then."""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa

from tasks.workloads.record.bench import Outcome
from tasks.workloads.record.giveaways import GIVEAWAYS
from tasks.workloads.record.params import RecordParams
from tasks.workloads.record.parts import (
    CLEAN,
    SPOOL,
    Record,
    finished,
    recorded_params,
    spooled_paths,
    table_of,
    write_parts,
    write_table,
)
from tasks.workloads.record.plan import AGAIN, Plan, PlannedRun

MOST_SPOOLED = 60  # runs; with 200 counters a part of them stays well below its limit


@dataclass
class Ledger:
    """The runs that a folder holds. machine: facts of it, for the record of each file."""

    folder: Path
    params: RecordParams
    plan: Plan
    machine: Record
    statuses: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    costs: list[float] = field(default_factory=list)
    part_due_s: float = 0.0

    def __post_init__(self) -> None:
        (self.folder / SPOOL).mkdir(parents=True, exist_ok=True)
        done = finished(self.folder, self.params, self.plan.digest())
        self.statuses = {run_id: one.status for run_id, one in done.items()}
        self.part_due_s = time.monotonic() + self.params.part_minutes * 60

    def keep(self, outcome: Outcome) -> None:
        """Write a run down; a failed one leaves only its error."""
        run_id = outcome.run.run_id
        if outcome.telemetry is None:
            self.errors[run_id] = outcome.error
            return
        record = {
            "params": recorded_params(self.params),
            "plan": self.plan.digest(),
            "machine": self.machine,
            "unavailable": [asdict(one) for one in outcome.unavailable],
            "giveaways": GIVEAWAYS,
            "runs": {run_id: outcome.facts},
        }
        table = table_of(outcome.telemetry)
        if outcome.partner:
            record["runs"][outcome.partner.run_id] = outcome.facts
            table = pa.concat_tables([table, table_of(outcome.partner)], promote_options="default")
        write_table(self.folder / SPOOL / f"{run_id}.parquet", table, record)
        self.statuses[run_id] = outcome.status
        self.costs.append(outcome.facts["sampler_cores"])
        if time.monotonic() >= self.part_due_s or len(spooled_paths(self.folder)) >= MOST_SPOOLED:
            self.write_parts()

    def write_parts(self) -> None:
        """Put the runs kept so far into parts."""
        if spooled_paths(self.folder):
            write_parts(self.folder)
        self.part_due_s = time.monotonic() + self.params.part_minutes * 60

    def has_clean(self, run: PlannedRun) -> bool:
        """Whether the run, or a repetition of it, was recorded undisturbed."""
        return any(self.statuses.get(run_id) == CLEAN for run_id in self._names(run))

    def left(self, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        """The runs that were never recorded to their end, disturbed or not, and have not failed in this call."""
        return [run for run in runs if run.run_id not in self.statuses and run.run_id not in self.errors]

    def repetition(self, n: int) -> list[PlannedRun]:
        """The n-th repetition of all runs that are not clean yet and were not repeated so often."""
        if self.params.conditions:  # what others did is recorded there, and nothing is repeated for it
            return []
        wanted = [run.again(n) for run in self.plan.runs if not self.has_clean(run)]
        return [run for run in wanted if run.run_id not in self.statuses]

    def _names(self, run: PlannedRun) -> list[str]:
        return [run.run_id, *(f"{run.run_id}{AGAIN}{n + 1}" for n in range(self.params.repeats))]
