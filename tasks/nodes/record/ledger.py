"""The executions that a recording has and still lacks: parts of them, flagged ones apart."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.nodes.execution import Execution, Sampled, table_of
from tasks.nodes.record.bench import Outcome
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.plan import Done, Plan, PlannedExecution
from tasks.record.campaign import Ledger
from tasks.record.parts import Parts, Record, check_same, deciding
from tasks.record.plan import CLEAN

KINDS = ("executions", "flagged")  # flagged: kept apart from what is learned from
FACTS = "executions"
STEADY = "steady"  # instead of a plan's digest where what runs next follows from what ran
MOST_WAITING = 600  # executions; they are read again when a part is written
KEYS = ("node", "benchmark", "template_hash", "started_at", "campaign")
UNIMPORTANT = frozenset({"minutes", "executions", "scratch", "repeats"})


def parts_in(folder: Path, **more: Any) -> Parts:
    """The parts of a folder of executions; more: see Parts."""
    return Parts(folder, KINDS, FACTS, key=("execution_id",), most_waiting=MOST_WAITING, **more)


def keep_execution(parts: Parts, execution: Execution, facts: Record, record: Record) -> None:
    """Write a finished execution down. facts: for the record of its part, with its status."""
    told = record | {FACTS: {execution.execution_id: facts}}
    parts.keep(execution.execution_id, table_of([execution]), told)


def finished(parts: Parts, *, with_steady: bool = True) -> list[Done]:
    """All executions that a folder holds, in parts or alone. Raises BadInput if a file cannot be read.

    with_steady: also those of parts that were recorded without a plan."""
    found: dict[str, Done] = {}
    for _, table, record in parts.recorded(KEYS):
        for row in table.to_pylist() if with_steady or record.get("plan") != STEADY else ():
            del row["campaign"]
            status = record[FACTS].get(row["execution_id"], {}).get("status", CLEAN)
            found.setdefault(row["execution_id"], Done(**row, status=str(status)))
    return list(found.values())


class ExecutionLedger(Ledger[PlannedExecution]):
    """The executions that a folder holds. plan: None where what runs next follows from what ran; facts: of machine and
    nodes, for the record of each part; campaign: its name; done: by id.

    A new campaign is named after the time as well: ids of executions of two campaigns are never the same. Calls without
    a plan and a campaign may share a folder. Raises BadSetting if it holds another campaign, BadInput."""

    def __init__(self, folder: Path, params: RecordParams, plan: Plan | None, facts: Record) -> None:
        self.plan, self.campaign = plan, ""
        self.record: Record = {}
        digest = plan.digest() if plan else STEADY
        parts = parts_in(folder, record_of=lambda records: self.record | records[-1])
        rounds = (plan.executions,) if plan else ()
        super().__init__(parts, rounds, lambda one: one.id_in(self.campaign), repeats=params.repeats)
        for path, table, record in parts.recorded(KEYS) if plan else ():  # each call without a plan is one
            if record.get("plan", digest) == STEADY or not table.num_rows:
                continue
            if "params" in record:
                check_same(path, record, params, UNIMPORTANT, digest)
            self.campaign = self.campaign or str(record.get("campaign") or table["campaign"][0].as_py())
        self.campaign = self.campaign or f"{datetime.now(UTC):%Y%m%dt%H%M%S%f}"  # two calls can begin in one second
        self.record = facts | {"params": deciding(params, UNIMPORTANT), "plan": digest, "campaign": self.campaign}
        self.done = {one.execution_id: one for one in finished(parts, with_steady=plan is None)}
        self.begin({one.execution_id: one.status for one in self.done.values()})

    def keep(self, outcome: Outcome, telemetry: Sequence[Sampled]) -> None:
        """Write an execution down."""
        execution = replace(outcome.execution, telemetry=tuple(telemetry))
        keep_execution(self.parts, execution, outcome.facts | {"status": outcome.status}, self.record)
        about = {key: execution.facts[key] for key in ("execution_id", *KEYS[:-1])}
        done = self.done[execution.execution_id] = Done(**about, status=outcome.status)
        self.statuses[done.execution_id] = done.status

    def past(self, node: str) -> list[Done]:
        """What a node has behind it in this folder."""
        return [one for one in self.done.values() if one.node == node]
