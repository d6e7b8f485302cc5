"""What the recorder itself takes while it records for a minute: under 5 % of one core (make bench)."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tasks.jobs.params import Campaign
from tasks.jobs.record.campaign import record_jobs

pytestmark = pytest.mark.bench

MOST = 0.05


@pytest.mark.parametrize("isolation", ["auto", "threads"])
def test_the_recorder_takes_less_than_a_twentieth_of_one_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], isolation: str
) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="whorl-bench-"))
    try:
        asked = {"minutes": 1, "data_scale": 0.2, "isolation": isolation, "scratch": str(scratch)}
        found = record_jobs(Campaign.model_validate(asked), tmp_path)
    finally:
        shutil.rmtree(scratch)
    n_runs, cost = sum(found.statuses.values()), found.own_cpu_s / found.recorded_s
    with capsys.disabled():
        print(
            f"\n{found.isolation}: {n_runs} runs in {found.recorded_s:.0f} s, {found.own_cpu_s:.2f} s of CPU for the "
            f"recorder itself: {100 * cost:.2f} % of one core, {1000 * found.own_cpu_s / max(1, n_runs):.1f} ms a run"
        )
    assert n_runs > 0
    assert cost < MOST
