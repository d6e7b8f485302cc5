"""A recording of benchmarks from end to end, and what it has and still lacks. The way in is `record_nodes`."""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasks.errors import BadSetting, WhorlError
from tasks.machine import ControlGroup, campaign_group, root_group, scratch_folder
from tasks.nodes.execution import SampledMetric, table_of
from tasks.nodes.record.bench import Bench, Outcome
from tasks.nodes.record.control_groups import CONTROLLERS, PREFIX, REGISTER
from tasks.nodes.record.link import remove_abandoned
from tasks.nodes.record.node_place import NodePlace, check_tools, make_place
from tasks.nodes.record.params import BenchmarkTemplate, Dose, RecordParams, doses_of, nodes_of
from tasks.nodes.record.plan import (
    Done,
    Plan,
    PlannedExecution,
    lacking_stress,
    make_plan,
    next_benchmark,
    plan_digest,
    possible_doses,
    selected_templates,
)
from tasks.nodes.record.sampler import NodeReader, NodeSampler
from tasks.nodes.tools import PARSERS
from tasks.record.campaign import Ledger, Progress, RecordSummary, in_time, on_disk, recording
from tasks.record.facts import machine_facts
from tasks.record.parts import CLEAN, Parts, Record, check_same, deciding
from tasks.record.processes import end_registered

MARGIN_S = 1.0  # metrics of a node are kept from this long before an execution until this long after it
Turn = Callable[[BenchmarkTemplate], AbstractContextManager[object]]
NAP_S = 0.02
OPEN = "not run, its server would listen on every address of this machine; needs a network namespace"
KINDS = ("executions", "flagged")  # flagged: kept apart from what is learned from
FACTS = "executions"
STEADY = "steady"  # instead of a plan's digest where what runs next follows from what ran
MOST_WAITING = 600  # executions; they are read again when a part is written
KEYS = ("node", "benchmark", "template_hash", "started_at", "campaign")
UNIMPORTANT = frozenset({"minutes", "executions", "scratch", "repeats"})
logger = logging.getLogger(__name__)


def parts_in(folder: Path, **more: Any) -> Parts:
    """The parts of a folder of executions; more: see Parts."""
    return Parts(folder, KINDS, FACTS, key=("execution_id",), most_waiting=MOST_WAITING, **more)


def keep_execution(
    ledger: Ledger[PlannedExecution], outcome: Outcome, record: Record, telemetry: Sequence[SampledMetric] = ()
) -> None:
    """Write a finished execution down. record: how the executions of this call were made."""
    execution = replace(outcome.execution, telemetry=tuple(telemetry))
    about = record | {FACTS: {execution.execution_id: outcome.facts}}
    ledger.add(execution.execution_id, table_of([execution]), about, outcome.status)


def done_in(table: pa.Table, record: Record) -> dict[str, Done]:
    """The executions of a file of a recording, by id."""
    rows = table.drop_columns("campaign").to_pylist()
    statuses = {run: facts.get("status", CLEAN) for run, facts in record[FACTS].items()}
    return {row["execution_id"]: Done(**row, status=str(statuses.get(row["execution_id"], CLEAN))) for row in rows}


class ExecutionLedger(Ledger[PlannedExecution]):
    """The executions that a folder holds. plan: None where what runs next follows from what ran; facts: of machine and
    nodes, for the record of each part; campaign: its name; done: by id.

    A new campaign is named after the time as well: ids of executions of two campaigns are never the same. Calls without
    a plan and a campaign may share a folder. Raises BadSetting if it holds another campaign, BadInput."""

    def __init__(self, folder: Path, params: RecordParams, plan: Plan | None, facts: Record) -> None:
        self.plan, self.campaign = plan, ""
        self.record: Record = {}
        digest = STEADY if plan is None else plan_digest(plan)
        parts = parts_in(folder, record_of=lambda records: self.record | records[-1])
        rounds = () if plan is None else (plan,)
        super().__init__(parts, rounds, lambda execution: execution.id_in(self.campaign), repeats=params.repeats)
        self.done: dict[str, Done] = {}
        for path, table, record in parts.recorded(KEYS):
            if plan is not None and record.get("plan") == STEADY:  # each call without a plan is a campaign
                continue
            if plan is not None and table.num_rows:
                if "params" in record:
                    check_same(path, record, params, UNIMPORTANT, digest)
                self.campaign = self.campaign or str(record.get("campaign") or table["campaign"][0].as_py())
            self.done = done_in(table, record) | self.done
        self.campaign = self.campaign or f"{datetime.now(UTC):%Y%m%dt%H%M%S%f}"  # two calls can begin in one second
        self.record = facts | {"params": deciding(params, UNIMPORTANT), "plan": digest, "campaign": self.campaign}
        self.begin({execution.execution_id: execution.status for execution in self.done.values()})

    def keep(self, outcome: Outcome, telemetry: Sequence[SampledMetric]) -> None:
        """Write an execution down."""
        keep_execution(self, outcome, self.record, telemetry)
        about = {key: outcome.execution.facts[key] for key in ("execution_id", *KEYS[:-1])}
        self.done[about["execution_id"]] = Done(**about, status=outcome.status)

    def past(self, node: str) -> list[Done]:
        """What a node has behind it in this folder."""
        return [execution for execution in self.done.values() if execution.node == node]


