"""A recording of workloads from end to end: rounds, runs, part files. The way in is `record_workloads`."""

import logging
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir

from tasks.errors import MissingTool, WhorlError
from tasks.machine import campaign_group, counts_hardware_events, remove_scratch, scratch_folder
from tasks.record.campaign import Progress, RecordSummary, recording
from tasks.record.facts import machine_facts
from tasks.record.parts import CLEAN
from tasks.workloads.params import RecordParams
from tasks.workloads.record.bench import Bench, joined, own_group
from tasks.workloads.record.parts import RunLedger, machine_name
from tasks.workloads.record.plan import BETWEEN_RUNS_S, Outcome, Plan, PlannedRun, make_plan, named_programs
from tasks.workloads.record.programs import COMPANIONS, PROGRAMS
from tasks.workloads.record.programs.program import Program, ProgramPlace, lacks, make_place
from tasks.workloads.record.sampler import PerfPlan
from tasks.workloads.record.subjects import CONTROLLERS

MAY_BE_ENTERED = 0o011  # the workloads' folders belong to another user
PREFIX = "whorl-workloads-"
CPU_WEIGHT = 800  # against the rest of the machine, whose groups have 100: a run is measured, and others wait
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class WorkloadsRecorded(RecordSummary):
    """What a call did. sampler_cores: the sampler's own cost, mean and most."""

    sampler_cores: tuple[float, float]


def programs_of(params: RecordParams) -> Mapping[str, Program]:
    """What is recorded: the workloads, and under conditions also what is never learned, what disturbs, and nothing."""
    return PROGRAMS | COMPANIONS if params.conditions else PROGRAMS


def planned(params: RecordParams, programs: Mapping[str, Program] | None = None) -> Plan:
    """The plan of these parameters, as a dry run shows it. Raises BadSetting for an unknown workload."""
    return make_plan(params, named_programs(programs or programs_of(params), params.workloads))


def runnable(params: RecordParams, programs: Mapping[str, Program] | None = None) -> Mapping[str, Program]:
    """The programs of these parameters by workload. Raises BadSetting for an unknown workload, MissingTool."""
    ours = named_programs(programs or programs_of(params), params.workloads)
    if lacking := [f"{name}: {lack}" for name, program in ours.items() for lack in lacks(program.needs)]:
        raise MissingTool("; ".join(lacking))
    return ours


def record_workloads(
    params: RecordParams,
    out_dir: Path,
    progress: Progress | None = None,
    *,
    programs: Mapping[str, Program] | None = None,
    lock: str | None = None,
) -> WorkloadsRecorded:
    """Record a campaign into `runs-NNNN.parquet` under out_dir; disturbed runs go to `flagged-NNNN.parquet`.

    progress: called with (clean, planned) after each run. Each call goes on for params.minutes where the last one
    stopped. When it ends, by return, exception or SIGTERM, all that was recorded is in parts, and no process and no
    control group is left; after a kill the next call finds every finished run. Raises MissingTool, BadSetting (another
    campaign in out_dir, another recording at work, an unknown workload), BadInput (a part cannot be read)."""
    began = time.monotonic()
    ours = runnable(params, programs)
    with recording("workloads", out_dir, lock):
        ledger = RunLedger(out_dir, params, make_plan(params, ours), machine_facts(has_pmu=counts_hardware_events()))
        scratch = scratch_folder("workloads", str(out_dir.resolve()), place=params.scratch, shared=Path(gettempdir()))
        try:
            isolation = _record(params, ours, ledger, scratch, progress or (lambda *_: None))
        finally:
            remove_scratch(scratch, params.scratch)
            ledger.parts.close()
    costs = ledger.costs or [0.0]
    sampler_cores = (sum(costs) / len(costs), max(costs))
    return WorkloadsRecorded(**ledger.summary(isolation, began), sampler_cores=sampler_cores)


def _record(
    params: RecordParams, programs: Mapping[str, Program], ledger: RunLedger, scratch: Path, progress: Progress
) -> str:
    run_s = params.samples * params.interval_s + params.pause_s + BETWEEN_RUNS_S
    until_s = time.monotonic() + params.minutes * 60 - run_s
    with campaign_group(weight=CPU_WEIGHT, prefix=PREFIX, controllers=CONTROLLERS) as group:
        bench = Bench(params, programs, group, PerfPlan(params.perf), machine_name(params.machine))
        if group is None:
            logger.warning("no control groups here: counters of the workload's own group are missing")

        def keep(outcome: Outcome) -> None:
            ledger.keep(outcome)
            _log(outcome, ledger)
            progress(sum(status == CLEAN for status in ledger.statuses.values()), len(ledger.runs))

        for runs in ledger.todo():
            if runs and time.monotonic() <= until_s:
                Round(bench, scratch, until_s).record(runs, keep)
    return "cgroups" if group else "none"


@dataclass
class Round:
    """The runs that are left of one round; none starts after until_s on the monotonic clock."""

    bench: Bench
    scratch: Path
    until_s: float
    places: dict[str, ProgramPlace] = field(default_factory=dict)

    def record(self, runs: Sequence[PlannedRun], keep: Callable[[Outcome], None]) -> None:
        """Prepare, run one after the other, hand each outcome to `keep`, and stop all services at the end."""
        self.scratch.chmod(self.scratch.stat().st_mode | MAY_BE_ENTERED)
        try:
            lost = self._prepare(dict.fromkeys(name for run in runs for name in (run.workload, run.beside) if name))
            for run in runs:
                if time.monotonic() > self.until_s:
                    return
                if reasons := [lost[name] for name in (run.workload, run.beside) if name in lost]:
                    keep(Outcome(run, "failed", error=reasons[0]))
                    continue
                keep(self.bench.record(run, self.places))
        finally:
            self.stop()

    def _prepare(self, workloads: Iterable[str]) -> dict[str, str]:
        """Fresh data for each; returns those that could not be prepared, with the reason."""
        lost: dict[str, str] = {}
        for name in workloads:
            if time.monotonic() > self.until_s:
                break
            folder = self.scratch / name
            if folder.is_dir():  # of a recorder that was killed
                self.bench.programs[name].stop(make_place(folder))
            shutil.rmtree(folder, ignore_errors=True)
            place = self.places[name] = make_place(folder)
            began, program = time.monotonic(), self.bench.programs[name]
            try:
                with own_group(self.bench.group, f"prepare-{name}") as group:
                    try:
                        program.prepare(joined(place, group, self.bench.params.seed))
                    finally:
                        program.stop(place)
                logger.info("prepared %s in %.1f s", name, time.monotonic() - began)
            except WhorlError as error:
                logger.warning("%s cannot be prepared: %s", name, error)
                lost[name] = str(error)
        return lost

    def stop(self) -> None:
        """End all services and remove their data."""
        for name, place in self.places.items():
            self.bench.programs[name].stop(place)
            shutil.rmtree(self.scratch / name, ignore_errors=True)


def _log(outcome: Outcome, ledger: RunLedger) -> None:
    facts, n, total = outcome.facts, len(ledger.statuses), len(ledger.runs)
    if not outcome.telemetry:
        logger.warning("%s failed: %s", outcome.run.run_id, outcome.error)
        return
    logger.log(
        logging.INFO if outcome.status == CLEAN else logging.WARNING,
        "%d of %d: %s %s, %s cores busy, %s its own, %s foreign, %s stolen, sampler %.4f",
        n, total, outcome.run.run_id, outcome.status, facts["busy_cores"], facts["own_cores"], facts["foreign_cores"],
        facts["steal_cores"], facts["sampler_cores"],
    )  # fmt: skip
