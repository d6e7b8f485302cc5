"""Logs for the tests of figures and pages."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import summarise
from tasks.jobs.synthetic import SimulatedJob, simulate_runs


@pytest.fixture
def summarised(job_log):
    """A function that puts runs into a warehouse, summarises them and returns the warehouse."""

    def fill(runs, *, source="log"):
        warehouse = job_log(runs, source=source)
        summarise(warehouse, source, SummaryParams())
        return warehouse

    return fill


@pytest.fixture(scope="session")
def varied_runs() -> pd.DataFrame:
    """Eight jobs from steady to varying, 60 runs each, some of them slow."""
    jobs = [SimulatedJob(name=f"job {i}", n_runs=60, log_deviation=0.02 * 2**i, slow_share=0.02 * i) for i in range(8)]
    return simulate_runs(jobs, np.random.default_rng(8))