@contextlib.contextmanager
def staged(
    params: RecordParams, templates: Sequence[BenchmarkTemplate], doses: Sequence[Dose], campaign: str
) -> Iterator[tuple[ControlGroup | None, Mapping[str, NodePlace], tuple[BenchmarkTemplate, ...], NodeSampler]]:
    """Everything that the nodes need for these benchmarks and doses: the group of all, each node's place, prepared, the
    templates that can run on all of them, and a sampler at work. What a killed recorder has left is ended first.

    campaign: what tells its data from that of others. Raises MissingTool, NotPrepared."""
    scratch = scratch_folder("nodes", campaign, place=params.scratch, shared=on_disk())
    end_leftovers(scratch)
    is_isolated = params.isolation != "none"
    has_network = is_isolated and any(benchmark.is_network for benchmark in templates)
    with contextlib.ExitStack() as stack:
        group = None
        if is_isolated:
            group = stack.enter_context(campaign_group(prefix=PREFIX, controllers=CONTROLLERS))
            if group is None:
                logger.warning("no control groups here: nodes have no limits, and what others use is only estimated")
        stack.callback(_remove, scratch)
        settings = {"is_emulated": params.place == "emulated", "has_network": has_network}
        places: dict[str, NodePlace] = {}
        for number, node in enumerate(nodes_of(params), start=1):
            places[node.name] = make_place(node, number, scratch, group, **settings)
            stack.callback(places[node.name].remove)
        # without a namespace, a server that cannot be bound to an address would listen to everybody
        unbound = [one.benchmark for one in templates if one.is_network and "{server}" not in one.server]
        open_places = [place for place in places.values() if not place.link]
        for place in open_places:
            place.faults += [f"{benchmark}: {OPEN}" for benchmark in unbound]
        possible = tuple(one for one in templates if not open_places or one.benchmark not in unbound)
        for place in places.values():
            place.prepare(possible, doses)
        readers = {name: NodeReader(place) for name, place in places.items()}
        sampler = NodeSampler(readers, scratch, interval_s=params.interval_s)
        stack.callback(sampler.stop)
        sampler.start()
        yield group, places, possible, sampler


def _remove(scratch: Path) -> None:
    (scratch / REGISTER).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        scratch.rmdir()


def end_leftovers(scratch: Path) -> None:
    """End what a recorder that was killed has left: its processes, groups and namespaces."""
    n = end_registered(scratch / REGISTER, scratch)
    base, namespaces = root_group(controllers=CONTROLLERS), remove_abandoned()
    groups = base.remove_abandoned(PREFIX) if base else []
    if n or groups or namespaces:
        logger.warning("ended what a killed recorder had left: %s", ", ".join((*groups, *namespaces)) or "processes")


