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
    n_runs, cost = sum(found.recorded.values()), found.more["own_cores_ratio"]
    with capsys.disabled():
        print(f"\n{found.isolation}: {n_runs} runs, the recorder itself took {100 * cost:.2f} % of one core")
    assert n_runs > 0
    assert cost < MOST
