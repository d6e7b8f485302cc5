"""One run on the bench: its own control group, perf and sampler around it, and what disturbed it; and what runs now,
recorded for a while: the whole machine, and beside it a control group, a process, or each group."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadSetting, NotFound, WhorlError
from tasks.machine import CGROUP_ROOT, ControlGroup, machine_name
from tasks.record.facts import DIGITS, NAN, Disturbance, all_known, known, shared_server_cpu_s
from tasks.record.parts import CLEAN
from tasks.workloads.params import RecordParams
from tasks.workloads.record.counters import Source, Unavailable, machine_sources, opened
from tasks.workloads.record.plan import Outcome, PlannedRun
from tasks.workloads.record.programs.program import Program, ProgramPlace
from tasks.workloads.record.sampler import PARTNER_PREFIX, PerfChild, PerfPlan, SampledStretch, perf_group, sample
from tasks.workloads.record.subjects import WHOLE, Programs, Subject, group_sources, groups_at_work, subject_of
from tasks.workloads.telemetry import GROUP_COUNTERS, OWN_PREFIX, Conditions, Telemetry

BUSY = tuple(f"cpu.{kind}_cores" for kind in ("user", "nice", "system", "irq", "softirq"))
OWN = ("own.cpu.user_cores", "own.cpu.system_cores")
STEAL, LOAD = "cpu.steal_cores", "load.one_minute"
MARGIN_S = 0.5  # a program stops its servers when its time is over: not before the last sample
JOIN_S = 40.0
PERIOD_US = 100_000


class Work(threading.Thread):
    """A program's run in a thread of its own: the sampler goes on whatever it does."""

    def __init__(self, program: Program, place: ProgramPlace, input: str, seconds: float) -> None:
        super().__init__(name=f"run {program.name}", daemon=True)
        self.program, self.place, self.options, self.seconds = program, place, program.inputs[input], seconds
        self.error: Exception | None = None
        self.is_short = False

    def run(self) -> None:
        """Run it to its end, and keep its error, or that it has ended before its time."""
        began_s = time.monotonic()
        try:
            self.program.run(self.place, self.options, self.seconds)
        except Exception as error:  # any fault of one workload is a failed run, not the end of the campaign
            self.error = error
        finally:
            self.is_short = time.monotonic() - began_s < self.seconds - MARGIN_S

    def end(self) -> None:
        """Have it end, whatever it does, with all that it has started; returns when it has, or after a while."""
        if self.ident is not None:
            self.join(JOIN_S)
        if self.is_alive():
            self.place.stop()
            self.join(JOIN_S)
        self.place.stop()


@contextlib.contextmanager
def own_group(campaign: ControlGroup | None, name: str) -> Iterator[ControlGroup | None]:
    """A control group for one run inside the campaign's; None where there are none."""
    group = campaign.child(name) if campaign else None
    try:
        yield group
    finally:
        if group:
            group.remove()


@contextlib.contextmanager
def open_sources(wanted: list[Source]) -> Iterator[tuple[list[Source], list[Unavailable]]]:
    """The files that could be opened, and what the machine does not give."""
    sources, missing = opened(wanted)
    try:
        yield sources, missing
    finally:
        for source in sources:
            source.close()


def joined(place: ProgramPlace, group: ControlGroup | None, seed: int) -> ProgramPlace:
    """The same place, whose next processes belong to this group."""
    return replace(place, joins=group.doors if group else (), seed=seed)