@dataclass
class Schedule:
    """One call of the recorder. waiting: executions whose last samples are not taken yet; broken: without a plan, node
    and benchmark of those that could not be run."""

    bench: Bench
    ledger: ExecutionLedger
    sampler: NodeSampler
    progress: Progress
    turn: Turn
    waiting: deque[Outcome] = field(default_factory=deque)
    broken: set[tuple[str, str]] = field(default_factory=set)

    def run(self, ends_s: float) -> None:
        """Run executions until none is left or the time (on the monotonic clock) is over; keep each of them.

        Those that have ended are kept even if this is interrupted."""
        self._wait_for(time.monotonic() + MARGIN_S)  # there is a time before the first one
        try:
            for execution in in_time(self._next(), ends_s):
                self._record(execution)
                self._keep_complete()
        finally:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self._settle()

    def _next(self) -> Iterator[PlannedExecution]:
        for executions in self.ledger.todo() if self.ledger.plan is not None else ():
            yield from (one for one in executions if not self._has_failed(one.again(0)))
            self._settle()
        for _ in range(0 if self.ledger.plan is not None else self.bench.params.executions):
            for node in self.bench.places:
                yield from self._next_on(node)

    def _has_failed(self, execution: PlannedExecution) -> bool:
        return self.ledger.id_of(execution) in self.ledger.errors

    def _next_on(self, node: str) -> Iterator[PlannedExecution]:
        """What is next on a node; where it cannot be run, another in its place, and it no more in this call."""
        while templates := [
            candidate for candidate in self.bench.templates.values() if (node, candidate.benchmark) not in self.broken
        ]:
            self._settle()
            template = next_benchmark(self.ledger.past(node), templates)
            number = len(self.ledger.done) + len(self.ledger.errors) + 1
            execution = PlannedExecution(number, node, template.benchmark, template.template_hash, template.is_network)
            yield execution
            if not self._has_failed(execution):
                return
            self.broken.add((node, template.benchmark))

    def _record(self, execution: PlannedExecution) -> None:
        doses = doses_of(self.bench.params.doses, execution.benchmark, execution.dose_level, execution.node)
        dose = next((candidate for candidate in doses if candidate.name == execution.dose), None)
        self._lower(execution)
        try:
            with self.turn(self.bench.templates[execution.benchmark]):
                self.waiting.append(self.bench.record(execution, dose))
        except (WhorlError, OSError) as error:  # any fault of one benchmark is its own, not the end of the campaign
            self.ledger.errors[self.ledger.id_of(execution)] = str(error)
            logger.warning("%s cannot be run: %s", self.ledger.id_of(execution), error)

    def _lower(self, execution: PlannedExecution) -> None:
        """Lower the limits of a node whose time has come. Repetitions come after the plan: they have them too."""
        n = len(self.ledger.plan or ())
        place = self.bench.places[execution.node]
        for limit in self.bench.params.lowered:
            is_due = execution.repetition > 0 or execution.number > limit.after_ratio * n
            if n and limit.node == execution.node and is_due and limit.name not in place.lowered:
                place.lower(limit)
                logger.info("%s: %s from execution %d on", execution.node, limit.name, execution.number)

    def _settle(self) -> None:
        """Keep all that has ended: what comes next depends on it. To interrupt is to wait no more for last samples."""
        try:
            if self.waiting:
                self._wait_for(self.waiting[-1].ended_s + MARGIN_S)
        finally:
            self._keep_complete(all_of_them=True)

    def _wait_for(self, at_s: float) -> None:
        while self.sampler.is_alive() and not self.sampler.covers(at_s):
            time.sleep(NAP_S)

    def _keep_complete(self, *, all_of_them: bool = False) -> None:
        """Keep the executions after which enough was sampled, and forget the samples that no other one needs."""
        while self.waiting and (all_of_them or self.sampler.covers(self.waiting[0].ended_s + MARGIN_S)):
            outcome = self.waiting[0]
            begin_s, end_s = outcome.began_s - MARGIN_S, outcome.ended_s + MARGIN_S
            telemetry = self.sampler.between(outcome.planned.node, begin_s, end_s, outcome.began_s)
            self.ledger.keep(outcome, telemetry)
            self.waiting.popleft()
            self._log(outcome)
        self.sampler.forget((self.waiting[0].began_s if self.waiting else time.monotonic()) - MARGIN_S)

    def _log(self, outcome: Outcome) -> None:
        done = self.ledger.done.values()
        clean = sum(execution.status == CLEAN for execution in done)
        total = len(done) if self.ledger.plan is None else len(self.ledger.plan)
        facts = outcome.execution.facts
        logger.log(
            logging.INFO if outcome.status == CLEAN else logging.WARNING,
            "%d of %d: %s %s, %.2f s, %d metrics, dose %s, %s foreign, %s stolen",
            len(done), total, facts["execution_id"], outcome.status, facts["duration_s"],
            len(outcome.execution.measured), facts["dose"] or "none", facts["foreign_cores"], facts["steal_cores"],
        )  # fmt: skip
        self.progress(clean, total)


