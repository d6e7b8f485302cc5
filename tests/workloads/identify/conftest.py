"""Drawn workloads whose truth is known, and a model of some of them."""

from dataclasses import dataclass

import numpy as np
import pytest

from tasks.workloads.identify.model import Model, fit_model
from tasks.workloads.params import IdentifyParams
from tasks.workloads.telemetry import Telemetry
from tests.workloads.identify.synthetic import DrawnWorkload, draw_kin, draw_runs, draw_workload

N_COUNTERS, N_RUNS, N_TRAIN = 15, 9, 6


@dataclass(frozen=True)
class Case:
    """Runs to train on and to ask about, runs of a stranger and of a kin of mariadb, and the model."""

    train: list[Telemetry]
    test: list[Telemetry]
    strangers: list[Telemetry]
    kin: list[Telemetry]
    model: Model
    workloads: list[DrawnWorkload]


@pytest.fixture(scope="session")
def case() -> Case:
    rng = np.random.default_rng(11)
    workloads = [draw_workload(name, N_COUNTERS, 3, rng) for name in ("redis", "mariadb", "nginx", "cnn")]
    runs = draw_runs(workloads, N_RUNS, rng)
    train = [run for run in runs if int(run.run_id[-2:]) < N_TRAIN]
    test = [run for run in runs if int(run.run_id[-2:]) >= N_TRAIN]
    strangers = draw_runs([draw_workload("bayes", N_COUNTERS, 3, rng)], N_RUNS, rng)
    kin = draw_runs([draw_kin(workloads[1], "postgresql", rng)], N_RUNS, rng)
    return Case(train, test, strangers, kin, fit_model(train, IdentifyParams()), workloads)
