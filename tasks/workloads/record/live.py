"""What runs now, recorded for a while: the whole machine, and beside it a control group, a process, or each group."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.errors import BadSetting, NotFound
from tasks.machine import CGROUP_ROOT, Group
from tasks.workloads.record.bench import disturbance_of, of_group, open_sources, shares_of
from tasks.workloads.record.counters import Source, Unavailable, machine_sources
from tasks.workloads.record.params import RecordParams
from tasks.workloads.record.parts import machine_name
from tasks.workloads.record.perf import PerfChild, PerfPlan, perf_group
from tasks.workloads.record.sampler import sample
from tasks.workloads.record.subjects import WHOLE, group_sources, groups_at_work, subject_of
from tasks.workloads.telemetry import OWN_PREFIX, Conditions, Telemetry

MOST_COUNTED = 32  # groups that perf counts in: each of them costs it a file per event and processor


def record_live(subject: str = WHOLE, seconds: float = 30, params: RecordParams | None = None) -> Telemetry:
    """Sample what runs now, once every params.interval_s. subject: as `subjects.subject_of` has it.

    Without a workload label, since that is the question; its conditions say what the subject, others and the hypervisor
    took, and `missing` which counters of it there are not. Takes an interval longer than asked: perf's first one is
    not whole. Raises NotFound for a subject that does not exist, BadSetting if there is no time for two samples."""
    settings = params or RecordParams()
    n_samples = _n_samples(seconds, settings)
    asked = subject_of(subject)
    groups = {OWN_PREFIX: asked.group} if asked.group else {}
    run, sampler_cores = _sampled(asked.sources(), groups, n_samples, settings, CGROUP_ROOT)
    return _with_shares(run, sampler_cores)


def record_each(seconds: float = 30, params: RecordParams | None = None, root: Path = CGROUP_ROOT) -> list[Telemetry]:
    """Sample each control group that holds processes, all at once; a run is called after the path of its group.

    Those that ended meanwhile are left out. Raises NotFound where there are no groups, BadSetting as `record_live`."""
    settings = params or RecordParams()
    n_samples = _n_samples(seconds, settings)
    groups = {f"{path}\n": group for path, group in groups_at_work(root).items()}  # no counter is called like that
    if not groups:
        raise NotFound(f"{root}: no control group holds a process; expected a machine whose groups can be read")
    sources = machine_sources()[:1]  # how busy the machine is: an answer about a group rests on the group alone
    for prefix, group in groups.items():
        sources += group_sources(group, prefix)
    counted = dict(list(groups.items())[:MOST_COUNTED])
    together, sampler_cores = _sampled(sources, counted, n_samples, settings, root)
    runs = [replace(of_group(together, prefix), run_id=prefix.strip(), missing=()) for prefix in groups]
    return [_with_shares(run, sampler_cores) for run in runs if any(one.scope == "workload" for one in run.counters)]


def _n_samples(seconds: float, settings: RecordParams) -> int:
    n_samples = round(seconds / settings.interval_s)
    if n_samples < 2:
        raise BadSetting(f"seconds: {seconds:g} is too short; expected at least two samples")
    return n_samples


def _sampled(
    asked: list[Source], groups: Mapping[str, Group], n_samples: int, settings: RecordParams, root: Path
) -> tuple[Telemetry, float]:
    """The samples of these sources and of perf in these groups, and the cores that sampling took.

    groups: by the prefix of their counters."""
    plan = PerfPlan(settings.perf)
    lacking = list(plan.missing)
    named = {prefix: perf_group(group, root) for prefix, group in groups.items()}
    perf = PerfChild(plan, named, settings.interval_s) if plan.events else None
    try:
        if perf and not perf.wait_for_first():
            lacking += [Unavailable(one.name, "perf was late with its first interval") for one in perf.counters]
            perf.stop()
            perf = None
        with open_sources(asked) as (sources, missing):
            sampled = sample(sources, n_samples, settings.interval_s, perf=perf)
    finally:
        if perf:
            perf.stop()
    run = Telemetry(
        run_id=f"live-{datetime.now(UTC):%Y%m%dT%H%M%S}",
        counters=sampled.counters,
        at_s=sampled.at_s,
        values=sampled.values,
        machine=machine_name(settings.machine),
        started_at=sampled.started_at,
        interval_s=settings.interval_s,
        missing=tuple(f"{one.counter}: {one.reason}" for one in (*missing, *lacking)),
    )
    return run, sampled.own_cpu_s / (n_samples * settings.interval_s)


def _with_shares(run: Telemetry, sampler_cores: float) -> Telemetry:
    shares: dict[str, Any] = dict(shares_of(disturbance_of(run, sampler_cores)))
    return replace(run, conditions=Conditions(run.run_id, "live", **shares))
