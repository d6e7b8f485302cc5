"""What a story's campaign leaves in its folder: a plan, runs that an answer may see, runs held back, benchmarks.

    campaign.json            types, prices, jobs and deadlines, written before anything runs
    history-NNNN.parquet     runs on the first type that an answer may see
    held-back-NNNN.parquet   runs on every type for the check alone
    nodes/                   executions of the benchmarks, as `nodes record` leaves them

A finished run is a line of JSON at once, and a row of a part some minutes later."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.advice.record.plan import Plan, RecordParams, Role
from tasks.errors import BadInput, BadSetting

CAMPAIGN, SPOOL, NODES = "campaign.json", "finished.jsonl", "nodes"
STEMS: Mapping[Role, str] = {"history": "history", "held_back": "held-back"}
RECORD_KEY = b"whorl.record"
UNIMPORTANT = ("minutes", "part_minutes", "scratch", "repeats", "cpu_weight", "lock_wait_s")
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


def deciding(params: RecordParams) -> Row:
    """The parameters that decide a campaign: not how long a call goes on, nor where its scratch folder is."""
    return params.model_dump(mode="json", exclude=set(UNIMPORTANT))


def begin(folder: Path, params: RecordParams, plan: Plan, facts: Mapping[str, Any]) -> None:
    """Write the campaign down before it runs, or check that the folder's is the same. Raises BadSetting, BadInput."""
    path = folder / CAMPAIGN
    if not path.exists():
        told = {"plan": plan.digest(), "params": deciding(params), **facts}
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(told, indent=1) + "\n")
        temporary.replace(path)
        return
    theirs = read_campaign(folder)
    if theirs["plan"] != plan.digest():
        ours = deciding(params)
        differing = [key for key in ours if theirs["params"].get(key) != ours[key]] or ["its version of whorl"]
        raise BadSetting(
            f"{path}: belongs to a campaign with other parameters ({', '.join(differing)}); "
            "expected the same ones to continue it; use another folder"
        )


def read_campaign(folder: Path) -> Row:
    """What was written down before the campaign ran. Raises BadInput."""
    path = folder / CAMPAIGN
    try:
        told: Row = json.loads(path.read_text())
        told["plan"], told["params"]["types"], told["params"]["jobs"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadInput(path, f"cannot be read ({problem})", EXPECTED, "name the folder of a recording") from problem
    return told


class Ledger:
    """The runs that a folder holds. done: keys of the attempts that have finished; clean: ids of the runs of which
    some attempt was not disturbed."""

    def __init__(self, folder: Path, record: Mapping[str, Any]) -> None:
        self.folder, self.record = folder, dict(record)
        self._waiting = _spooled(folder / SPOOL)
        rows = [*read_rows(folder, "history"), *read_rows(folder, "held_back"), *self._waiting]
        self.done = {(row["run_id"], row["attempt"]) for row in rows}
        self.clean = {row["run_id"] for row in rows if not row["is_disturbed"]}

    def keep(self, row: Row) -> None:
        """Write a finished run down."""
        with (self.folder / SPOOL).open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._waiting.append(row)
        self.done.add((row["run_id"], row["attempt"]))
        if not row["is_disturbed"]:
            self.clean.add(row["run_id"])

    def write_parts(self) -> None:
        """Put the runs kept so far into parts; each appears whole or not at all, and no run stands in two."""
        for role, stem in STEMS.items():
            held = {(row["run_id"], row["attempt"]) for row in read_rows(self.folder, role)}
            ours = [row for row in self._waiting if row["role"] == role and (row["run_id"], row["attempt"]) not in held]
            if ours:
                _write(self.folder, stem, ours, self.record)
        (self.folder / SPOOL).unlink(missing_ok=True)
        self._waiting = []


def _spooled(path: Path) -> list[Row]:
    """The finished runs that are in no part yet; a last line that was cut off is a run that did not finish."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            try:
                rows.append(json.loads(line))
            except ValueError as problem:
                raise BadInput(path, "a line is no JSON", "finished runs", "remove the line") from problem
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))  # or the next line would follow the torn one
    return rows


def _write(folder: Path, stem: str, rows: Sequence[Row], record: Mapping[str, Any]) -> None:
    taken = [int(path.stem.rpartition("-")[2]) for path in folder.glob(f"{stem}-[0-9]*.parquet")]
    path = folder / f"{stem}-{max(taken, default=0) + 1:04d}.parquet"
    timed = [row | {"started_at": datetime.fromisoformat(row["started_at"])} for row in rows]
    schema = SCHEMA.with_metadata({RECORD_KEY: json.dumps(dict(record)).encode()})
    temporary = path.with_suffix(".tmp")
    pq.write_table(pa.Table.from_pylist(timed, schema=schema), temporary, compression="zstd", compression_level=9)
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(path)


def read_rows(folder: Path, role: Role) -> list[Row]:
    """All rows of a role in the order of its parts, every attempt of a run. Raises BadInput for a broken part."""
    rows: list[Row] = []
    for path in sorted(folder.glob(f"{STEMS[role]}-[0-9]*.parquet")):
        try:
            rows += pq.read_table(path).select(SCHEMA.names).cast(SCHEMA).to_pylist()
        except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
            told = " ".join(str(problem).split())
            raise BadInput(path, f"cannot be read ({told})", EXPECTED, "move it away") from problem
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
    stems: Iterable[str] = ("executions", "flagged") if with_flagged else ("executions",)
    rows: list[Row] = []
    for path in (path for stem in stems for path in sorted((folder / NODES).glob(f"{stem}-[0-9]*.parquet"))):
        try:
            read = pq.read_table(path, columns=["machine_type", "benchmark", "started_at", "status", "metrics"])
        except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
            raise BadInput(path, f"cannot be read ({problem})", EXPECTED, "move it away") from problem
        for one in read.to_pylist():
            about = {key: one[key] for key in ("machine_type", "benchmark", "started_at")}
            rows += [about | metric for metric in one["metrics"] or () if one["status"] == "completed"]
    if not rows:
        raise BadInput(folder / NODES, "no executions", EXPECTED, "name the folder of a recording")
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Recording:
    """What an answer may see of a campaign. machines: as machines_of; history: runs on the first type; executions: of
    the benchmarks; multiples: deadline of each job over its median on the first type."""

    machines: pd.DataFrame
    history: pd.DataFrame
    executions: pd.DataFrame
    multiples: Mapping[str, float]


def read_recording(folder: Path) -> Recording:
    """All of a recording but what is held back. Raises BadInput."""
    campaign = read_campaign(folder)
    return Recording(
        machines_of(campaign), read_runs(folder, "history"), read_executions(folder, with_flagged=True),
        deadline_multiples(campaign),
    )  # fmt: skip
