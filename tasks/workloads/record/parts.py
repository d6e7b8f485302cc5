"""Recorded runs in whorl's own format: a row a sample, a column a counter, and what there was beside."""

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple
from pathlib import Path

import pyarrow as pa

from tasks.record.campaign import Ledger
from tasks.record.facts import DIGITS
from tasks.record.parts import Parts, Record, check_same, deciding
from tasks.workloads.params import RecordParams
from tasks.workloads.prepared import CONDITIONS
from tasks.workloads.record.counters import GIVEAWAYS
from tasks.workloads.record.plan import Outcome, Plan, PlannedRun
from tasks.workloads.telemetry import Telemetry

KINDS = ("runs", "flagged")  # flagged: disturbed or cut short; kept apart from what is trained on
LABELS = (
    ("run_id", pa.string()),
    ("workload", pa.string()),
    ("input", pa.string()),
    ("round", pa.string()),
    ("machine", pa.string()),
    ("started_at", pa.timestamp("us")),
    ("at_s", pa.float64()),
)
PROCESSES = ("processes", pa.string())  # of a run: the shares of its programs, as a JSON object
UNIMPORTANT = frozenset({"minutes", "scratch", "repeats"})


class RunLedger(Ledger[PlannedRun]):
    """The runs that a folder holds. machine: facts of it, for the record of each file; costs: of the sampler."""

    def __init__(self, folder: Path, params: RecordParams, plan: Plan, machine: Record) -> None:
        # what others did is recorded under conditions, and nothing is repeated for it
        repeats = 0 if params.conditions else params.repeats
        parts = Parts(folder, KINDS, record_of=merged)
        super().__init__(parts, plan.rounds, lambda run: run.run_id, repeats=repeats)
        # campaigns from before there were conditions go on
        self.unimportant = UNIMPORTANT | ({"conditions"} if not params.conditions else frozenset())
        about = {"params": deciding(params, self.unimportant), "plan": plan.digest(), "machine": machine}
        self.record, self.costs = about, list[float]()
        statuses: dict[str, str] = {}
        for path, _, record in parts.recorded():
            check_same(path, record, params, self.unimportant, plan.digest())
            statuses |= {run_id: facts["status"] for run_id, facts in record["runs"].items()}
        self.begin(statuses)

    def keep(self, outcome: Outcome) -> None:
        """Write a run down; a failed one leaves only its error."""
        run_id = outcome.run.run_id
        if not outcome.telemetry:
            self.errors[run_id] = outcome.error
            return
        table = pa.concat_tables(map(table_of, outcome.telemetry), promote_options="default")
        about = {"unavailable": [asdict(unavailable) for unavailable in outcome.unavailable], "giveaways": GIVEAWAYS}
        about |= {"runs": {telemetry.run_id: outcome.facts for telemetry in outcome.telemetry}}
        self.add(run_id, table, self.record | about, outcome.status)
        self.costs.append(outcome.facts["sampler_cores"])


def table_of(run: Telemetry) -> pa.Table:
    """One row a sample: labels, the time after the start, a column a counter."""
    labels = [run.run_id, run.workload, run.input, run.round, run.machine, run.started_at]
    names = [*LABELS[:-1]]
    if run.conditions:
        labels += list(astuple(run.conditions))
        names += CONDITIONS
    if run.processes:
        labels.append(json.dumps({name: round(share, DIGITS) for name, share in run.processes.items()}))
        names.append(PROCESSES)
    columns = [pa.array([value] * run.n_samples, kind) for value, (_, kind) in zip(labels, names, strict=True)]
    columns += [pa.array(run.at_s), *(pa.array(run.values[:, place]) for place in range(len(run.counters)))]
    schema = [pa.field(name, kind) for name, kind in (*names, LABELS[-1])]
    for counter in run.counters:  # its meaning is metadata
        about = {key: str(value) for key, value in asdict(counter).items() if key != "name"}
        about["is_rate"] = about["is_rate"].lower()
        schema.append(pa.field(counter.name, pa.float64(), metadata=about))
    return pa.Table.from_arrays(columns, schema=pa.schema(schema))


def merged(records: Sequence[Record]) -> Record:
    """One record for a part: that of the last run, with every counter that some run lacked, and the sampler's cost."""
    missing = {entry["counter"]: entry for record in records for entry in record["unavailable"]}
    costs = [facts["sampler_cores"] for record in records for facts in record["runs"].values()]
    cost = {"mean_cores": sum(costs) / len(costs), "most_cores": max(costs)}
    return records[-1] | {"unavailable": list(missing.values()), "cost": cost}
