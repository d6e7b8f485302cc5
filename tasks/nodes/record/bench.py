"""One execution on the bench: server and stressor ready, the tool timed, its log read, what disturbed it."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tasks.nodes.execution import Execution, ParsedLog
from tasks.nodes.record.disturbance import Disturbance, Usages, disturbance_between
from tasks.nodes.record.doses import Dose
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.place import Place
from tasks.nodes.record.plan import PlannedExecution
from tasks.nodes.record.stress import NO_STRESS, StressOutcome, applied
from tasks.nodes.record.surroundings import Running, run
from tasks.nodes.record.templates import BenchmarkTemplate
from tasks.nodes.record.tools import told_version
from tasks.nodes.tools.parsing import Parser

CLEAN = "clean"
DIGITS = 5


@dataclass(frozen=True)
class Outcome:
    """What became of an execution. status: clean, or why it is to be repeated; began_s, ended_s: on the monotonic
    clock; execution: without its telemetry, which is not complete yet; facts: kept in the record of its part."""

    planned: PlannedExecution
    status: str
    began_s: float
    ended_s: float
    execution: Execution
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """A benchmark that has run. exit_status: None if it took too long and was killed."""

    started_at: datetime
    running: Running
    exit_status: int | None
    load_1m: float
    disturbance: Disturbance
    stress: StressOutcome | None
    told: str = ""


@dataclass(frozen=True)
class Bench:
    """What all executions of a campaign share."""

    params: RecordParams
    campaign: str
    templates: Mapping[str, BenchmarkTemplate]
    places: Mapping[str, Place]
    parsers: Mapping[str, Parser]
    usages: Usages

    def record(self, planned: PlannedExecution, dose: Dose | None) -> Outcome:
        """Run one execution to its end. Raises MissingTool, NoServer."""
        place, template = self.places[planned.node], self.templates[planned.benchmark]
        if template.is_network:
            place.serve(template.benchmark, template.server)
        ran = self._run(place, template, dose)
        if ran.exit_status is None and template.is_network:
            place.servers.stop(template.benchmark)  # it may still wait for the client that was killed
        log = ran.running.said()
        parsed = self.parsers[planned.benchmark].parse(log) if planned.benchmark in self.parsers else None
        execution = self._execution(planned, place, template, ran, log, parsed)
        status = _status_of(execution, dose)
        n_faults = len(parsed.faults) if parsed else 0
        facts: dict[str, Any] = {"status": status, "exit_status": ran.exit_status, "faults": n_faults}
        if ran.stress:
            facts |= {"stress": _rounded(asdict(ran.stress)) | ({"told": ran.told} if ran.told else {})}
        if place.lowered:
            facts |= {"lowered": list(place.lowered)}
        return Outcome(planned, status, ran.running.began_s, ran.running.ended_s, execution, facts)

    def _run(self, place: Place, template: BenchmarkTemplate, dose: Dose | None) -> Ran:
        words = place.command(template.command, place.values(purpose=template.benchmark, limit_s=template.limit_s))
        around = place.around(place.groups.bench if place.groups else None)
        with applied(dose or NO_STRESS, place, template.limit_s) as stressor:
            at_work = [one.process.pid for one in (*place.servers.running.values(), stressor.running) if one]
            stressed = stressor.read()
            load_1m, before, started_at = os.getloadavg()[0], self.usages.now(at_work), datetime.now(UTC)
            running, exit_status = run(words, around, place.folder / "log", template.limit_s)
            after, stressed_after = self.usages.now(at_work), stressor.read()
        stress = stressor.outcome(stressed, stressed_after) if dose else None
        disturbance = disturbance_between(before, after)
        return Ran(started_at, running, exit_status, load_1m, disturbance, stress, stressor.told)

    def _execution(
        self,
        planned: PlannedExecution,
        place: Place,
        template: BenchmarkTemplate,
        ran: Ran,
        log: str,
        parsed: ParsedLog | None,
    ) -> Execution:
        duration_s = ran.running.ended_s - ran.running.began_s
        started_at = ran.started_at.replace(tzinfo=None)
        is_whole = ran.exit_status == 0 and bool(parsed and parsed.measured)
        facts = {
            "execution_id": planned.id_in(self.campaign),
            "node": planned.node,
            "machine_type": place.params.machine_type,
            "benchmark": planned.benchmark,
            "aspect": template.aspect,
            "template": template.command,
            "template_hash": template.template_hash,
            "tool_version": (parsed.version if parsed else "") or told_version(template.tool) or None,
            "started_at": started_at,
            "ended_at": started_at + timedelta(seconds=duration_s),
            "duration_s": round(duration_s, DIGITS),
            "status": "timeout" if ran.exit_status is None else "completed" if is_whole else "failed",
            "is_stressed": bool(ran.stress and ran.stress.is_applied),
            "stress_wanted": planned.stress_wanted,
            "dose": ".".join(filter(None, (planned.dose, *place.lowered))),
            "dose_level": planned.dose_level,
            "is_contaminated": ran.disturbance.exceeds(self.params.foreign_limit_ratio, os.cpu_count() or 1),
            "foreign_cores": _known(ran.disturbance.foreign_cores),
            "steal_cores": _known(ran.disturbance.steal_cores),
            "load_1m": ran.load_1m,
            "is_emulated": place.is_emulated,
            "campaign": self.campaign,
        }
        measured = parsed.measured if parsed and is_whole else ()
        missing = parsed.missing if parsed and is_whole else ()
        return Execution(facts, measured, missing, tool=template.tool, log=log)


def _status_of(execution: Execution, dose: Dose | None) -> str:
    if execution.facts["status"] != "completed":
        return str(execution.facts["status"])
    if execution.facts["is_contaminated"]:
        return "contaminated"
    return "unstressed" if dose and not execution.facts["is_stressed"] else CLEAN


def _rounded(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, DIGITS) if isinstance(value, float) else value for key, value in facts.items()}


def _known(value: float) -> float | None:
    return round(value, DIGITS) if value == value else None
