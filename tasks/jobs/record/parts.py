"""Part files: finished runs in whorl's own format, written under a temporary name and renamed."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput, BadSetting
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.whatifs import Plan

KINDS = ("runs", "pairs")  # pairs: matched pairs of what-ifs, kept apart from the jobs' own runs
PATTERN = "{kind}-[0-9][0-9][0-9][0-9].parquet"
RECORD_KEY = b"whorl.record"
DERIVED = ("group_key", "place")  # the reader makes them
# beyond the columns of jobs.runs; readers ignore them
EXTRA_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "job": (pa.string(), "name of the recurring job, without what changes from run to run"),
    "template": (pa.string(), "template that the job was made from"),
    "sizing": (pa.string(), "how the job's input changes from run to run"),
    "input_parts": (pa.int32(), "parts of the data set that the run was given"),
    "typical_parts": (pa.int32(), "parts that an everyday run of the job reads"),
    "takes_spare": (pa.bool_(), "whether the run takes spare tokens"),
    "is_cold": (pa.bool_(), "whether the input was dropped from the page cache before each vertex"),
    "input_rows": (pa.float64(), "rows that the scans read"),
    "written_bytes": (pa.float64(), "bytes that the engine wrote, spilled ones included"),
    "disk_read_bytes": (pa.float64(), "bytes that came from the disk and not from the page cache"),
    "lock_wait_s": (pa.float64(), "time spent waiting for a database's lock, summed over the vertices, seconds"),
    "load_levels": (pa.string(), "background load at submission, SKU by SKU: kind and percent of the SKU"),
    "load_1m": (pa.float64(), "load average of the machine over a minute, at submission"),
    "busy_cores": (pa.float64(), "cores in use on the machine, mean of the 5 s before submission"),
    "foreign_cores": (pa.float64(), "cores in use by others than the recorder, mean of the 5 s before submission"),
    "steal_cores": (pa.float64(), "cores taken by the hypervisor, mean of the 5 s before submission"),
    "cpu_pressure_pct": (pa.float64(), "pressure-stall share of the CPU over 10 s, at submission, percent"),
    "running_jobs": (pa.int32(), "other jobs of the recorder that held tokens at submission"),
    "error": (pa.string(), "first line of the error of a run that did not complete"),
}
SCHEMA = pa.schema(
    [
        *(field for field in RUNS_SCHEMA if field.name not in DERIVED),
        *((name, kind) for name, (kind, _) in EXTRA_COLUMNS.items()),
    ]
)


def recorded_params(params: RecordParams) -> dict[str, Any]:
    """The parameters that decide a campaign: all but its pace, how long a call goes on, and its scratch folder."""
    return params.model_dump(mode="json", exclude={"scratch", "minutes", "part_minutes", "most_waiting"})


def part_paths(folder: Path) -> list[Path]:
    """The part files of a folder, in order."""
    return [path for kind in KINDS for path in sorted(folder.glob(PATTERN.format(kind=kind)))]


def kind_of(run: dict[str, Any]) -> str:
    """Which files a run belongs into."""
    return "pairs" if run["what_if"] else "runs"


def write_part(folder: Path, kind: str, runs: Sequence[dict[str, Any]], record: dict[str, Any]) -> Path:
    """Write the next part file of a kind; it appears whole or not at all. record: how the runs were made, kept as
    metadata."""
    taken = [int(path.stem.partition("-")[2]) for path in folder.glob(PATTERN.format(kind=kind))]
    path = folder / f"{kind}-{max(taken, default=0) + 1:04d}.parquet"
    schema = SCHEMA.with_metadata({RECORD_KEY: json.dumps(record).encode()})
    temporary = path.with_suffix(".tmp")
    pq.write_table(pa.Table.from_pylist(list(runs), schema=schema), temporary, compression="zstd")
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(path)
    return path


def finished_ids(folder: Path, params: RecordParams, plan: Plan) -> set[str]:
    """Ids of the runs that earlier parts of the same campaign hold.

    Raises BadSetting if the folder holds a campaign with other parameters, BadInput if a part cannot be read.
    """
    ids: set[str] = set()
    for path in part_paths(folder):
        try:
            table = pq.read_table(path, columns=["run_id"])
        except (pa.ArrowInvalid, OSError) as problem:
            expected = "a part file of the recorder"
            raise BadInput(path, f"cannot be read ({problem})", expected, "move it away") from problem
        record = json.loads((table.schema.metadata or {}).get(RECORD_KEY, b"{}"))
        theirs, ours = record.get("params") or {}, recorded_params(params)
        if {key: theirs.get(key) for key in ours} != ours:
            differing = sorted(key for key in ours if theirs.get(key) != ours[key])
            raise BadSetting(
                f"{path}: belongs to a campaign with other parameters ({', '.join(differing)}); "
                "expected the same ones to continue it; use another folder or move its parts away"
            )
        if record.get("plan", plan.digest()) != plan.digest():
            raise BadSetting(
                f"{path}: was planned by another version of whorl, whose jobs differ; "
                "expected the same plan to continue it; use another folder or move its parts away"
            )
        ids.update(table["run_id"].to_pylist())
    return ids
