"""What a story's campaign leaves in its folder: a plan, runs that an answer may see, runs held back, benchmarks.

    campaign.json            types, prices, jobs and deadlines, written before anything runs
    history-NNNN.parquet     runs on the first type that an answer may see
    held-back-NNNN.parquet   runs on every type for the check alone
    nodes/                   executions of the benchmarks, as `nodes record` leaves them

A finished run is a file of its own at once, and a row of a part some minutes later."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tasks.advice.record.plan import Plan, PlannedRun, RecordParams, Role, attempt_id
from tasks.errors import BadInput
from tasks.record.campaign import Ledger
from tasks.record.parts import Parts, Record, check_same, deciding, part_paths, read_json, read_table, write_json
from tasks.record.plan import CLEAN

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
EXPECTED = "parts of `whorl advice record`"
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
        told = {attempt_id(row["run_id"], row["attempt"]): row["is_disturbed"] for row in rows}
        self.begin({run_id: "disturbed" if is_disturbed else CLEAN for run_id, is_disturbed in told.items()})

    @property
    def n_done(self) -> int:
        """How many runs of the plan have run, at once."""
        return sum(run.attempt_id in self.statuses for run in self.runs)

    def keep(self, planned: PlannedRun, row: Row) -> None:
        """Write a finished run down."""
        self.parts.keep(planned.attempt_id, pa.Table.from_pylist([row], schema=SCHEMA), self.record)
        self.statuses[planned.attempt_id] = "disturbed" if row["is_disturbed"] else CLEAN


def _kind_of(table: pa.Table, _: Record) -> str:
    role: Role = table["role"][0].as_py()
    return STEMS[role]


def read_campaign(folder: Path) -> Row:
    """What was written down before the campaign ran. Raises BadInput."""

    def needed(told: Row) -> object:
        return told["plan"], told["params"]["types"], told["params"]["jobs"]

    return read_json(folder / CAMPAIGN, needed, EXPECTED, "name the folder of a recording")


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
        raise BadInput(folder, f"no {STEMS[role]}-NNNN.parquet", EXPECTED, "name the folder of a recording")
    runs = pd.DataFrame(rows, columns=SCHEMA.names).drop_duplicates("run_id")
    return runs.sort_values(["job", "machine_type", "run"], ignore_index=True)


def machines_of(campaign: Mapping[str, Any]) -> pd.DataFrame:
    """The machine types of a campaign: machine_type, vcpu, memory_gb, price_per_h."""
    rows = [
        {
            "machine_type": one["name"],
            "vcpu": float(one["cores"]),
            "memory_gb": one["memory_mb"] / MB_PER_GB,
            "price_per_h": float(one["price_per_hour"]),
        }
        for one in campaign["params"]["types"]
    ]
    return pd.DataFrame(rows)


def deadline_multiples(campaign: Mapping[str, Any]) -> dict[str, float]:
    """The deadline of each job as a multiple of its median runtime on the first type."""
    return {one["template"]: float(one["deadline_multiple"]) for one in campaign["params"]["jobs"]}


def read_executions(folder: Path, *, with_flagged: bool = False) -> pd.DataFrame:
    """The benchmarks of a recording: machine_type, benchmark, metric, value, unit, started_at; one row a metric.

    with_flagged: also of executions that were disturbed. Raises BadInput."""
    rows: list[Row] = []
    columns = ("machine_type", "benchmark", "started_at", "status", "metrics")
    for path in part_paths(folder / NODES, ("executions", "flagged") if with_flagged else ("executions",)):
        for one in read_table(path, columns, expected=EXPECTED)[0].to_pylist():
            about = {key: one[key] for key in ("machine_type", "benchmark", "started_at")}
            rows += [about | metric for metric in one["metrics"] or () if one["status"] == "completed"]
    if not rows:
        raise BadInput(folder / NODES, "no executions", EXPECTED, "name the folder of a recording")
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class CampaignRecording:
    """What an answer may see of a campaign. machines: as machines_of; history: runs on the first type; executions: of
    the benchmarks; multiples: deadline of each job over its median on the first type."""

    machines: pd.DataFrame
    history: pd.DataFrame
    executions: pd.DataFrame
    multiples: Mapping[str, float]


def read_recording(folder: Path) -> CampaignRecording:
    """All of a recording but what is held back. Raises BadInput."""
    campaign = read_campaign(folder)
    return CampaignRecording(
        machines_of(campaign), read_runs(folder, "history"), read_executions(folder, with_flagged=True),
        deadline_multiples(campaign),
    )  # fmt: skip
