"""What runs now, recorded for a while: the whole machine, and beside it a control group or a process."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tasks.errors import BadSetting
from tasks.machine_groups import ROOT
from tasks.workloads.record.bench import disturbance_of, open_sources, shares_of
from tasks.workloads.record.counters import Unavailable
from tasks.workloads.record.params import RecordParams
from tasks.workloads.record.parts import machine_name
from tasks.workloads.record.perf import PerfChild, PerfPlan, perf_group
from tasks.workloads.record.sampler import sample
from tasks.workloads.record.subjects import WHOLE, subject_of
from tasks.workloads.telemetry import Conditions, Telemetry


def record_live(subject: str = WHOLE, seconds: float = 30, params: RecordParams | None = None) -> Telemetry:
    """Sample what runs now, once every params.interval_s. subject: as `subjects.subject_of` has it.

    Without a workload label, since that is the question; its conditions say what the subject, others and the hypervisor
    took, and `missing` which counters of it there are not. Takes an interval longer than asked: perf's first one is
    not whole. Raises NotFound for a subject that does not exist, BadSetting if there is no time for two samples."""
    settings = params or RecordParams()
    n_samples = round(seconds / settings.interval_s)
    if n_samples < 2:
        raise BadSetting(f"seconds: {seconds:g} is too short; expected at least two samples")
    asked = subject_of(subject)
    plan = PerfPlan(settings.perf)
    lacking = list(plan.missing)
    perf = PerfChild(plan, [perf_group(asked.group, ROOT)], settings.interval_s) if plan.events else None
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
    run_id = f"live-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    telemetry = Telemetry(
        run_id=run_id,
        counters=sampled.counters,
        at_s=sampled.at_s,
        values=sampled.values,
        machine=machine_name(settings.machine),
        started_at=sampled.started_at,
        interval_s=settings.interval_s,
        missing=tuple(f"{one.counter}: {one.reason}" for one in (*missing, *lacking)),
    )
    sampler_cores = sampled.own_cpu_s / (n_samples * settings.interval_s)
    shares: dict[str, Any] = dict(shares_of(disturbance_of(telemetry, sampler_cores)))
    return replace(telemetry, conditions=Conditions(run_id, "live", **shares))
