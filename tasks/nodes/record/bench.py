"""One execution on the bench: server and stressor ready, the tool timed, its log read, what disturbed it."""

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from tasks.machine import ControlGroup, find_tool
from tasks.nodes.execution import Execution
from tasks.nodes.record.control_groups import Running, allow_share, run, start, throttled_s
from tasks.nodes.record.node_place import STRESS, STRESS_SERVER, NodePlace
from tasks.nodes.record.params import BenchmarkTemplate, Dose, RecordParams
from tasks.nodes.record.plan import PlannedExecution
from tasks.nodes.tools.parsing import Parser
from tasks.record.facts import all_known, disturbance_between, known, usage_now
from tasks.record.parts import CLEAN
from tasks.record.processes import cpu_s, members

VERSION_FLAG = {"ioping": "-v", "qperf": "--version"}  # their logs do not hold their version
WAIT_S = 10.0
START_S, NAP_S = 2.0, 0.01
AT_WORK_S = 0.003  # CPU time that it has used when it has begun
STARTING_S = 0.15  # time that its start takes, with its full speed
LEAST_CORES = 0.0005  # mean, while the benchmark ran: a stressor that sleeps uses none
TICKS_S = 0.05  # without a group processor time is counted in ticks of 10 ms: a shorter time tells nothing
MARGIN_S = 30.0
NO_STRESS = Dose(benchmark="none", level=1, name="none")


@dataclass(frozen=True)
class StressReading:
    """What a stressor has used so far. throttled_s: what the benchmark had to wait for its own quota."""

    at_s: float
    cpu_s: float
    throttled_s: float
    is_alive: bool


@dataclass(frozen=True)
class StressOutcome:
    """What became of a dose. cores: what the stressor used while the benchmark ran."""

    is_applied: bool
    cores: float = 0.0
    throttled_ratio: float = 0.0


