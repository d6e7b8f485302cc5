"""What a recording has and what it still lacks: each finished execution is on disk at once, parts follow."""

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from tasks.errors import BadInput, BadSetting
from tasks.nodes.execution import Execution, Sampled, record_of, write_part, write_table
from tasks.nodes.record.bench import Outcome
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.plan import AGAIN, CLEAN, Done, Plan, PlannedExecution

SPOOL = "finished"  # folder of the files of single executions
ENDING = ".execution.parquet"
Record = dict[str, Any]
Rows = tuple[pa.Table, Record]  # of a part, or of a single execution, with how they were recorded
Kind = Literal["executions", "flagged"]
KINDS: tuple[Kind, ...] = ("executions", "flagged")  # flagged: kept apart from what is learned from
STEADY = "steady"  # instead of a plan's digest where what runs next follows from what ran
MOST_BYTES = 2_000_000
MOST_SPOOLED = 600  # executions; they are read again when a part is written
PART_S = 1200.0  # longest time between two parts
KEYS = ["execution_id", "node", "benchmark", "template_hash", "started_at"]
UNIMPORTANT = ("minutes", "executions", "scratch", "repeats")
BEGUN = "campaign.json"  # beside the single executions, until these are in a part


def write_spooled(folder: Path, execution: Execution, status: str, facts: Record) -> None:
    """Write a finished execution down; its file appears whole or not at all.

    status: clean, or why it was to be repeated; facts: for the record of its part."""
    path = folder / SPOOL / f"{execution.execution_id}{ENDING}"
    write_part(path, [execution], {"status": status, "executions": {execution.execution_id: facts}})


def spooled_paths(folder: Path) -> list[Path]:
    """The files of single executions, in the order of their names."""
    return sorted((folder / SPOOL).glob(f"*{ENDING}"))


def recorded_params(params: RecordParams) -> Record:
    """The parameters that decide a campaign: not how long a call goes on, nor where its scratch folder is."""
    return params.model_dump(mode="json", exclude=set(UNIMPORTANT))


def part_paths(folder: Path) -> list[Path]:
    """The parts of a folder, clean ones first, each kind in the order of its numbers."""
    return [path for kind in KINDS for _, path in sorted(_numbered(folder, kind))]


def _numbered(folder: Path, kind: Kind) -> list[tuple[int, Path]]:
    named = [(path.stem.removeprefix(f"{kind}-"), path) for path in folder.glob(f"{kind}-*.parquet")]
    return [(int(number), path) for number, path in named if number.isdecimal()]


def read_rows(path: Path, needed: str, columns: Sequence[str] | None = None) -> Rows:
    """The rows of a file of the recorder, and its record. needed: what its record has beside executions.

    Raises BadInput."""
    try:
        file = pq.ParquetFile(path)
        record = record_of(file.schema_arrow)
        record["executions"], record[needed]
        return file.read(columns), record
    except (pa.ArrowInvalid, OSError, KeyError, ValueError) as problem:
        expected = "what the recorder wrote"
        raise BadInput(path, f"cannot be read ({problem})", expected, "move it away") from problem


def finished(folder: Path, *, with_steady: bool = True) -> list[Done]:
    """All executions that a folder holds, in parts or alone. Raises BadInput if a file cannot be read.

    with_steady: also those of parts that were recorded without a plan."""
    found: dict[str, Done] = {}
    for path in part_paths(folder):
        table, record = read_rows(path, "params", KEYS)
        for row in table.to_pylist() if with_steady or record.get("plan") != STEADY else ():
            status = record["executions"].get(row["execution_id"], {}).get("status", CLEAN)
            found[row["execution_id"]] = Done(**row, status=str(status))
    for path in spooled_paths(folder):
        table, record = read_rows(path, "status", KEYS)
        for row in table.to_pylist():
            found.setdefault(row["execution_id"], Done(**row, status=record["status"]))
    return list(found.values())


def write_parts(folder: Path, record: Record) -> None:
    """Put all single files together into the next part of their kind, several if one would be too large.

    An execution that a part holds already (we were killed between the two steps) is not written twice."""
    for stale in folder.glob("*.large"):
        stale.unlink()
    held = {one for path in part_paths(folder) for one in read_rows(path, "params", KEYS)[1]["executions"]}
    waiting = [read_rows(path, "status") for path in spooled_paths(folder)]
    waiting = [one for one in waiting if not held & one[1]["executions"].keys()]
    waiting.sort(key=lambda one: one[0]["started_at"][0].as_py())
    for kind in KINDS:
        _write(folder, kind, [one for one in waiting if (one[1]["status"] == CLEAN) == (kind == "executions")], record)
    for path in spooled_paths(folder):
        path.unlink()


def _write(folder: Path, kind: Kind, ours: Sequence[Rows], record: Record) -> None:
    """One part, or each half on its own if it is too large."""
    if not ours:
        return
    taken = max((number for number, _ in _numbered(folder, kind)), default=0)
    path = folder / f"{kind}-{taken + 1:04d}.parquet"
    facts = {name: told for _, one in ours for name, told in one["executions"].items()}
    waiting = path.with_suffix(".large")
    write_table(waiting, pa.concat_tables([table for table, _ in ours]), record | {"executions": facts})
    if waiting.stat().st_size > MOST_BYTES and len(ours) > 1:
        waiting.unlink()
        half = len(ours) // 2
        _write(folder, kind, ours[:half], record)
        _write(folder, kind, ours[half:], record)
    else:
        waiting.replace(path)


