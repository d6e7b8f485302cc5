"""One run on the bench: its own control group, perf and sampler around it, and what disturbed it."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tasks.errors import WhorlError
from tasks.machine_groups import ROOT, Group
from tasks.workloads.record.foreign import disturbance_of
from tasks.workloads.record.measures import Source, Unavailable, opened
from tasks.workloads.record.params import RecordParams
from tasks.workloads.record.parts import CLEAN
from tasks.workloads.record.perf_child import PerfChild, PerfPlan, perf_group
from tasks.workloads.record.plan import PlannedRun
from tasks.workloads.record.programs.program import Input, Place, Program
from tasks.workloads.record.sampler import Sampled, sample
from tasks.workloads.record.subjects import Subject
from tasks.workloads.telemetry import Telemetry

MARGIN_S = 0.5  # a program stops its servers when its time is over: not before the last sample
JOIN_S = 40.0
DIGITS = 5


@dataclass(frozen=True)
class Outcome:
    """What became of a run. telemetry: None if it failed; facts: kept in the record of its file."""

    run: PlannedRun
    status: str
    telemetry: Telemetry | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    unavailable: tuple[Unavailable, ...] = ()
    error: str = ""


class Work(threading.Thread):
    """A program's run in a thread of its own: the sampler goes on whatever it does."""

    def __init__(self, program: Program, place: Place, input: Input, seconds: float) -> None:
        super().__init__(name=f"run {program.name}", daemon=True)
        self.program, self.place, self.input, self.seconds = program, place, input, seconds
        self.error: Exception | None = None
        self.began_s = self.ended_s = float("nan")

    def run(self) -> None:
        """Run it to its end, and keep its error."""
        self.began_s = time.monotonic()
        try:
            self.program.run(self.place, self.input, self.seconds)
        except Exception as error:  # any fault of one workload is a failed run, not the end of the campaign
            self.error = error
        finally:
            self.ended_s = time.monotonic()

    def is_over_early(self) -> bool:
        """Whether it has ended before its time."""
        return self.ended_s - self.began_s < self.seconds - MARGIN_S

    def end(self) -> None:
        """Have it end, whatever it does; returns when it has, or after a while."""
        if self.ident is None:
            return
        self.join(JOIN_S)
        if self.is_alive():
            self.program.stop(self.place)
            self.join(JOIN_S)


@contextlib.contextmanager
def own_group(campaign: Group | None, name: str) -> Iterator[Group | None]:
    """A control group for one run inside the campaign's; None where there are none."""
    group = campaign.child(name) if campaign else None
    try:
        yield group
    finally:
        if group:
            group.remove()


@contextlib.contextmanager
def open_sources(subject: Subject) -> Iterator[tuple[list[Source], list[Unavailable]]]:
    """The files of a subject, open, and what the machine does not give."""
    sources, missing = opened(subject.sources())
    try:
        yield sources, missing
    finally:
        for source in sources:
            source.close()


def joined(place: Place, group: Group | None, seed: int) -> Place:
    """The same place, whose next processes belong to this group."""
    folders = dict.fromkeys(group.folders.values()) if group else {}
    return replace(place, joins=tuple(folder / "cgroup.procs" for folder in folders), seed=seed)


@dataclass(frozen=True)
class Bench:
    """What all runs of a campaign share. group: the campaign's, None without control groups."""

    params: RecordParams
    group: Group | None
    perf: PerfPlan
    machine: str
    root: Path = ROOT

    def record(self, run: PlannedRun, program: Program, place: Place) -> Outcome:
        """Rest, run, sample. The run's first second is the workload's first second."""
        input = next(one for one in program.inputs if one.name == run.input)
        params = self.params
        duration_s = params.samples * params.interval_s
        with own_group(self.group, run.run_id) as group, open_sources(Subject(group)) as (sources, missing):
            work = Work(program, joined(place, group, run.seed), input, duration_s + MARGIN_S)
            os.sync()
            perf = self._started_perf(group)
            try:
                sampled = sample(
                    sources,
                    params.samples,
                    params.interval_s,
                    perf=perf,
                    on_start=work.start,
                    should_stop=lambda: work.error is not None,
                )
            finally:
                if perf:
                    perf.stop()
                work.end()
                program.stop(work.place)
        if work.error is not None or not sampled.is_whole:
            return Outcome(run, "failed", error=_told(work.error))
        telemetry = self._telemetry(run, sampled)
        return self._outcome(telemetry, run, sampled, (*missing, *self.perf.missing), is_short=work.is_over_early())

    def _started_perf(self, group: Group | None) -> PerfChild | None:
        """Perf at work, as long before the run as the rest lasts: the end of its first interval begins the run."""
        if not self.perf.events:
            time.sleep(self.params.pause_s)
            return None
        time.sleep(max(0.0, self.params.pause_s - self.params.interval_s))
        child = PerfChild(self.perf, perf_group(group, self.root), self.params.interval_s)
        if not child.wait_for_first():
            child.stop()
            return None
        return child

    def _telemetry(self, run: PlannedRun, sampled: Sampled) -> Telemetry:
        return Telemetry(
            run_id=run.run_id,
            counters=sampled.counters,
            at_s=sampled.at_s,
            values=sampled.values,
            workload=run.workload,
            input=run.input,
            round=run.round,
            machine=self.machine,
            started_at=sampled.started_at,
            interval_s=self.params.interval_s,
        )

    def _outcome(
        self,
        telemetry: Telemetry,
        run: PlannedRun,
        sampled: Sampled,
        missing: tuple[Unavailable, ...],
        *,
        is_short: bool,
    ) -> Outcome:
        sampler_cores = sampled.own_cpu_s / (self.params.samples * self.params.interval_s)
        disturbance = disturbance_of(telemetry, sampler_cores)
        if is_short or sampled.missed:
            status = "short" if is_short else "missed samples"
        else:
            is_foreign = disturbance.exceeds(self.params.foreign_limit_ratio, os.cpu_count() or 1)
            status = "disturbed" if is_foreign else CLEAN
        facts = {
            "status": status,
            "sampler_cores": round(sampler_cores, DIGITS),
            "missed_samples": sampled.missed,
            **{key: round(value, DIGITS) if value == value else None for key, value in asdict(disturbance).items()},
        }
        return Outcome(run, status, telemetry, facts, missing)


def _told(error: Exception | None) -> str:
    if error is None:
        return "was stopped"
    return str(error) if isinstance(error, WhorlError) else f"{type(error).__name__}: {error}"
