"""A recording of recurring jobs on emulated machine types from end to end. The way in is `record_advice`."""

import contextlib
import logging
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.advice.record.parts import NODES, RunLedger
from tasks.advice.record.plan import (
    EmulatedType,
    Plan,
    PlannedRun,
    RecordParams,
    benchmarks_of,
    job_templates,
    make_plan,
)
from tasks.errors import BadSetting
from tasks.jobs.record.pool import OrderResult, WorkerPool, build_data
from tasks.jobs.record.templates import DATA_SETS, PARTS, MeasuredVertex, Order
from tasks.machine import ControlGroup, campaign_group, remove_scratch, scratch_folder
from tasks.nodes.record.bench import Bench
from tasks.nodes.record.campaign import end_leftovers, finished, keep_execution, parts_in
from tasks.nodes.record.control_groups import CONTROLLERS, PREFIX
from tasks.nodes.record.node_place import NodePlace, check_tools, make_place
from tasks.nodes.record.params import RecordParams as NodesParams
from tasks.nodes.record.plan import PlannedExecution
from tasks.nodes.tools import PARSERS
from tasks.record.campaign import Ledger, on_disk, recording
from tasks.record.facts import Usages, disturbance_between, known, machine_facts
from tasks.record.processes import io_of

DATA, PLACES, RESULT = "data", "types", "result"
NAP_S, READY_S = 1.0, 30.0
MINUTE_S = 60
SAME_TOOL = {"cpu-sysbench-one": "cpu-sysbench"}  # whose parser reads the log
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RecordSummary:
    """What a call did. planned, done, clean: runs of the campaign, those that have run so far, and those of them that
    were not disturbed; statuses: of the runs of this call; executions: of benchmarks, so far; unavailable: limits that
    do not work here, by type."""

    planned: int
    done: int
    clean: int
    statuses: dict[str, int]
    executions: int
    unavailable: dict[str, tuple[str, ...]]
    duration_s: float

    @property
    def is_complete(self) -> bool:
        """Whether every planned run has run."""
        return self.done == self.planned


def record_advice(params: RecordParams, out_dir: Path, *, lock: str | None = None) -> RecordSummary:
    """Record the plan of these parameters into out_dir; the next call with the same ones goes on where this one stops.

    Runs that others disturbed are flagged, and repeated at the end
    params.repeats times at most. When it ends, by return, exception or SIGTERM, every finished run is in a part and no
    process and no control group is left; after a kill the next call ends what is left of it. Raises BadSetting (no
    control groups here, another campaign in out_dir, another recording at work), MissingTool."""
    began_s = time.monotonic()
    check_tools(benchmarks_of(params), ())
    plan = make_plan(params)
    with recording("advice", out_dir, lock, wait_s=params.lock_wait_s):
        scratch = scratch_folder("advice", str(out_dir.resolve()), place=params.scratch, shared=on_disk())
        end_leftovers(scratch / PLACES)
        ledger = RunLedger(out_dir, params, plan, {"machine": machine_facts()})
        build_data(scratch / DATA, params.data_scale, params.seed)
        with _staged(params, scratch) as stage:
            session = Session(params, plan, ledger, scratch, stage)
            try:
                session.run(began_s + params.minutes * MINUTE_S)
            finally:
                session.close()
        summary = session.summary(time.monotonic() - began_s)
        if summary.is_complete:
            for name in (DATA, PLACES):  # a folder that was given stays, without what is ours
                shutil.rmtree(scratch / name, ignore_errors=True)
            remove_scratch(scratch, params.scratch)
        return summary


@dataclass(frozen=True)
class Stage:
    """What is set up on the machine. places, groups: by type, for benchmarks and for the workers of jobs."""

    group: ControlGroup
    places: Mapping[str, NodePlace]
    groups: Mapping[str, ControlGroup]
    pool: WorkerPool


