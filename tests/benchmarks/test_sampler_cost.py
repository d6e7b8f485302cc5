"""What the sampler of workloads takes while it samples a machine for half a minute: under 2 % of one core."""

import pytest

from tasks.workloads.record.bench import open_sources
from tasks.workloads.record.sampler import PerfChild, PerfPlan, sample
from tasks.workloads.record.subjects import Subject

pytestmark = pytest.mark.bench

MOST = 0.02
N_SAMPLES = 30


@pytest.mark.parametrize("profile", ["none", "light", "syscalls"])
def test_the_sampler_takes_less_than_a_fiftieth_of_one_core(capsys: pytest.CaptureFixture[str], profile: str) -> None:
    plan = PerfPlan(profile)  # type: ignore[arg-type]
    perf = PerfChild(plan, {}, 1.0) if plan.events else None
    if perf:
        assert perf.wait_for_first()
    with open_sources(Subject().sources()) as (sources, missing):
        found = sample(sources, N_SAMPLES, 1.0, perf=perf)
    cost, spacing = found.own_cpu_s / N_SAMPLES, found.at_s - range(1, N_SAMPLES + 1)
    with capsys.disabled():
        print(
            f"\nperf {profile}: {len(found.counters)} counters, {len(missing)} missing, {100 * cost:.2f} % of a core, "
            f"{1000 * cost:.1f} ms a sample; at most {1000 * abs(spacing).max():.1f} ms off the grid"
        )
    assert found.missed == 0
    assert cost < MOST