@dataclass(frozen=True)
class Bench:
    """What all runs of a campaign share. group: the campaign's, None without control groups."""

    params: RecordParams
    programs: Mapping[str, Program]
    group: ControlGroup | None
    perf: PerfPlan
    machine: str

    def record(self, run: PlannedRun, places: Mapping[str, ProgramPlace]) -> Outcome:
        """Rest, run, sample. The run's first second is the workload's first second, and that of what runs beside it.

        places: of the workload and of what runs beside it, by name."""
        params = self.params
        duration_s = params.samples * params.interval_s
        with contextlib.ExitStack() as stack:
            group = stack.enter_context(own_group(self.group, run.run_id))
            other = stack.enter_context(own_group(self.group, f"{run.run_id}.beside")) if run.beside else None
            if run.limit_cores is not None:
                if group is None:
                    return Outcome(run, "failed", error="no control groups here: the cores of a run cannot be limited")
                group.set_quota(round(run.limit_cores * PERIOD_US), PERIOD_US)
            partner = other if run.partner else None
            sources, missing = stack.enter_context(open_sources(Subject(group, partner=partner).sources()))
            watched = [Programs(Subject(control_group)) for control_group in (group, partner) if control_group]
            works = [
                Work(self.programs[name], joined(places[name], inside, seed), input, duration_s + MARGIN_S)
                for name, input, inside, seed in (
                    (run.workload, run.input, group, run.seed),
                    (run.beside, run.beside_input, other, run.seed + 1),
                )
                if name
            ]
            os.sync()
            perf = self._started_perf(group, partner)
            used_s: list[float] = []  # by what runs beside, and by the server of the flows

            def start() -> None:
                for work in works:
                    work.start()
                used_s.extend((_usage_s(other), shared_server_cpu_s()))

            try:
                sampled = sample(
                    [*sources, *watched],
                    params.samples,
                    params.interval_s,
                    perf=perf,
                    on_start=start,
                    should_stop=lambda: any(work.error is not None for work in works),
                )
                used_s.extend((_usage_s(other), shared_server_cpu_s()))
            finally:
                if perf:
                    perf.stop()
                for work in works:
                    work.end()
        errors = [work.error for work in works if work.error is not None]
        if errors or not sampled.is_whole:
            return Outcome(run, "failed", error=_error_text(errors[0] if errors else None))
        beside_cores, server_cores = (used_s[2] - used_s[0]) / duration_s, (used_s[3] - used_s[1]) / duration_s
        # those of the partner are missing as its own group's
        lacking = tuple(unavailable for unavailable in missing if not unavailable.counter.startswith(PARTNER_PREFIX))
        telemetry = self._telemetry(run, sampled, [programs.shares for programs in watched])
        sampler_cores = sampled.own_cpu_s / duration_s
        disturbance = disturbance_of(telemetry[0], sampler_cores + beside_cores + server_cores)
        is_foreign = disturbance.exceeds(params.foreign_limit_ratio)
        status = "disturbed" if is_foreign and not run.condition else CLEAN
        if sampled.missed:
            status = "missed samples"
        if any(work.is_short for work in works):
            status = "short"
        facts = {"status": status, "sampler_cores": round(sampler_cores, DIGITS), "missed_samples": sampled.missed}
        facts |= all_known(asdict(disturbance))
        if run.condition:
            facts["beside_cores"] = round(beside_cores, DIGITS)
            telemetry = _under_conditions(run, telemetry, disturbance, beside_cores, is_foreign=is_foreign)
        return Outcome(run, status, telemetry, facts, (*lacking, *self.perf.missing))

    def _telemetry(
        self, run: PlannedRun, sampled: SampledStretch, shares: Sequence[Mapping[str, float]]
    ) -> tuple[Telemetry, ...]:
        """The telemetry of a run, and of the partner beside it, each with the counters of both groups."""
        first = Telemetry(
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
            processes=shares[0] if shares else {},
        )
        if not run.partner:
            return (first,)
        second = replace(
            first,
            run_id=f"{run.recording}-{run.beside}-{run.beside_input}.with.{run.workload}-{run.input}",
            workload=run.beside,
            input=run.beside_input,
            processes=shares[1] if shares[1:] else {},
        )
        return first, second

    def _started_perf(self, group: ControlGroup | None, partner: ControlGroup | None) -> PerfChild | None:
        """Perf at work, as long before the run as the rest lasts: the end of its first interval begins the run."""
        first_s = self.params.interval_s if self.perf.events else 0.0
        time.sleep(max(0.0, self.params.pause_s - first_s))
        groups = {OWN_PREFIX: perf_group(group, CGROUP_ROOT), PARTNER_PREFIX: perf_group(partner, CGROUP_ROOT)}
        return self.perf.started(groups, self.params.interval_s)


