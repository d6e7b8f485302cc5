"""Jobs with planted shapes, for the tests of shapes and of what is made of them."""

import numpy as np
import pytest

from tasks.jobs.normalisation import (
    historic_medians,
    normalise,
)
from tasks.jobs.pmf import bins_of, histogram
from tasks.jobs.shape_params import (
    BinParams,
    NormalisationParams,
)
from tasks.jobs.synthetic import SimulatedJob, simulate_runs

RATIO = bins_of("ratio", BinParams(n_bins=100))
NOISES = (0.05, 0.3)


@pytest.fixture
def planted():
    """A function: normalised runs of jobs of two kinds in turn, the wide kind first; group numbers; kinds of groups."""
    return _planted


@pytest.fixture
def counts_of():
    """A function: the histogram of normalised runs over `bins`, by default 100 bins of ratios."""
    return _counts_of


def _planted(n_jobs=30, n_runs=60, seed=1):
    kinds = np.arange(n_jobs) % 2
    jobs = [
        SimulatedJob(name=f"{i:03}", n_runs=n_runs, median_s=10.0 + i, log_deviation=NOISES[1 - kind])
        for i, kind in enumerate(kinds)
    ]
    runs = simulate_runs(jobs, np.random.default_rng(seed))
    history = runs.groupby("group_key")["runtime_s"].median()
    medians = historic_medians(runs, history, NormalisationParams())["median_s"]
    return normalise(runs["runtime_s"], medians, "ratio"), runs["group_key"].astype(int).to_numpy(), kinds


def _counts_of(values, groups, bins=RATIO):
    return histogram(values, groups, int(groups.max()) + 1, bins)
