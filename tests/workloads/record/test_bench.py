"""Who used the machine during a run: the workload, the sampler, others."""

from math import isnan

import numpy as np
import pytest

from tasks.workloads.record.bench import disturbance_of
from tasks.workloads.telemetry import Counter, Telemetry


def run_of(**columns):
    counters = tuple(Counter(name.replace("__", "."), is_rate=True) for name in columns)
    values = np.array(list(columns.values()), dtype=float).T
    return Telemetry("r", counters, np.arange(1.0, len(values) + 1), values)


USED = {"cpu__user_cores": [1.2, 1.0], "cpu__system_cores": [0.3, 0.5], "own__cpu__user_cores": [0.9, 0.7]}


def test_foreign_is_what_neither_the_workload_nor_the_sampler_used():
    found = disturbance_of(run_of(**USED, own__cpu__system_cores=[0.1, 0.1]), sampler_cores=0.02)
    assert (found.busy_cores, found.own_cores) == (pytest.approx(1.5), pytest.approx(0.9))
    assert found.foreign_cores == pytest.approx(0.58)
    assert found.exceeds(0.1, cores=2)
    assert not found.exceeds(0.3, cores=2)


def test_stolen_time_disturbs_like_foreign_work():
    found = disturbance_of(run_of(**USED, cpu__steal_cores=[0.4, 0.2]), sampler_cores=0.7)
    assert found.foreign_cores == 0.0 or found.foreign_cores < 0.2
    assert found.exceeds(0.1, cores=2)


def test_clock_ticks_never_make_less_than_nothing():
    quiet = {"cpu__user_cores": [0.5], "own__cpu__user_cores": [0.52]}
    assert disturbance_of(run_of(**quiet), 0.01).foreign_cores == 0.0


def test_without_a_group_nobody_knows_what_was_foreign_and_no_run_is_blamed():
    found = disturbance_of(run_of(cpu__user_cores=[1.9]), 0.01)
    assert isnan(found.foreign_cores)
    assert not found.exceeds(0.1, cores=2)


def test_a_missing_sample_does_not_hide_the_others():
    found = disturbance_of(run_of(cpu__user_cores=[float("nan"), 1.0], own__cpu__user_cores=[0.5, 0.5]), 0.0)
    assert found.foreign_cores == pytest.approx(0.5)
