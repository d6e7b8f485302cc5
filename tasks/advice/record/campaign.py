"""A recording of recurring jobs on emulated machine types from end to end. The way in is `record_advice`.

    campaign.json            types, prices, jobs and deadlines, written before anything runs
    history-NNNN.parquet     runs on the first type that an answer may see
    held-back-NNNN.parquet   runs on every type for the check alone
    nodes/                   executions of the benchmarks, as `nodes record` leaves them

A finished run is a file of its own at once, and a row of a part some minutes later."""

import contextlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tasks.advice.record.plan import (
    Plan,
    PlannedRun,
    RecordParams,
    Role,
    attempt_id,
    benchmarks_of,
    job_templates,
    make_plan,
)
from tasks.errors import BadInput, BadSetting
from tasks.jobs.record.pool import OrderResult, WorkerPool, build_data
from tasks.jobs.record.templates import DATA_SETS, PARTS
from tasks.machine import ControlGroup, campaign_group, remove_scratch, scratch_folder
from tasks.nodes.record.bench import Bench
from tasks.nodes.record.campaign import KEYS, done_in, end_leftovers, keep_execution, parts_in
from tasks.nodes.record.control_groups import CONTROLLERS, PREFIX
from tasks.nodes.record.node_place import NodePlace, check_tools, make_place
from tasks.nodes.record.params import RecordParams as NodesParams
from tasks.nodes.record.plan import PlannedExecution
from tasks.nodes.tools import PARSERS
from tasks.record.campaign import Ledger, in_time, on_disk, recording
from tasks.record.facts import disturbance_between, known, machine_facts, usage_now
from tasks.record.parts import CLEAN, Parts, Record, check_same, deciding, part_paths, read_table, write_json
from tasks.record.processes import io_of

CAMPAIGN, NODES = "campaign.json", "nodes"
KEY = ("run_id", "attempt")
STEMS: Mapping[Role, str] = {"history": "history", "held_back": "held-back"}
UNIMPORTANT = frozenset({"minutes", "part_minutes", "scratch", "repeats", "cpu_weight", "lock_wait_s"})
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "run_id": (pa.string(), "job, type, role and number; the same for all attempts"),
    "attempt": (pa.int32(), "0, or which repetition of a flagged run"),
    "job": (pa.string(), "recurring job"),
    "machine_type": (pa.string(), "emulated machine type"),
    "role": (pa.string(), "history: an answer may see it; held_back: for the check alone"),
    "run": (pa.int32(), "number of the run, of this job on this type in this role"),
    "block": (pa.int32(), "stretch of the campaign"),
    "started_at": (pa.timestamp("us"), "start, UTC"),
    "runtime_s": (pa.float64(), "from the engine's first step to its last, or until it failed, in seconds"),
    "status": (pa.string(), "completed, failed, or killed at the time limit"),
    "reason": (pa.string(), "why it did not complete"),
    "input_parts": (pa.int32(), "parts of the data set that it read"),
    "input_bytes": (pa.float64(), "size of these parts on disk"),
    "cpu_s": (pa.float64(), "CPU seconds of its control group"),
    "read_bytes": (pa.float64(), "bytes that the disk delivered; null if its process was killed"),
    "written_bytes": (pa.float64(), "bytes written through the page cache; null if its process was killed"),
    "peak_memory_bytes": (pa.float64(), "largest resident size of its process, about 90 MB of it the program itself"),
    "buffer_bytes": (pa.float64(), "most that the engine held in its buffers"),
    "spilled_bytes": (pa.float64(), "most that the engine held in temporary files"),
    "foreign_cores": (pa.float64(), "processors that others used meanwhile, mean"),
    "steal_cores": (pa.float64(), "processors that the hypervisor took meanwhile, mean"),
    "is_disturbed": (pa.bool_(), "whether either was more than the threshold"),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
MB_PER_GB = 1000
EXPECTED, FIX = "parts of `whorl advice record`", "name the folder of a recording"
Row = dict[str, Any]