def begin(folder: Path, params: RecordParams, digest: str, facts: Record, *, now: datetime | None = None) -> str:
    """The campaign's name: the one with which it was begun, whoever continues it; written down, with the facts.

    A new one is named after the time as well: ids of executions of two campaigns are never the same. Calls without a
    plan and a campaign may share a folder; what a killed one has left is put into parts. facts: of machine and nodes.
    Raises BadSetting if the folder holds another campaign, BadInput if a file cannot be read."""
    (folder / SPOOL).mkdir(parents=True, exist_ok=True)
    left = _left(folder)
    if left and STEADY in (left["plan"], digest):
        write_parts(folder, left)
        left = {}
    path = folder / SPOOL / BEGUN
    # without a plan every call is one, and says nothing of later ones
    parts = [] if digest == STEADY else [(part, read_rows(part, "params", KEYS)[1]) for part in part_paths(folder)]
    told = [one for one in parts if one[1].get("plan") != STEADY] + ([(path, left)] if left else [])
    for where, record in told:
        _check(where, record, params, digest)
    new = f"{now or datetime.now(UTC):%Y%m%dt%H%M%S}"
    name = str(told[0][1]["campaign"]) if told else new
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({**facts, "plan": digest, "params": recorded_params(params), "campaign": name}))
    temporary.replace(path)
    return name


def _left(folder: Path) -> Record:
    """The record of the executions that are in no part yet; empty if there are none. Raises BadInput."""
    path = folder / SPOOL / BEGUN
    if not path.exists() or not spooled_paths(folder):
        return {}
    try:
        told: Record = json.loads(path.read_text())
        told["campaign"], told["params"], told["plan"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        expected = "what the recorder wrote at its begin"
        raise BadInput(path, f"cannot be read ({problem})", expected, "move its folder away") from problem
    return told


def _check(path: Path, theirs: Record, params: RecordParams, digest: str) -> None:
    try:  # what a campaign of an older recorder does not say it had by default
        recorded = recorded_params(RecordParams.model_validate(theirs.get("params") or {}))
    except ValidationError:
        recorded = {}
    ours = recorded_params(params)
    differing = sorted(key for key in ours if recorded.get(key) != ours[key])
    if differing or theirs.get("plan") != digest:
        what = ", ".join(differing) or "another plan"
        raise BadSetting(
            f"{path}: belongs to a campaign with other parameters ({what}); expected the same ones to continue "
            "it; use another folder or move its parts away"
        )


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
        self.part_due_s = time.monotonic() + PART_S
        repeated = (one.rpartition(AGAIN)[2] for one in self.done)
        self.most_repeated = max([self.params.repeats, *(int(n) for n in repeated if n.isdecimal())])

    @property
    def digest(self) -> str:
        """What tells one plan from another."""
        return self.plan.digest() if self.plan else STEADY

    def keep(self, outcome: Outcome, telemetry: Sequence[Sampled]) -> None:
        """Write an execution down."""
        execution = replace(outcome.execution, telemetry=tuple(telemetry))
        write_spooled(self.folder, execution, outcome.status, outcome.facts)
        done = Done(**{key: execution.facts[key] for key in KEYS}, status=outcome.status)
        self.done[done.execution_id] = done
        if time.monotonic() >= self.part_due_s or len(spooled_paths(self.folder)) >= MOST_SPOOLED:
            self.write_parts()

    def write_parts(self) -> None:
        """Put the executions kept so far into parts."""
        if spooled_paths(self.folder):
            told = {"params": recorded_params(self.params), "plan": self.digest, "campaign": self.campaign}
            write_parts(self.folder, self.record | told)
        self.part_due_s = time.monotonic() + PART_S

    def close(self) -> None:
        """Write what is left into parts, and remove the folder of single executions."""
        self.write_parts()
        shutil.rmtree(self.folder / SPOOL, ignore_errors=True)

    def has_clean(self, planned: PlannedExecution) -> bool:
        """Whether the execution, or any repetition of it, was recorded undisturbed."""
        tries = (self.done.get(planned.again(n).id_in(self.campaign)) for n in range(self.most_repeated + 1))
        return any(one and one.status == CLEAN for one in tries)

    def left(self, planned: Iterable[PlannedExecution]) -> list[PlannedExecution]:
        """Those that were never recorded to their end, clean or not."""
        return [one for one in planned if one.id_in(self.campaign) not in self.done]

    def repetition(self, n: int) -> list[PlannedExecution]:
        """The n-th repetition of all executions that are not clean yet and were not repeated so often."""
        planned = self.plan.executions if self.plan else ()
        return self.left(one.again(n) for one in planned if not self.has_clean(one))

    def past(self, node: str) -> list[Done]:
        """What a node has behind it in this folder."""
        return [one for one in self.done.values() if one.node == node]