class Stressor:
    """One dose on one node."""

    def __init__(self, dose: Dose, place: NodePlace, limit_s: float) -> None:
        self.dose, self.place, self.limit_s = dose, place, limit_s
        self.running: Running | None = None
        self.last_words = ""
        self.folder = place.folder / "stress"

    @property
    def group(self) -> ControlGroup | None:
        """The stressor's own group."""
        return self.place.groups.stress if self.place.groups else None

    def start(self) -> None:
        """Apply the dose; returns when it works, or after two seconds. Raises MissingTool, NoServer, NoNamespace."""
        groups, dose = self.place.groups, self.dose
        if groups and dose.throttle_ratio < 1:
            allow_share(groups.bench, self.place.cpu_cores, dose.throttle_ratio)
        if dose.delay_ms and self.place.link:
            self.place.link.delay(dose.delay_ms)
        if not dose.command:
            return
        if "{stress_port}" in dose.command:
            self.place.serve(STRESS, STRESS_SERVER)
        self.folder.mkdir(exist_ok=True)
        values = self.place.values(
            limit_s=self.limit_s + MARGIN_S, link_ratio=dose.link_ratio, disk_ratio=dose.disk_ratio
        )
        words = self.place.command(dose.command, values | {"folder": str(self.folder)})
        before = self.read()
        self.running = start(words, self.place.around(self.group), self.place.folder / "stress.log")
        self._wait_until_at_work(before)
        if groups and dose.cpu_ratio < 1:  # only now: its start would take seconds with little of a processor
            allow_share(groups.stress, self.place.cpu_cores, dose.cpu_ratio)

    def _wait_until_at_work(self, before: StressReading) -> None:
        while self.running and self.running.is_alive:
            now = self.read()
            lasted_s, used_s = now.at_s - before.at_s, now.cpu_s - before.cpu_s
            if lasted_s >= START_S or (lasted_s >= STARTING_S and used_s >= AT_WORK_S):
                return
            time.sleep(NAP_S)

    def read(self) -> StressReading:
        """What it has used so far."""
        groups, running = self.place.groups, self.running
        waited = throttled_s(groups.bench) if groups else 0.0
        is_alive = running.is_alive if running else not self.dose.command
        if self.dose.delay_ms:
            is_alive = is_alive and self.place.link is not None and self.place.link.is_delayed
        used_s = (
            self.group.usage_s() if self.group else sum(map(cpu_s, members(running.process.pid) if running else ()))
        )
        return StressReading(time.monotonic(), used_s, waited, is_alive)

    def outcome(self, before: StressReading, after: StressReading) -> StressOutcome:
        """Whether it was at work from the one reading to the other. A stressor that has ended was not."""
        lasted_s = max(after.at_s - before.at_s, NAP_S)
        cores = (after.cpu_s - before.cpu_s) / lasted_s
        throttled = (after.throttled_s - before.throttled_s) / lasted_s
        has_cpu_time = bool(self.dose.command) and (self.group is not None or lasted_s >= TICKS_S)
        works = before.is_alive and after.is_alive and (cores >= LEAST_CORES or not has_cpu_time)
        slows = self.dose.throttle_ratio >= 1 or throttled > 0
        return StressOutcome(works and slows, cores, throttled)

    def stop(self) -> None:
        """End it, and keep its last words if it had ended before."""
        if self.running:
            if not self.running.is_alive:
                self.last_words = self.running.last_words()
            self.running.end()
            self.running = None
            self.place.stop_server(STRESS)  # it would still be busy with us when the next one comes
        if self.dose.delay_ms and self.place.link:
            self.place.link.delay(0)
        groups, cores = self.place.groups, self.place.cpu_cores
        if groups and self.dose.cpu_ratio < 1:
            allow_share(groups.stress, cores, 1)
        if groups and self.dose.throttle_ratio < 1:
            allow_share(groups.bench, cores, 1)
        if self.dose.command:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def applied(dose: Dose, place: NodePlace, limit_s: float) -> Iterator[Stressor]:
    """The dose at work on the node, and gone afterwards. Raises MissingTool, NoServer."""
    stressor = Stressor(dose, place, limit_s)
    try:
        stressor.start()
        yield stressor
    finally:
        stressor.stop()


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
class Bench:
    """What all executions of a campaign share. group: of all nodes."""

    params: RecordParams
    campaign: str
    templates: Mapping[str, BenchmarkTemplate]
    places: Mapping[str, NodePlace]
    parsers: Mapping[str, Parser]
    group: ControlGroup | None

    def record(self, planned: PlannedExecution, dose: Dose | None) -> Outcome:
        """Run one execution to its end. Raises MissingTool, NoServer."""
        place, template = self.places[planned.node], self.templates[planned.benchmark]
        if template.is_network:
            place.serve(template.benchmark, template.server)
        words = place.command(template.command, place.values(purpose=template.benchmark, limit_s=template.limit_s))
        around = place.around(place.groups.bench if place.groups else None)
        with applied(dose or NO_STRESS, place, template.limit_s) as stressor:
            at_work = [active.process.pid for active in (*place.servers.values(), stressor.running) if active]
            stressed = stressor.read()
            load_1m, before, started_at = os.getloadavg()[0], usage_now(self.group, at_work), datetime.now(UTC)
            running, exit_status = run(words, around, place.folder / "log", template.limit_s)
            after, stressed_after = usage_now(self.group, at_work), stressor.read()
        stress = stressor.outcome(stressed, stressed_after) if dose else None
        if exit_status is None and template.is_network:
            place.stop_server(template.benchmark)  # it may still wait for the client that was killed
        log, disturbance = running.output(), disturbance_between(before, after)
        parser = self.parsers.get(planned.benchmark)
        parsed = parser.parse(log) if parser else None
        is_whole = exit_status == 0 and bool(parsed and parsed.measured)
        duration_s, begun = running.ended_s - running.began_s, started_at.replace(tzinfo=None)
        facts = {
            "execution_id": planned.id_in(self.campaign),
            "node": planned.node,
            "machine_type": place.params.machine_type,
            "benchmark": planned.benchmark,
            "aspect": template.aspect,
            "template": template.command,
            "template_hash": template.template_hash,
            "tool_version": (parsed.version if parsed else "") or installed_version(template.tool) or None,
            "started_at": begun,
            "ended_at": begun + timedelta(seconds=duration_s),
            "duration_s": known(duration_s),
            "status": "timeout" if exit_status is None else "completed" if is_whole else "failed",
            "is_stressed": bool(stress and stress.is_applied),
            "stress_wanted": planned.stress_wanted,
            "dose": ".".join(filter(None, (planned.dose, *place.lowered))),
            "dose_level": planned.dose_level,
            "is_contaminated": disturbance.exceeds(self.params.foreign_limit_ratio),
            "foreign_cores": known(disturbance.foreign_cores),
            "steal_cores": known(disturbance.steal_cores),
            "load_1m": load_1m,
            "is_emulated": place.is_emulated,
            "campaign": self.campaign,
        }
        measured, missing = (parsed.measured, parsed.missing) if parsed and is_whole else ((), ())
        execution = Execution(facts, measured, missing, tool=template.tool, log=log)
        status = _status_of(facts, dose)
        about: dict[str, Any] = {"status": status, "exit_status": exit_status}
        about |= {"faults": len(parsed.faults) if parsed else 0}
        if stress:
            about["stress"] = all_known(asdict(stress)) | ({"told": stressor.last_words} if stressor.last_words else {})
        if place.lowered:
            about |= {"lowered": list(place.lowered)}
        return Outcome(planned, status, running.began_s, running.ended_s, execution, about)


def _status_of(facts: Mapping[str, Any], dose: Dose | None) -> str:
    """clean, or why an execution is to be repeated."""
    if facts["status"] != "completed":
        return str(facts["status"])
    if facts["is_contaminated"]:
        return "contaminated"
    return "unstressed" if dose and not facts["is_stressed"] else CLEAN


@lru_cache
def installed_version(tool: str) -> str:
    """The version of a tool whose logs do not tell; empty for others, and where it does not say."""
    path = find_tool(tool) if tool in VERSION_FLAG else None
    if path is None:
        return ""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run([path, VERSION_FLAG[tool]], capture_output=True, text=True, timeout=WAIT_S, check=False)
        if version := re.search(r"\d+(\.\d+)+", answer.stdout + answer.stderr):
            return version[0]
    return ""