class RunLedger(Ledger[PlannedRun]):
    """The runs that a folder holds. facts: for the record of each part, and of the campaign, which is written down
    before it runs. Raises BadSetting if the folder holds another campaign, BadInput."""

    def __init__(self, folder: Path, params: RecordParams, plan: Plan, facts: Mapping[str, Any]) -> None:
        parts = Parts(folder, tuple(STEMS.values()), kind_of=_kind_of, key=KEY, every_s=params.part_minutes * 60)
        super().__init__(parts, (plan.runs,), lambda run: run.attempt_id, repeats=params.repeats)
        path, digest = folder / CAMPAIGN, plan.digest()
        self.record = {"plan": digest, "params": deciding(params, UNIMPORTANT), **facts}
        if path.exists():
            check_same(path, read_campaign(folder), params, UNIMPORTANT, digest)
        else:
            write_json(path, self.record)
        rows = [row for _, table, _ in parts.recorded(("is_disturbed",)) for row in table.to_pylist()]
        flags = {attempt_id(row["run_id"], row["attempt"]): row["is_disturbed"] for row in rows}
        self.begin({run_id: "disturbed" if is_disturbed else CLEAN for run_id, is_disturbed in flags.items()})

    def keep(self, planned: PlannedRun, row: Row) -> None:
        """Write a finished run down."""
        status = "disturbed" if row["is_disturbed"] else CLEAN
        self.add(planned.attempt_id, pa.Table.from_pylist([row], schema=SCHEMA), self.record, status)


def _kind_of(table: pa.Table, _: Record) -> str:
    role: Role = table["role"][0].as_py()
    return STEMS[role]


