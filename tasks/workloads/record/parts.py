"""Recorded runs in whorl's own format: a file for each run as soon as it has ended, in time put together in parts."""

import json
import os
import platform
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput, BadSetting
from tasks.machine import counts_hardware_events, cpu_model, read_cgroups
from tasks.workloads.params import RecordParams
from tasks.workloads.record.counters import GIVEAWAYS
from tasks.workloads.record.plan import AGAIN, CLEAN, Outcome, Plan, PlannedRun
from tasks.workloads.telemetry import Conditions, Counter, Telemetry

Kind = Literal["runs", "flagged"]
KINDS: tuple[Kind, ...] = ("runs", "flagged")  # flagged: disturbed or cut short; kept apart from what is trained on
PATTERN = "{kind}-[0-9][0-9][0-9][0-9].parquet"
RECORD_KEY = b"whorl.record"
SPOOL = "finished"  # folder of the files of single runs
LABELS = (
    ("run_id", pa.string()),
    ("workload", pa.string()),
    ("input", pa.string()),
    ("round", pa.string()),
    ("machine", pa.string()),
    ("started_at", pa.timestamp("us")),
    ("at_s", pa.float64()),
)
CONDITIONS = tuple(
    (field.name, pa.float64() if "float" in str(field.type) else pa.string()) for field in fields(Conditions)
)
MOST_BYTES = 2_000_000
PART_S = 1_200.0  # between two part files: what a lost disk can cost
MOST_SPOOLED = 60  # runs; with 200 counters a part of them stays well below its limit
Record = dict[str, Any]


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
        self.statuses = finished(self.folder, self.params, self.plan.digest())
        self.part_due_s = time.monotonic() + PART_S

    def keep(self, outcome: Outcome) -> None:
        """Write a run down; a failed one leaves only its error."""
        run_id = outcome.run.run_id
        if outcome.telemetry is None:
            self.errors[run_id] = outcome.error
            return
        record: dict[str, Any] = {
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
        self.part_due_s = time.monotonic() + PART_S

    def has_clean(self, run: PlannedRun) -> bool:
        """Whether the run, or a repetition of it, was recorded undisturbed."""
        again = (f"{run.run_id}{AGAIN}{n + 1}" for n in range(self.params.repeats))
        return any(self.statuses.get(run_id) == CLEAN for run_id in (run.run_id, *again))

    def left(self, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        """The runs that were never recorded to their end, disturbed or not, and have not failed in this call."""
        return [run for run in runs if run.run_id not in self.statuses and run.run_id not in self.errors]

    def repetition(self, n: int) -> list[PlannedRun]:
        """The n-th repetition of all runs that are not clean yet and were not repeated so often."""
        if self.params.conditions:  # what others did is recorded there, and nothing is repeated for it
            return []
        wanted = [run.again(n) for run in self.plan.runs if not self.has_clean(run)]
        return [run for run in wanted if run.run_id not in self.statuses]


def recorded_params(params: RecordParams) -> Record:
    """The parameters that decide a campaign: all but how long a call goes on and where its scratch folder is."""
    idle = {"conditions"} if not params.conditions else set()  # campaigns from before there were conditions go on
    return params.model_dump(mode="json", exclude={"minutes", "scratch", "repeats"} | idle)


def counter_field(counter: Counter) -> pa.Field:
    """The column of a counter, with its meaning as metadata."""
    told = {
        "unit": counter.unit,
        "kind": counter.kind,
        "is_rate": "true" if counter.is_rate else "false",
        "scope": counter.scope,
    }
    return pa.field(counter.name, pa.float64(), metadata=told)


def table_of(run: Telemetry) -> pa.Table:
    """One row a sample: labels, the time after the start, a column a counter."""
    labels = [run.run_id, run.workload, run.input, run.round, run.machine, run.started_at]
    names = [*LABELS[:-1]]
    if run.conditions:
        labels += list(astuple(run.conditions))
        names += CONDITIONS
    columns = [pa.array([value] * run.n_samples, kind) for value, (_, kind) in zip(labels, names, strict=True)]
    columns += [pa.array(run.at_s), *(pa.array(run.values[:, place]) for place in range(len(run.counters)))]
    schema = [pa.field(name, kind) for name, kind in (*names, LABELS[-1])]
    schema += [counter_field(counter) for counter in run.counters]
    return pa.Table.from_arrays(columns, schema=pa.schema(schema))


def write_table(path: Path, table: pa.Table, record: Record) -> None:
    """Write a file that appears whole or not at all. record: how the runs were made, kept as metadata."""
    temporary = path.with_suffix(".tmp")
    kept = table.replace_schema_metadata({RECORD_KEY: json.dumps(record).encode()})
    pq.write_table(kept, temporary, compression="zstd")
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(path)


def read_table(path: Path) -> tuple[pa.Table, Record]:
    """A file of the recorder and its record. Raises BadInput."""
    try:
        table = pq.read_table(path)
        record = json.loads((table.schema.metadata or {})[RECORD_KEY])
    except (pa.ArrowInvalid, OSError, KeyError, ValueError) as problem:
        expected = "a part file of the recorder"
        raise BadInput(path, f"cannot be read ({problem})", expected, "move it away") from problem
    return table, record


def part_paths(folder: Path) -> list[Path]:
    """The part files of a folder, in order."""
    return [path for kind in KINDS for path in sorted(folder.glob(PATTERN.format(kind=kind)))]


def spooled_paths(folder: Path) -> list[Path]:
    """The files of single runs that are in no part yet."""
    return sorted((folder / SPOOL).glob("*.parquet"))


def finished(folder: Path, params: RecordParams, digest: str) -> dict[str, str]:
    """The runs that earlier calls of the same campaign kept: what became of each, by id.

    Raises BadSetting if the folder holds another campaign, BadInput if a file cannot be read."""
    found: dict[str, str] = {}
    for path in (*part_paths(folder), *spooled_paths(folder)):
        _, record = read_table(path)
        theirs, ours = record.get("params") or {}, recorded_params(params)
        differing = sorted(key for key in ours if theirs.get(key) != ours[key])
        if differing or record.get("plan") != digest:
            what = ", ".join(differing) or "another plan"
            raise BadSetting(
                f"{path}: belongs to a campaign with other parameters ({what}); expected the same ones to continue "
                "it; use another folder or move its parts away"
            )
        found |= {run_id: facts["status"] for run_id, facts in record["runs"].items()}
    return found


def merged(records: Sequence[Record]) -> Record:
    """One record for a part: that of the last run, with the facts of all, and every counter that some run lacked."""
    runs = {run_id: facts for record in records for run_id, facts in record["runs"].items()}
    missing = {told["counter"]: told for record in records for told in record["unavailable"]}
    return records[-1] | {"runs": runs, "unavailable": list(missing.values()), "cost": cost_of(runs.values())}


def cost_of(runs: Iterable[Record]) -> dict[str, float]:
    """The sampler's own cost over runs, in cores."""
    costs = [facts["sampler_cores"] for facts in runs]
    return {"mean_cores": sum(costs) / len(costs), "most_cores": max(costs)} if costs else {}


def write_parts(folder: Path) -> list[Path]:
    """Put all single files together into the next part of their kind, two if one would be too large.

    A run that a part holds already (we were killed between the two steps) is not written twice."""
    written: list[Path] = []
    held = {run_id for path in part_paths(folder) for run_id in read_table(path)[1]["runs"]}
    for kind in KINDS:
        waiting = [(path, *read_table(path)) for path in spooled_paths(folder)]
        ours = [one for one in waiting if _kind_of(one[2]) == kind and not set(one[2]["runs"]) & held]
        for group in _batches(ours):
            taken = [int(path.stem.partition("-")[2]) for path in folder.glob(PATTERN.format(kind=kind))]
            path = folder / f"{kind}-{max(taken, default=0) + 1:04d}.parquet"
            table = pa.concat_tables([table for _, table, _ in group], promote_options="default")
            write_table(path, table, merged([record for _, _, record in group]))
            written.append(path)
    for path in spooled_paths(folder):
        path.unlink()
    return written


def _kind_of(record: Record) -> Kind:
    facts = next(iter(record["runs"].values()))  # of two at once, both have the same
    return "runs" if facts["status"] == CLEAN else "flagged"


def _batches(waiting: list[tuple[Path, pa.Table, Record]]) -> list[list[tuple[Path, pa.Table, Record]]]:
    groups: list[list[tuple[Path, pa.Table, Record]]] = []
    size = MOST_BYTES
    for one in waiting:
        size += one[1].nbytes  # more than it takes as a file
        if size > MOST_BYTES:
            groups.append([])
            size = one[1].nbytes
        groups[-1].append(one)
    return groups


def machine_facts() -> dict[str, str | int | bool | None]:
    """Processor, cores, memory in bytes, kernel, control groups, and whether hardware events can be counted."""
    return {
        "cpu_model": cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "cgroups": read_cgroups().layout,
        "has_pmu": counts_hardware_events(),
        "python": platform.python_version(),
    }


def machine_name(asked: str) -> str:
    """The name asked for, else one made of the processor's name and the number of cores."""
    if asked:
        return asked
    words = re.sub(r"[^a-z0-9]+", "-", cpu_model().lower()).strip("-")
    return f"{words}-{os.cpu_count() or 0}-cores"
