"""A trained model of a log in which the cause of every long run is known."""

import shutil

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.explain.reasons import load_explainer
from tasks.warehouse.place import Warehouse

N_JOBS = 6


@pytest.fixture(scope="session")
def caused_runs():
    """A function: runs of six jobs in turn, one a minute, of 10 s and more: three times as long with three times the
    input (one run in six), twice as long under load (another one in six); which of them is in recorded_cause."""

    def draw(n_runs=900, *, seed=3):
        rng, number = np.random.default_rng(seed), np.arange(n_runs) % N_JOBS
        kind = rng.integers(6, size=n_runs)
        inputs = np.where(kind == 0, 3.0, 1.0) * np.exp(rng.normal(0, 0.05, n_runs))
        load = np.where(kind == 1, 0.9, 0.3) + rng.uniform(-0.05, 0.05, n_runs)
        noise = np.where(number % 2, 0.2, 0.05)  # so that the jobs have two shapes
        runtime_s = (10.0 + number) * inputs * np.where(kind == 1, 2.0, 1.0) * np.exp(rng.normal(0, noise))
        cause = np.array(["big_input", "load", "none", "none", "none", "none"])[kind]
        return pd.DataFrame(
            {
                "group_key": [f"job{i}#{i:08x}" for i in number], "runtime_s": np.round(runtime_s, 3),
                "input_bytes": np.round(1e6 * inputs), "load_mean": load, "recorded_cause": cause,
            }
        )  # fmt: skip

    return draw


@pytest.fixture(scope="session")
def caused_home(tmp_path_factory, job_log_at, caused_runs, quick_training):
    """The home of a source `log` of caused_runs with a model, made once."""
    from tasks.jobs import steps

    home = tmp_path_factory.mktemp("caused") / "home"
    steps.train(job_log_at(home)(caused_runs()), "log", quick_training, "first-run")
    return home


@pytest.fixture
def caused_log(tmp_path, caused_home):
    """A warehouse of this test with that source and model."""
    shutil.copytree(caused_home, tmp_path / "caused")
    return Warehouse(home=tmp_path / "caused", memory_mb=256, threads=1)


@pytest.fixture(scope="session")
def explainer(caused_home):
    """What explains the runs of that source; nobody changes it."""
    return load_explainer(Warehouse(home=caused_home, memory_mb=256, threads=1), "log")