@contextlib.contextmanager
def _staged(params: RecordParams, scratch: Path) -> Iterator[Stage]:
    """Every type's limits with a worker inside, all gone afterwards. Raises BadSetting without control groups."""
    with campaign_group(weight=params.cpu_weight, prefix=PREFIX, controllers=CONTROLLERS) as group:
        if group is None:
            raise BadSetting(
                "advice.record: no control groups here, so no machine type can be emulated; run it as root"
            )
        places: dict[str, NodePlace] = {}
        try:
            for number, kind in enumerate(params.types, start=1):
                places[kind.name] = make_place(
                    kind.as_node(), number, scratch / PLACES, group, is_emulated=True, has_network=False
                )
                places[kind.name].prepare(benchmarks_of(params))
            groups = {
                name: place.groups.node.child("jobs", shares_disk=True)
                for name, place in places.items()
                if place.groups
            }
            with WorkerPool(groups, scratch / DATA) as pool:
                yield Stage(group, places, groups, pool)
        finally:
            for place in places.values():
                place.remove()


class Session:
    """One call at work: takes the plan's runs and benchmarks in order, keeps each as it ends."""

    def __init__(self, params: RecordParams, plan: Plan, ledger: RunLedger, scratch: Path, stage: Stage) -> None:
        self.params, self.plan, self.ledger = params, plan, ledger
        self.scratch, self.stage = scratch, stage
        self.types = {one.name: one for one in params.types}
        self.usages = Usages(stage.group)
        self.bench = Bench(
            NodesParams(place="emulated", foreign_limit_ratio=params.foreign_limit_ratio),
            f"advice-{params.seed}",
            {one.benchmark: one for one in benchmarks_of(params)},
            stage.places,
            PARSERS | {name: PARSERS[tool] for name, tool in SAME_TOOL.items()},
            self.usages,
        )
        self.benchmarks: Ledger[PlannedExecution] = Ledger(
            parts_in(ledger.parts.folder / NODES, every_s=params.part_minutes * MINUTE_S),
            (plan.executions,),
            lambda one: one.id_in(self.bench.campaign),
            repeats=params.repeats,
        )
        self.benchmarks.begin({one.execution_id: one.status for one in finished(self.benchmarks.parts)})
        self.statuses: Counter[str] = Counter()

    def run(self, until_s: float) -> None:
        """Everything that is planned and not done, then what was disturbed, until a time (monotonic)."""
        for block in self._todo():
            for planned in block:
                if time.monotonic() >= until_s:
                    return
                if isinstance(planned, PlannedRun):
                    row = self._row(planned)
                    self.ledger.keep(planned, row)
                    self.statuses[row["status"]] += 1
                else:
                    outcome = self.bench.record(planned, None)
                    keep_execution(self.benchmarks.parts, outcome.execution, outcome.facts, self.ledger.record)
                    self.benchmarks.statuses[planned.id_in(self.bench.campaign)] = outcome.status

    def _todo(self) -> Iterator[Sequence[PlannedRun | PlannedExecution]]:
        """What is left of all blocks, in their order, then of each repetition."""
        for n in range(self.params.repeats + 1):
            if n == 0:
                left = {*self.ledger.left(self.plan.runs), *self.benchmarks.left(self.plan.executions)}
            else:
                left = {*self.ledger.repetition(n), *self.benchmarks.repetition(n)}
            yield [again for block in self.plan.blocks for one in block if (again := one.again(n)) in left]

    def _order(self, planned: PlannedRun, kind: EmulatedType) -> Order:
        template = job_templates()[planned.job]
        return Order(
            vertex_id=planned.run_id,
            sql=planned.sql,
            data_set=template.data_set,
            parts=planned.parts,
            source=template.source,
            databases=template.databases,
            result=str(self.scratch / DATA / RESULT),
            threads=kind.threads,
            memory_mb=round(kind.memory_mb * self.params.engine_memory_ratio),
            is_cold=True,  # a batch job finds nothing of its input in memory
        )

    def _row(self, planned: PlannedRun) -> dict[str, Any]:
        """Run it to its end, whatever that is, and say what it took."""
        kind, pool, group = self.types[planned.machine_type], self.stage.pool, self.stage.groups[planned.machine_type]
        self._wait_for(kind.name)
        pid = pool.workers[kind.name].process.pid
        used, cpu_s, moved = self.usages.now(), group.usage_s(), io_of(pid)
        pool.give(kind.name, self._order(planned, kind))
        answer, is_killed = self._answer(kind.name)
        cpu_s, disturbance = group.usage_s() - cpu_s, disturbance_between(used, self.usages.now())
        after = io_of(pid)
        (self.scratch / DATA / RESULT).unlink(missing_ok=True)
        told = MeasuredVertex(**answer.told) if answer.told is not None else None
        reason = "time limit" if is_killed else (told.error if told else answer.error)
        lived = told is not None and after and moved
        return {
            "run_id": planned.run_id,
            "attempt": planned.attempt,
            "job": planned.job,
            "machine_type": planned.machine_type,
            "role": planned.role,
            "run": planned.number,
            "block": planned.block,
            "started_at": datetime.fromtimestamp(answer.started_at, UTC).replace(tzinfo=None),
            "runtime_s": known(told.runtime_s if told else answer.ended_at - answer.started_at),
            "status": "killed" if is_killed else "failed" if reason else "completed",
            "reason": reason or None,
            "input_parts": planned.parts[1],
            "input_bytes": self._input_bytes(planned),
            "cpu_s": known(cpu_s),
            "read_bytes": float(after["read_bytes"] - moved["read_bytes"]) if lived else None,
            "written_bytes": float(after["write_bytes"] - moved["write_bytes"]) if lived else None,
            "peak_memory_bytes": float(told.peak_memory_bytes) if told else None,
            "buffer_bytes": float(told.buffer_bytes) if told and not reason else None,
            "spilled_bytes": float(told.temp_bytes) if told and not reason else None,
            "foreign_cores": known(disturbance.foreign_cores),
            "steal_cores": known(disturbance.steal_cores),
            "is_disturbed": disturbance.exceeds(self.params.foreign_limit_ratio),
        }

    def _wait_for(self, slot: str) -> None:
        """A worker that replaces a dead one has to start first. Raises RecorderFailed."""
        ends_s = time.monotonic() + READY_S
        while not self.stage.pool.is_idle(slot) and time.monotonic() < ends_s:
            list(self.stage.pool.collect(NAP_S))

    def _answer(self, slot: str) -> tuple[OrderResult, bool]:
        """What becomes of the slot's order, and whether it was killed at the time limit."""
        ends_s, is_killed = time.monotonic() + self.params.time_limit_s, False
        while True:
            for answer in self.stage.pool.collect(max(0.0, min(NAP_S, ends_s - time.monotonic()))):
                if answer.slot == slot:
                    return answer, is_killed
            if not is_killed and time.monotonic() >= ends_s:
                self.stage.pool.kill(slot)
                ends_s, is_killed = ends_s + READY_S, True

    def _input_bytes(self, planned: PlannedRun) -> float:
        template, (first, n), folder = job_templates()[planned.job], planned.parts, self.scratch / DATA
        if template.source == "table":
            return (folder / f"{template.databases[0]}.duckdb").stat().st_size * n / PARTS
        data_set = DATA_SETS[template.data_set]
        return float(sum((folder / data_set.path(part)).stat().st_size for part in range(first, first + n)))

    def close(self) -> None:
        """Write what is left."""
        self.ledger.parts.close()
        self.benchmarks.parts.close()

    def summary(self, duration_s: float) -> RecordSummary:
        """What this call did."""
        return RecordSummary(
            planned=len(self.plan.runs),
            done=self.ledger.n_done,
            clean=self.ledger.n_clean,
            statuses=dict(self.statuses),
            executions=len(self.benchmarks.statuses),
            unavailable={name: tuple(place.faults) for name, place in self.stage.places.items() if place.faults},
            duration_s=duration_s,
        )
