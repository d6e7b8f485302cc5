"""Jobs with planted shapes, for the tests of shapes and of what is made of them."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.normalisation import bins_of, histogram, normalise
from tasks.jobs.params import BinParams
from tests.jobs.synthetic import SimulatedJob, simulate_runs

RATIO = bins_of("ratio", BinParams(n_bins=100))
NOISES = (0.05, 0.3)
START = pd.Timestamp("2026-01-01")


@pytest.fixture
def planted():
    """A function: normalised runs of jobs of two kinds in turn, the wide kind first; group numbers; kinds of groups."""

    def make(n_jobs=30, n_runs=60, seed=1):
        kinds = np.arange(n_jobs) % 2
        jobs = [
            SimulatedJob(name=f"{i:03}", n_runs=n_runs, median_s=10.0 + i, log_deviation=NOISES[1 - kind])
            for i, kind in enumerate(kinds)
        ]
        runs = simulate_runs(jobs, np.random.default_rng(seed))
        medians = runs.groupby("group_key")["runtime_s"].transform("median")
        return normalise(runs["runtime_s"], medians, "ratio"), runs["group_key"].astype(int).to_numpy(), kinds

    return make


@pytest.fixture
def counts_of():
    """A function: the histogram of normalised runs over `bins`, by default 100 bins of ratios."""
    return lambda values, groups, bins=RATIO: histogram(values, groups, int(groups.max()) + 1, bins)


@pytest.fixture
def log_of():
    """A function: a log out of runtimes in seconds, one run a minute, jobs given or all `job`."""
    return _log_of


@pytest.fixture
def drawn():
    """A function: a log of jobs in turn, one run a minute, whose runtime is median × input × log-normal noise.

    input is log-normal and known (input_bytes); has_input=False leaves it out. Runtimes end before the next run."""

    def make(n_runs=1200, n_jobs=6, *, noise=0.2, input_sd=1.0, has_input=True, seed=1):
        rng = np.random.default_rng(seed)
        number = np.arange(n_runs) % n_jobs
        inputs = np.exp(rng.normal(0, input_sd, n_runs)) if has_input else np.ones(n_runs)
        runtime_s = (2.0 + number) * inputs * np.exp(rng.normal(0, noise, n_runs))
        columns = {"input_bytes": 1e6 * inputs} if has_input else {}
        return _log_of(runtime_s, [f"job{i}" for i in number], **columns)

    return make


def _log_of(runtime_s, jobs="job", **columns):
    runtime_s = np.asarray(runtime_s, dtype=float)
    n = len(runtime_s)
    submitted_at = pd.Series(START + pd.to_timedelta(np.arange(n), unit="min")).astype("datetime64[us]")
    ended_at = (submitted_at + pd.to_timedelta(runtime_s, unit="s")).astype("datetime64[us]")
    known = {"run_id": [f"{i:06}" for i in range(n)], "group_key": jobs, "submitted_at": submitted_at}
    return pd.DataFrame(
        {**known, "started_at": submitted_at, "ended_at": ended_at, "runtime_s": runtime_s, "wait_s": 0.0, **columns}
    )
