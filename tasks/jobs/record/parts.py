"""Part files: finished runs in whorl's own format, written under a temporary name and renamed."""

import json
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput, BadSetting
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.jobs.record.params import Campaign
from tasks.jobs.record.plan import Plan

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


def recorded_params(params: Campaign) -> dict[str, Any]:
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


def finished_ids(folder: Path, params: Campaign, plan: Plan) -> set[str]:
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


class PartWriter:
    """Keeps rows until `flush`, which hands them to a thread; all are written when the block ends, however it ends."""

    def __init__(self, folder: Path, record: dict[str, Any]) -> None:
        """record: how the runs were made, kept as metadata of each part."""
        self.folder, self.record = folder, record
        self._rows: dict[str, deque[dict[str, Any]]] = {kind: deque() for kind in KINDS}
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        self._thread.shutdown()
        self._check()

    def add(self, row: dict[str, Any]) -> None:
        """Keep a finished run."""
        self._rows[kind_of(row)].append(row)

    def flush(self) -> None:
        """Have everything kept so far written. Raises what an earlier write failed with."""
        if self._writing is not None and self._writing.done():
            self._check()
        self._writing = self._thread.submit(self._write)

    def _check(self) -> None:
        if self._writing is not None:
            self._writing.result()

    def _write(self) -> None:
        for kind, rows in self._rows.items():
            taken = list(rows)
            if taken:
                write_part(self.folder, kind, taken, self.record)
            for _ in taken:  # only now: what a failed write holds is written by the next one
                rows.popleft()