def planned(
    params: RecordParams, templates: Sequence[BenchmarkTemplate] | None = None, *, has_groups: bool = True
) -> Plan | None:
    """The plan of these parameters, as a dry run shows it; None without one. Raises BadSetting.

    has_groups: without control groups, doses that are a share of the node's processors are left out."""
    if not params.runs:
        return None
    nodes = nodes_of(params)
    if len({node.name for node in nodes}) < len(nodes):
        raise BadSetting("nodes.record.emulated: two nodes of the same name; name them differently")
    names = {node.name for node in nodes}
    if strangers := [limit.node for limit in params.lowered if limit.node not in names]:
        raise BadSetting(f"nodes.record.lowered: no node {strangers[0]}; expected some of {', '.join(sorted(names))}")
    if params.lowered and not has_groups:
        raise BadSetting("nodes.record.lowered: no control groups here; take it out, or record as root")
    return make_plan(
        [node.name for node in nodes],
        selected_templates(params) if templates is None else templates,
        possible_doses(params.doses, has_groups=has_groups),
        runs=params.runs,
        stressed_ratio=params.stressed_ratio,
        seed=params.seed,
    )


def runnable(params: RecordParams) -> tuple[tuple[BenchmarkTemplate, ...], list[Dose]]:
    """The benchmarks of these parameters, and the doses of stress. Raises MissingTool, BadSetting as record_nodes."""
    templates = selected_templates(params)
    check_parsers(templates, params.profile)
    names = {template.benchmark for template in templates} if params.runs and params.stressed_ratio else set()
    doses = [dose for dose in params.doses if dose.benchmark in names]
    check_tools(templates, doses)
    planned(params, templates)
    return templates, doses


def check_parsers(templates: Sequence[BenchmarkTemplate], profile: str) -> None:
    """Raises BadSetting that names the benchmarks whose logs nobody reads: each execution of them would fail."""
    if unread := [template.benchmark for template in templates if template.benchmark not in PARSERS]:
        raise BadSetting(
            f"nodes.record.{profile}: nobody reads the logs of {', '.join(unread)}; "
            f"expected benchmarks of {', '.join(PARSERS)}; leave it out, or name it after the one whose tool it calls"
        )


def record_nodes(
    params: RecordParams,
    out_dir: Path,
    progress: Progress | None = None,
    *,
    turn: Turn = contextlib.nullcontext,
) -> RecordSummary:
    """Record executions into `executions-NNNN.parquet` under out_dir; disturbed ones go to `flagged-NNNN.parquet`.

    progress: called with (clean, planned) after each execution. With params.runs each call goes on for params.minutes
    where the last one stopped; without, it runs params.executions of what the nodes lack in out_dir, or what is stalest
    there. turn: entered around each execution, so that the network's can wait for each other across machines.

    What it returns has as `more`: campaign; nodes that were recorded; unavailable, what of a node does not work here;
    sampler_cores, the sampler's own cost. Without a campaign it counts the executions of this call alone.

    When it ends, by return, exception or SIGTERM, all that was recorded is in parts, and no process, control group or
    namespace is left; after a kill the next call finds every finished execution and ends what the dead one has left.
    Raises MissingTool, BadSetting (another campaign in out_dir, another recording at work, an unknown benchmark, one
    whose logs nobody reads, limits to lower where there are no control groups), BadInput (a part cannot be read)."""
    ends_s = time.monotonic() + params.minutes * 60
    templates, doses = runnable(params)
    with (
        recording("nodes", out_dir),
        staged(params, templates, doses, str(out_dir.resolve())) as (group, places, possible, sampler),
    ):
        plan, isolation = planned(params, possible, has_groups=group is not None), "cgroups" if group else "none"
        lacking = lacking_stress(params, possible, has_groups=group is not None)
        if plan is not None and lacking:  # told before anything runs
            n_stressed, wanted = sum(one.stress_wanted for one in plan), len(plan) * params.stressed_ratio
            message = "%d of the %d executions will be stressed, and not %.0f: %s"
            logger.warning(message, n_stressed, len(plan), wanted, "; ".join(lacking))
            for place in places.values():
                place.faults += lacking
        unavailable = {name: list(place.faults) for name, place in places.items() if place.faults}
        facts = {
            "machine": machine_facts(),
            "isolation": isolation,
            "unavailable": unavailable,
            "namespaces": [name for name, place in places.items() if place.link],
        }
        ledger = ExecutionLedger(out_dir, params, plan, facts)
        by_name = {template.benchmark: template for template in possible}
        bench = Bench(params, ledger.campaign, by_name, places, PARSERS, group)
        try:
            Schedule(bench, ledger, sampler, progress or (lambda *_: None), turn).run(ends_s)
        finally:
            ledger.parts.close()
        about = {"campaign": ledger.campaign, "nodes": list(places), "unavailable": unavailable}
        summary = ledger.summary(isolation, **about, sampler_cores=sampler.cores)
    if plan is None:
        return replace(summary, planned=sum(summary.recorded.values()), clean=summary.recorded.get(CLEAN, 0))
    return summary