def read_campaign(folder: Path) -> Row:
    """What was written down before the campaign ran. Raises BadInput."""
    path = folder / CAMPAIGN
    try:
        record: Row = json.loads(path.read_text())
        _ = record["plan"], record["params"]["types"], record["params"]["jobs"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadInput(path, f"cannot be read ({problem})", EXPECTED, FIX) from problem
    return record


def read_rows(folder: Path, role: Role) -> list[Row]:
    """All rows of a role in the order of its parts, every attempt of a run. Raises BadInput for a broken part."""
    rows: list[Row] = []
    for path in part_paths(folder, [STEMS[role]]):
        rows += read_table(path, SCHEMA.names, expected=EXPECTED)[0].cast(SCHEMA).to_pylist()
    return rows


def read_runs(folder: Path, role: Role) -> pd.DataFrame:
    """One row a run of a role, with the columns of COLUMNS: its first attempt that was not disturbed, else its first.

    Raises BadInput where there is none, or a part is broken."""
    rows = sorted(read_rows(folder, role), key=lambda row: (row["is_disturbed"], row["attempt"]))
    if not rows:
        raise BadInput(folder, f"no {STEMS[role]}-NNNN.parquet", EXPECTED, FIX)
    runs = pd.DataFrame(rows, columns=SCHEMA.names).drop_duplicates("run_id")
    return runs.sort_values(["job", "machine_type", "run"], ignore_index=True)


def read_executions(folder: Path) -> pd.DataFrame:
    """The benchmarks of a recording: machine_type, benchmark, metric, value, unit, started_at; one row a metric.

    Also of executions that were disturbed. Raises BadInput."""
    rows: list[Row] = []
    columns = ("machine_type", "benchmark", "started_at", "status", "metrics")
    for path in part_paths(folder / NODES, ("executions", "flagged")):
        for execution in read_table(path, columns, expected=EXPECTED)[0].to_pylist():
            about = {key: execution[key] for key in ("machine_type", "benchmark", "started_at")}
            rows += [about | metric for metric in execution["metrics"] or () if execution["status"] == "completed"]
    if not rows:
        raise BadInput(folder / NODES, "no executions", EXPECTED, FIX)
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class CampaignRecording:
    """What an answer may see of a campaign. machines: machine_type, vcpu, memory_gb, price_per_h; history: runs on the
    first type; executions: of the benchmarks; multiples: deadline of each job over its median on the first type."""

    machines: pd.DataFrame
    history: pd.DataFrame
    executions: pd.DataFrame
    multiples: Mapping[str, float]


def read_recording(folder: Path) -> CampaignRecording:
    """All of a recording but what is held back. Raises BadInput."""
    params = read_campaign(folder)["params"]
    types = pd.DataFrame(params["types"]).rename(columns={"name": "machine_type", "price_per_hour": "price_per_h"})
    machines = types.assign(vcpu=types["cores"].astype(float), memory_gb=types["memory_mb"] / MB_PER_GB)
    return CampaignRecording(
        machines[["machine_type", "vcpu", "memory_gb", "price_per_h"]],
        read_runs(folder, "history"),
        read_executions(folder),
        {job["template"]: float(job["deadline_multiple"]) for job in params["jobs"]},
    )


DATA, PLACES, RESULT = "data", "types", "result"
NAP_S, READY_S = 1.0, 30.0
MINUTE_S = 60
SAME_TOOL = {"cpu-sysbench-one": "cpu-sysbench"}  # whose parser reads the log


def record_advice(params: RecordParams, out_dir: Path) -> dict[str, Any]:
    """Record the plan of these parameters into out_dir; the next call with the same ones goes on where this one stops.

    Returns n_planned, n_done, n_clean: runs of the campaign, those that have run so far, and those of them that were
    not disturbed; statuses: of the runs of this call; n_executions: of benchmarks, so far; unavailable: limits that do
    not work here, by type. What others disturbed is flagged, and repeated at the end params.repeats times at most.

    When it ends, by return, exception or SIGTERM, every finished run is in a part and no process and no control group
    is left; after a kill the next call ends what is left of it. Raises BadSetting (no control groups here, another
    campaign in out_dir, another recording at work), MissingTool."""
    ends_s = time.monotonic() + params.minutes * MINUTE_S
    check_tools(benchmarks_of(params), ())
    plan = make_plan(params)
    with recording("advice", out_dir, wait_s=params.lock_wait_s):
        scratch = scratch_folder("advice", str(out_dir.resolve()), place=params.scratch, shared=on_disk())
        end_leftovers(scratch / PLACES)
        ledger = RunLedger(out_dir, params, plan, {"machine": machine_facts()})
        build_data(scratch / DATA, params.data_scale, params.seed)
        with _staged(params, scratch) as (group, places, pool):
            session = Session(params, plan, ledger, scratch, group, places, pool)
            try:
                session.run(ends_s)
            finally:
                ledger.parts.close()
                session.benchmarks.parts.close()
        n_done = sum(run.attempt_id in ledger.statuses for run in ledger.runs)
        if n_done == len(plan.runs):
            for name in (DATA, PLACES):  # a folder that was given stays, without what is ours
                shutil.rmtree(scratch / name, ignore_errors=True)
            remove_scratch(scratch, params.scratch)
        return {
            "n_planned": len(plan.runs),
            "n_done": n_done,
            "n_clean": ledger.n_clean,
            "statuses": dict(session.statuses),
            "n_executions": len(session.benchmarks.statuses),
            "unavailable": {name: place.faults for name, place in places.items() if place.faults},
        }


@contextlib.contextmanager
def _staged(params: RecordParams, scratch: Path) -> Iterator[tuple[ControlGroup, Mapping[str, NodePlace], WorkerPool]]:
    """Every type's limits with a worker inside, all gone afterwards. Raises BadSetting without control groups."""
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(campaign_group(weight=params.cpu_weight, prefix=PREFIX, controllers=CONTROLLERS))
        if group is None:
            raise BadSetting(
                "advice.record: no control groups here, so no machine type can be emulated; run it as root"
            )
        places: dict[str, NodePlace] = {}
        for number, kind in enumerate(params.types, start=1):
            place = places[kind.name] = make_place(
                kind.as_node(), number, scratch / PLACES, group, is_emulated=True, has_network=False
            )
            stack.callback(place.remove)
            place.prepare(benchmarks_of(params))
        slots = {
            name: place.groups.node.child("jobs", shares_disk=True) for name, place in places.items() if place.groups
        }
        yield group, places, stack.enter_context(WorkerPool(slots, scratch / DATA))


class Session:
    """One call at work: takes the plan's runs and benchmarks in order, keeps each as it ends. places: by type."""

    def __init__(
        self,
        params: RecordParams,
        plan: Plan,
        ledger: RunLedger,
        scratch: Path,
        group: ControlGroup,
        places: Mapping[str, NodePlace],
        pool: WorkerPool,
    ) -> None:
        self.params, self.plan, self.ledger, self.pool = params, plan, ledger, pool
        self.data, self.result = scratch / DATA, scratch / DATA / RESULT
        self.bench = Bench(
            NodesParams(place="emulated", foreign_limit_ratio=params.foreign_limit_ratio),
            f"advice-{params.seed}",
            {template.benchmark: template for template in benchmarks_of(params)},
            places,
            PARSERS | {name: PARSERS[tool] for name, tool in SAME_TOOL.items()},
            group,
        )
        self.benchmarks: Ledger[PlannedExecution] = Ledger(
            parts_in(ledger.parts.folder / NODES, every_s=params.part_minutes * MINUTE_S),
            (plan.executions,),
            lambda planned: planned.id_in(self.bench.campaign),
            repeats=params.repeats,
        )
        for _, table, record in self.benchmarks.parts.recorded(KEYS):
            self.benchmarks.begin({run: done.status for run, done in done_in(table, record).items()})
        self.statuses: Counter[str] = Counter()

    def run(self, ends_s: float) -> None:
        """Everything that is planned and not done, then what was disturbed, until a time (monotonic)."""
        for planned in in_time(self._todo(), ends_s):
            if isinstance(planned, PlannedRun):
                row = self._row(planned)
                self.ledger.keep(planned, row)
                self.statuses[row["status"]] += 1
            else:
                keep_execution(self.benchmarks, self.bench.record(planned, None), self.ledger.record)

    def _todo(self) -> Iterator[PlannedRun | PlannedExecution]:
        """What is left of all blocks, in their order, then of each repetition."""
        for n, (runs, executions) in enumerate(zip(self.ledger.todo(), self.benchmarks.todo(), strict=True)):
            left = {*runs, *executions}
            yield from (again for planned in chain(*self.plan.blocks) if (again := planned.again(n)) in left)

    def _row(self, planned: PlannedRun) -> dict[str, Any]:
        """Run it to its end, whatever that is, and say what it took."""
        kind = next(kind for kind in self.params.types if kind.name == planned.machine_type)
        group = self.pool.slots[kind.name]
        if group is None:
            raise ValueError(f"{kind.name}: no control group; expected that of the type")
        self._wait_for(kind.name)
        pid = self.pool.workers[kind.name].process.pid
        used, cpu_s, moved = usage_now(self.bench.group), group.usage_s(), io_of(pid)
        order = job_templates()[planned.job].order(
            planned.run_id,
            planned.sql,
            planned.parts,
            result=str(self.result),
            threads=kind.threads,
            memory_mb=round(kind.memory_mb * self.params.engine_memory_ratio),
            is_cold=True,  # a batch job finds nothing of its input in memory
        )
        self.pool.give(kind.name, order)
        answer, is_killed = self._answer(kind.name)
        cpu_s, disturbance = group.usage_s() - cpu_s, disturbance_between(used, usage_now(self.bench.group))
        after = io_of(pid)
        self.result.unlink(missing_ok=True)
        vertex = answer.vertex
        reason = "time limit" if is_killed else (vertex.error if vertex else answer.error)
        lived = vertex is not None and after and moved
        return {
            "run_id": planned.run_id,
            "attempt": planned.attempt,
            "job": planned.job,
            "machine_type": planned.machine_type,
            "role": planned.role,
            "run": planned.number,
            "block": planned.block,
            "started_at": datetime.fromtimestamp(answer.started_at, UTC).replace(tzinfo=None),
            "runtime_s": known(vertex.runtime_s if vertex else answer.ended_at - answer.started_at),
            "status": "killed" if is_killed else "failed" if reason else "completed",
            "reason": reason or None,
            "input_parts": planned.parts[1],
            "input_bytes": self._input_bytes(planned),
            "cpu_s": known(cpu_s),
            "read_bytes": float(after["read_bytes"] - moved["read_bytes"]) if lived else None,
            "written_bytes": float(after["write_bytes"] - moved["write_bytes"]) if lived else None,
            "peak_memory_bytes": float(vertex.peak_memory_bytes) if vertex else None,
            "buffer_bytes": float(vertex.buffer_bytes) if vertex and not reason else None,
            "spilled_bytes": float(vertex.temp_bytes) if vertex and not reason else None,
            "foreign_cores": known(disturbance.foreign_cores),
            "steal_cores": known(disturbance.steal_cores),
            "is_disturbed": disturbance.exceeds(self.params.foreign_limit_ratio),
        }

    def _wait_for(self, slot: str) -> None:
        """A worker that replaces a dead one has to start first. Raises RecorderFailed."""
        ends_s = time.monotonic() + READY_S
        while not self.pool.is_idle(slot) and time.monotonic() < ends_s:
            list(self.pool.collect(NAP_S))

    def _answer(self, slot: str) -> tuple[OrderResult, bool]:
        """What becomes of the slot's order, and whether it was killed at the time limit."""
        ends_s, is_killed = time.monotonic() + self.params.time_limit_s, False
        while True:
            for answer in self.pool.collect(max(0.0, min(NAP_S, ends_s - time.monotonic()))):
                if answer.slot == slot:
                    return answer, is_killed
            if not is_killed and time.monotonic() >= ends_s:
                self.pool.kill(slot)
                ends_s, is_killed = ends_s + READY_S, True

    def _input_bytes(self, planned: PlannedRun) -> float:
        template, (first, n), folder = job_templates()[planned.job], planned.parts, self.data
        if template.source == "table":
            return (folder / f"{template.databases[0]}.duckdb").stat().st_size * n / PARTS
        data_set = DATA_SETS[template.data_set]
        return float(sum((folder / data_set.path(part)).stat().st_size for part in range(first, first + n)))
