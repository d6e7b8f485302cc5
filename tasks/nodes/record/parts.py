"""Part files of a recording: executions-NNNN.parquet, and flagged-NNNN.parquet for those that were to be repeated."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput
from tasks.nodes.landed import record_of, write_part
from tasks.nodes.record.bench import CLEAN
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.spool import Spooled, read_spooled, spooled_paths

Kind = Literal["executions", "flagged"]
KINDS: tuple[Kind, ...] = ("executions", "flagged")  # flagged: kept apart from what is learned from
STEADY = "steady"  # instead of a plan's digest where what runs next follows from what ran
MOST_BYTES = 2_000_000
KEYS = ["execution_id", "node", "benchmark", "template_hash", "started_at"]
Record = dict[str, Any]
UNIMPORTANT = (
    "minutes", "executions", "part_minutes", "scratch", "repeats", "cpu_weight", "lock_wait_s", "campaign",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    """An execution that is kept somewhere."""

    execution_id: str
    node: str
    benchmark: str
    template_hash: str
    started_at: datetime
    status: str

    @property
    def kind(self) -> Kind:
        """Which files it belongs into."""
        return "executions" if self.status == CLEAN else "flagged"


def recorded_params(params: RecordParams) -> Record:
    """The parameters that decide a campaign: not how long a call goes on, nor where its scratch folder is."""
    return params.model_dump(mode="json", exclude=set(UNIMPORTANT))


def part_paths(folder: Path) -> list[Path]:
    """The parts of a folder, clean ones first, each kind in the order of its numbers."""
    return [path for kind in KINDS for _, path in sorted(_numbered(folder, kind))]


def _numbered(folder: Path, kind: Kind) -> list[tuple[int, Path]]:
    named = [(path.stem.removeprefix(f"{kind}-"), path) for path in folder.glob(f"{kind}-*.parquet")]
    return [(int(number), path) for number, path in named if number.isdecimal()]


def read_keys(path: Path) -> tuple[pa.Table, Record]:
    """What tells the executions of a part apart, and its record. Raises BadInput."""
    try:
        table = pq.read_table(path, columns=KEYS)
        record = record_of(pq.read_schema(path))
        record["executions"], record["params"]
    except (pa.ArrowInvalid, OSError, KeyError, ValueError) as problem:
        expected = "a part file of the recorder"
        raise BadInput(path, f"cannot be read ({problem})", expected, "move it away") from problem
    return table, record


def finished(folder: Path, *, with_steady: bool = True) -> list[Done]:
    """All executions that a folder holds, in parts or alone. Raises BadInput if a file cannot be read.

    with_steady: also those of parts that were recorded without a plan."""
    found: dict[str, Done] = {}
    for path in part_paths(folder):
        table, record = read_keys(path)
        if record.get("plan") == STEADY and not with_steady:
            continue
        for row in table.to_pylist():
            told = record["executions"].get(row["execution_id"], {})
            found[row["execution_id"]] = Done(**row, status=str(told.get("status", CLEAN)))
    for path in spooled_paths(folder):
        one = read_spooled(path)
        done = Done(**{key: one.execution.facts[key] for key in KEYS}, status=one.status)
        found.setdefault(done.execution_id, done)
    return list(found.values())


def write_parts(folder: Path, record: Record) -> list[Path]:
    """Put all single files together into the next part of their kind, several if one would be too large.

    An execution that a part holds already (we were killed between the two steps) is not written twice."""
    for stale in folder.glob("*.large"):
        stale.unlink()
    held = {one for path in part_paths(folder) for one in read_keys(path)[1]["executions"]}
    waiting = [read_spooled(path) for path in spooled_paths(folder)]
    written: list[Path] = []
    for kind in KINDS:
        ours = [one for one in waiting if ("executions" if one.status == CLEAN else "flagged") == kind]
        ours = [one for one in ours if one.execution.execution_id not in held]
        written += _write(folder, kind, sorted(ours, key=lambda one: one.execution.facts["started_at"]), record)
    for path in spooled_paths(folder):
        path.unlink()
    return written


def _write(folder: Path, kind: Kind, ours: Sequence[Spooled], record: Record) -> list[Path]:
    """One part, or each half on its own if it is too large."""
    if not ours:
        return []
    taken = max((number for number, _ in _numbered(folder, kind)), default=0)
    path = folder / f"{kind}-{taken + 1:04d}.parquet"
    facts = {one.execution.execution_id: one.facts for one in ours}
    waiting = path.with_suffix(".large")
    write_part(waiting, [one.execution for one in ours], record | {"executions": facts})
    if waiting.stat().st_size > MOST_BYTES and len(ours) > 1:
        waiting.unlink()
        half = len(ours) // 2
        return [*_write(folder, kind, ours[:half], record), *_write(folder, kind, ours[half:], record)]
    waiting.replace(path)
    return [path]
