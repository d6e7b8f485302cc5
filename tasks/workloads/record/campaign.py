"""A recording of workloads from end to end: rounds, runs, part files. The way in is `record_workloads`."""

import contextlib
import logging
import shutil
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir

from tasks.errors import MissingTool, WhorlError
from tasks.machine import campaign_group, counts_hardware_events, machine_name, remove_scratch, scratch_folder
from tasks.record.campaign import Progress, RecordSummary, in_time, recording
from tasks.record.facts import machine_facts
from tasks.record.parts import CLEAN
from tasks.workloads.params import RecordParams
from tasks.workloads.record.bench import Bench, joined, own_group
from tasks.workloads.record.parts import RunLedger
from tasks.workloads.record.plan import BETWEEN_RUNS_S, Outcome, Plan, PlannedRun, make_plan, named_programs
from tasks.workloads.record.programs import COMPANIONS, PROGRAMS
from tasks.workloads.record.programs.program import Program, ProgramPlace, lacks, make_place
from tasks.workloads.record.sampler import PerfPlan
from tasks.workloads.record.subjects import CONTROLLERS

MAY_BE_ENTERED = 0o011  # the workloads' folders belong to another user
PREFIX = "whorl-workloads-"
CPU_WEIGHT = 800  # against the rest of the machine, whose groups have 100: a run is measured, and others wait
logger = logging.getLogger(__name__)


def programs_of(params: RecordParams) -> Mapping[str, Program]:
    """What is recorded: the workloads, and under conditions also what is never learned, what disturbs, and nothing."""
    return PROGRAMS | COMPANIONS if params.conditions else PROGRAMS


def planned(params: RecordParams) -> Plan:
    """The plan of these parameters, as a dry run shows it. Raises BadSetting for an unknown workload."""
    return make_plan(params, named_programs(programs_of(params), params.workloads))


def runnable(params: RecordParams) -> Mapping[str, Program]:
    """The programs of these parameters by workload. Raises BadSetting for an unknown workload, MissingTool."""
    ours = named_programs(programs_of(params), params.workloads)
    if lacking := [f"{name}: {lack}" for name, program in ours.items() for lack in lacks(program.needs)]:
        raise MissingTool("; ".join(lacking))
    return ours


def record_workloads(
    params: RecordParams,
    out_dir: Path,
    progress: Progress | None = None,
) -> RecordSummary:
    """Record a campaign into `runs-NNNN.parquet` under out_dir; disturbed runs go to `flagged-NNNN.parquet`.

    progress: called with (clean, planned) after each run. Each call goes on for params.minutes where the last one
    stopped. What it returns has as `more` sampler_cores, the sampler's own cost. When it ends, by return, exception or
    SIGTERM, all that was recorded is in parts, and no process and no control group is left; after a kill the next call
    finds every finished run. Raises MissingTool, BadSetting (another campaign in out_dir, another recording at work, an
    unknown workload), BadInput (a part cannot be read)."""
    ours = runnable(params)
    with recording("workloads", out_dir):
        ledger = RunLedger(out_dir, params, make_plan(params, ours), machine_facts(has_pmu=counts_hardware_events()))
        scratch = scratch_folder("workloads", str(out_dir.resolve()), place=params.scratch, shared=Path(gettempdir()))
        try:
            isolation = _record(params, ours, ledger, scratch, progress or (lambda *_: None))
        finally:
            remove_scratch(scratch, params.scratch)
            ledger.parts.close()
    return ledger.summary(isolation, sampler_cores=sum(ledger.costs) / max(1, len(ledger.costs)))


def _record(
    params: RecordParams, programs: Mapping[str, Program], ledger: RunLedger, scratch: Path, progress: Progress
) -> str:
    run_s = params.samples * params.interval_s + params.pause_s + BETWEEN_RUNS_S
    until_s = time.monotonic() + params.minutes * 60 - run_s
    with campaign_group(weight=CPU_WEIGHT, prefix=PREFIX, controllers=CONTROLLERS) as group:
        bench = Bench(params, programs, group, PerfPlan(params.perf), params.machine or machine_name())
        if group is None:
            logger.warning("no control groups here: counters of the workload's own group are missing")
        for runs in in_time(filter(None, ledger.todo()), until_s):
            with contextlib.closing(_round(bench, scratch, runs, until_s)) as outcomes:
                for outcome in outcomes:
                    ledger.keep(outcome)
                    _log(outcome, ledger)
                    progress(sum(status == CLEAN for status in ledger.statuses.values()), len(ledger.runs))
    return "cgroups" if group else "none"


def _round(bench: Bench, scratch: Path, runs: Sequence[PlannedRun], until_s: float) -> Generator[Outcome]:
    """What became of the runs that are left of one round, none started after until_s: programs are prepared afresh, and
    their services and data are gone at the end."""
    scratch.chmod(scratch.stat().st_mode | MAY_BE_ENTERED)
    places: dict[str, ProgramPlace] = {}
    lost: dict[str, str] = {}  # what could not be prepared, with the reason
    try:
        for name in in_time(dict.fromkeys(name for run in runs for name in run.programs), until_s):
            if reason := _prepare(bench, scratch, name, places):
                lost[name] = reason
        for run in in_time(runs, until_s):
            reasons = [lost[name] for name in run.programs if name in lost]
            yield Outcome(run, "failed", error=reasons[0]) if reasons else bench.record(run, places)
    finally:
        for name, place in places.items():
            place.stop()
            shutil.rmtree(scratch / name, ignore_errors=True)


def _prepare(bench: Bench, scratch: Path, name: str, places: dict[str, ProgramPlace]) -> str:
    """Give a program a place with fresh data; returns why that cannot be."""
    began, folder = time.monotonic(), scratch / name
    if folder.is_dir():  # of a recorder that was killed
        make_place(folder).stop()
    shutil.rmtree(folder, ignore_errors=True)
    places[name] = make_place(folder)
    try:
        with own_group(bench.group, f"prepare-{name}") as group:
            bench.programs[name].prepare(joined(places[name], group, bench.params.seed))
    except WhorlError as error:
        logger.warning("%s cannot be prepared: %s", name, error)
        return str(error)
    logger.info("prepared %s in %.1f s", name, time.monotonic() - began)
    return ""


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