def _under_conditions(
    run: PlannedRun,
    telemetry: Sequence[Telemetry],
    disturbance: "RunDisturbance",
    beside_cores: float,
    *,
    is_foreign: bool,
) -> tuple[Telemetry, ...]:
    """A run and its partner, if any, each with the counters of its own group and what there was beside it."""
    beside, shares = _share(beside_cores), shares_of(disturbance)
    first = Conditions(
        recording=run.recording,
        condition="wild" if run.condition == "alone" and is_foreign else run.condition,
        load=run.load or None,
        load_level=run.load_level,
        partner=run.partner or None,
        partner_input=run.beside_input if run.partner else None,
        limit_cores=run.limit_cores,
        partner_share=beside if run.partner else None,
        load_share=beside if run.load else None,
        **shares,
    )
    swapped = {"own_share": beside, "partner_share": shares["own_share"]}
    second = replace(first, partner=run.workload, partner_input=run.input, **swapped)
    sides = zip(telemetry, (OWN_PREFIX, PARTNER_PREFIX), (first, second), strict=False)
    return tuple(replace(of_group(of_run, prefix), conditions=conditions) for of_run, prefix, conditions in sides)


@dataclass(frozen=True)
class RunDisturbance(Disturbance):
    """Means over a run, in cores; NaN where the machine does not say. load_1m: at its first sample.

    A kernel that accounts interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING) charges them to nobody: there they count as
    foreign. Others charge them to the task that was interrupted."""

    busy_cores: float
    own_cores: float
    load_1m: float


def disturbance_of(telemetry: Telemetry, sampler_cores: float) -> RunDisturbance:
    """What disturbed a run. sampler_cores: CPU time of the sampler over the time of the run."""
    samples = pd.DataFrame(telemetry.values, columns=list(telemetry.names))
    means = samples.mean()
    busy, own = (float(means.reindex(names).sum(min_count=1)) for names in (BUSY, OWN))
    return RunDisturbance(
        busy_cores=busy,
        own_cores=own,
        foreign_cores=float(np.maximum(0.0, busy - own - sampler_cores)),  # NaN stays
        steal_cores=float(means.get(STEAL, NAN)),
        load_1m=float(samples[LOAD].iloc[0]) if LOAD in samples else NAN,
    )


def shares_of(disturbance: RunDisturbance) -> dict[str, Any]:
    """What the run's own group, everybody else and the hypervisor took of all cores; None where that is not known."""
    return {
        "own_share": _share(disturbance.own_cores),
        "foreign_share": _share(disturbance.foreign_cores),
        "stolen_share": _share(disturbance.steal_cores),
    }


def _share(cores: float) -> float | None:
    share: float | None = known(cores / (os.cpu_count() or 1))
    return share


def of_group(telemetry: Telemetry, prefix: str) -> Telemetry:
    """The counters of the machine and those of the group whose names begin so, as its own."""
    kept = [
        at
        for at, counter in enumerate(telemetry.counters)
        if counter.scope == "machine" or counter.name.startswith(prefix)
    ]
    counters = (telemetry.counters[at] for at in kept)
    named = (
        replace(counter, name=OWN_PREFIX + counter.name.removeprefix(prefix))
        if counter.scope == "workload"
        else counter
        for counter in counters
    )
    return replace(telemetry, counters=tuple(named), values=telemetry.values[:, kept])  # noqa: PD011


def _usage_s(group: ControlGroup | None) -> float:
    return group.usage_s() if group else 0.0


def _error_text(error: Exception | None) -> str:
    if error is None:
        return "was stopped"
    return str(error) if isinstance(error, WhorlError) else f"{type(error).__name__}: {error}"


MOST_COUNTED = 32  # groups that perf counts in: each of them costs it a file per event and processor


def record_live(subject: str = WHOLE, seconds: float = 30, params: RecordParams | None = None) -> Telemetry:
    """Sample what runs now, once every params.interval_s. subject: as `subjects.subject_of` has it.

    Without a workload label, since that is the question; its conditions say what the subject, others and the hypervisor
    took, and `missing` which counters of it there are not. Takes an interval longer than asked: perf's first one is
    not whole. Raises NotFound for a subject that does not exist, BadSetting if there is no time for two samples."""
    settings = params or RecordParams()
    n_samples = _n_samples(seconds, settings)
    target = subject_of(subject)
    name = target.name()  # before its container may end
    groups = {OWN_PREFIX: target.group} if target.group else {}
    programs = Programs(target)
    programs.read()  # of a whole machine, whose processes are many, at its begin and end alone
    watched = [] if target == Subject() else [programs]
    run, sampler_cores = _sampled(target.sources(), watched, groups, n_samples, settings, CGROUP_ROOT)
    programs.read()
    if target.pid is not None:
        why = f"{GROUP_COUNTERS}: process {target.pid} shares its control group with others, so that tells of them too"
        run = replace(run, missing=(why, *run.missing))
    return replace(_with_shares(run, sampler_cores, name), processes=programs.shares)


