"""What searches cost: 16 × 200 of 12 runs in under a minute of CPU, a proposal in under a second.

WHORL_DATASETS=… pytest -m bench -s tests/benchmarks/test_advice_search_speed.py"""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from tasks.advice.params import ReplayParams
from tasks.advice.replay import LearnableRuns, jobs_of, replay
from tasks.advice.search import Problem, propose
from tasks.advice.surrogate import TrialRuns
from tasks.advice.tables import read_machines, read_runs

pytestmark = pytest.mark.bench
SCOUT = Path(os.environ.get("WHORL_DATASETS", "")) / "scout" / "runs.csv"
MACHINES = Path(__file__).parents[2] / "conf" / "machines.csv"


@pytest.mark.skipif(not SCOUT.is_file(), reason="scout is not in WHORL_DATASETS")
def test_sixteen_times_two_hundred_searches_take_under_a_minute_of_cpu() -> None:
    jobs = jobs_of(read_runs(str(SCOUT), {}), read_machines(str(MACHINES), {}).types, {})
    params, training = ReplayParams(target_percentiles=()), LearnableRuns(jobs)
    began = time.process_time()
    for job in [*jobs, *jobs][:16]:
        replay(job, training, "learned", "completed", params)
    took_s = time.process_time() - began
    print(f"16 × {params.searches} searches of {params.runs} runs: {took_s:.1f} s of CPU, learning included")
    assert took_s < 60


@pytest.mark.skipif(not SCOUT.is_file(), reason="scout is not in WHORL_DATASETS")
def test_a_proposal_takes_under_a_second() -> None:
    job = jobs_of(read_runs(str(SCOUT), {}), read_machines(str(MACHINES), {}).types, {})[0]
    runs = TrialRuns(np.arange(8), job.outcome.log_cost[:8], job.is_completed[:8])
    began = time.process_time()
    propose(Problem(job.candidates), runs, np.random.default_rng(0))
    took_s = time.process_time() - began
    print(f"a proposal among {len(job.candidates)}: {1e3 * took_s:.1f} ms of CPU")
    assert took_s < 1