def record_each(seconds: float = 30, params: RecordParams | None = None, root: Path = CGROUP_ROOT) -> list[Telemetry]:
    """Sample each control group that holds processes, all at once; a run is called after the path of its group.

    Those that ended meanwhile are left out. Raises NotFound where there are none, BadSetting as `record_live`."""
    settings = params or RecordParams()
    n_samples = _n_samples(seconds, settings)
    groups = {f"{path}\n": group for path, group in groups_at_work(root).items()}  # no counter is called like that
    if not groups:
        raise NotFound(
            f"{root}: no control group holds a process; expected groups, as systemd, containers and "
            "systemd-run --scope make them; without one ask about a process and what it has started: --subject PID"
        )
    sources = machine_sources()[:1]  # how busy the machine is: an answer about a group rests on the group alone
    for prefix, group in groups.items():
        sources += group_sources(group, prefix)
    by_perf = dict(list(groups.items())[:MOST_COUNTED])
    programs = {prefix: Programs(Subject(group)) for prefix, group in groups.items()}
    together, sampler_cores = _sampled(sources, list(programs.values()), by_perf, n_samples, settings, root)
    runs = [
        replace(of_group(together, prefix), run_id=prefix.strip(), missing=(), processes=watched.shares)
        for prefix, watched in programs.items()
    ]
    counted = [run for run in runs if any(counter.scope == "workload" for counter in run.counters)]
    if not counted:
        raise NotFound(
            f"{root}: of {len(runs)} control groups none could be counted: ended, or their controllers are off; "
            "expected files such as cpu.stat in them; without these ask about a process: --subject PID"
        )
    return [_with_shares(run, sampler_cores, run.run_id) for run in counted]


def _n_samples(seconds: float, settings: RecordParams) -> int:
    n_samples = round(seconds / settings.interval_s)
    if n_samples < 2:
        raise BadSetting(f"seconds: {seconds:g} is too short; expected at least two samples")
    return n_samples


def _sampled(
    wanted: list[Source],
    watched: Sequence[Programs],
    groups: Mapping[str, ControlGroup],
    n_samples: int,
    settings: RecordParams,
    root: Path,
) -> tuple[Telemetry, float]:
    """The samples of these sources and of perf in these groups, and the cores that sampler and own server took.

    watched: read at each sample as well; groups: by the prefix of their counters."""
    plan = PerfPlan(settings.perf)
    lacking = list(plan.missing)
    named = {prefix: perf_group(group, root) for prefix, group in groups.items()}
    lacking += plan.uncounted(named)
    server_s, perf = shared_server_cpu_s(), plan.started(named, settings.interval_s)
    if perf is None:
        lacking += [
            Unavailable(counter.name, "perf was late with its first interval") for counter in plan.counters(named)
        ]
    try:
        with open_sources(wanted) as (sources, missing):
            sampled = sample([*sources, *watched], n_samples, settings.interval_s, perf=perf)
    finally:
        if perf:
            perf.stop()
    run = Telemetry(
        run_id=f"live-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}",
        counters=sampled.counters,
        at_s=sampled.at_s,
        values=sampled.values,
        machine=settings.machine or machine_name(),
        started_at=sampled.started_at,
        interval_s=settings.interval_s,
        missing=tuple(f"{unavailable.counter}: {unavailable.reason}" for unavailable in (*missing, *lacking)),
    )
    return run, (sampled.own_cpu_s + shared_server_cpu_s() - server_s) / (n_samples * settings.interval_s)


def _with_shares(run: Telemetry, sampler_cores: float, subject: str | None) -> Telemetry:
    shares = shares_of(disturbance_of(run, sampler_cores))
    return replace(run, conditions=Conditions(run.run_id, "live", subject=subject, **shares))
