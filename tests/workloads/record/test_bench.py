"""A run on the bench and what disturbed it; what runs now, recorded for a while."""

import os
import subprocess
import sys
from math import isnan

import numpy as np
import pytest

from tasks.errors import BadSetting, NotFound
from tasks.machine import campaign_group
from tasks.workloads.record.bench import disturbance_of, record_each, record_live
from tasks.workloads.telemetry import Counter, Telemetry


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def run_of(**columns):
    counters = tuple(Counter(name.replace("__", "."), is_rate=True) for name in columns)
    values = np.array(list(columns.values()), dtype=float).T
    return Telemetry("r", counters, np.arange(1.0, len(values) + 1), values)


USED = {"cpu__user_cores": [1.2, 1.0], "cpu__system_cores": [0.3, 0.5], "own__cpu__user_cores": [0.9, 0.7]}


def test_foreign_is_what_neither_the_workload_nor_the_sampler_used():
    found = disturbance_of(run_of(**USED, own__cpu__system_cores=[0.1, 0.1]), sampler_cores=0.02)
    assert (found.busy_cores, found.own_cores) == (pytest.approx(1.5), pytest.approx(0.9))
    assert found.foreign_cores == pytest.approx(0.58)
    assert found.exceeds(0.1)
    assert not found.exceeds(0.3)


def test_stolen_time_disturbs_like_foreign_work():
    found = disturbance_of(run_of(**USED, cpu__steal_cores=[0.4, 0.2]), sampler_cores=0.7)
    assert found.foreign_cores == 0.0 or found.foreign_cores < 0.2
    assert found.exceeds(0.1)


def test_without_a_group_nobody_knows_what_was_foreign_and_no_run_is_blamed():
    found = disturbance_of(run_of(cpu__user_cores=[1.9]), 0.01)
    assert isnan(found.foreign_cores)
    assert not found.exceeds(0.1)
    ticks = run_of(cpu__user_cores=[0.5], own__cpu__user_cores=[0.52])  # clock ticks never make less than nothing
    assert disturbance_of(ticks, 0.01).foreign_cores == 0.0
    gap = run_of(cpu__user_cores=[float("nan"), 1.0], own__cpu__user_cores=[0.5, 0.5])  # which does not hide the others
    assert disturbance_of(gap, 0.0).foreign_cores == pytest.approx(0.5)


@pytest.fixture
def brief(quick):
    return quick.model_copy(update={"interval_s": 0.2})


def test_the_machine_alone_has_no_counters_of_its_own(brief):
    run = record_live("machine", 0.6, brief)
    assert run.n_samples == 3
    assert run.workload is None
    assert "cpu.user_cores" in run.names
    assert not any(counter.scope == "workload" for counter in run.counters)


def test_a_process_and_its_children_are_recorded_beside_the_machine(brief):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    parent = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        run = record_live(str(parent.pid), 1.2, brief)
    finally:
        os.killpg(parent.pid, 9)
        parent.wait()
    own = run.values[:, run.names.index("own.cpu.user_cores")]
    assert own[~(own != own)].max() > 0.1
    assert sum(run.processes.values()) == pytest.approx(1)
    assert run.values[-1, run.names.index("own.cpu.tasks")] == 2
    assert 0 < run.conditions.own_share <= 1
    assert run.conditions.foreign_share is not None
    assert run.conditions.stolen_share is not None
    assert run.conditions.subject == str(parent.pid)
    assert run.missing[0].startswith(f"own.*: process {parent.pid} shares its control group with others")  # with us


def test_a_group_is_kept_by_its_path_however_it_was_typed(brief):
    with campaign_group() as group:
        if group is None:
            pytest.skip("no control group can be made")
        path = group.folders["cpu"].name
        assert record_live(f"/{path}/", 0.6, brief).conditions.subject == path


def test_a_process_that_ends_leaves_missing_samples_and_no_error(brief):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.3)"])
    run = record_live(str(child.pid), 1.0, brief)
    child.wait()
    column = run.values[:, run.names.index("own.memory.resident_bytes")]
    assert column[0] == column[0]
    assert run.n_samples == 5


def test_what_does_not_exist_is_refused(brief):
    with pytest.raises(NotFound, match="no such process"):
        record_live("4194304999", 1, brief)


def test_too_short_a_time_is_refused(brief):
    with pytest.raises(BadSetting, match="at least two samples"):
        record_live("machine", 0.2, brief)


@pytest.fixture
def stored(tmp_path):
    """A version 2 tree with two groups, one of which uses half a second of processor time in all."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    for name, used_us in (("a.service", 500_000), ("b.service", 0)):
        folder = tmp_path / "system.slice" / name
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").write_text("7\n")
        (folder / "cpu.stat").write_text(f"user_usec {used_us}\nsystem_usec 0\n")
        (folder / "memory.current").write_text("4096")
    return tmp_path


def test_each_group_is_a_run_of_its_own_counters_and_its_share(stored, brief):
    runs = {run.run_id: run for run in record_each(0.6, brief, stored)}
    assert set(runs) == {"system.slice/a.service", "system.slice/b.service"}
    run = runs["system.slice/a.service"]
    assert set(run.values[:, run.names.index("own.memory.used_bytes")]) == {4096}
    assert run.conditions.own_share == 0  # nothing was used meanwhile
    assert not any(counter.scope == "machine" and not counter.name.startswith("cpu.") for counter in run.counters)


def test_a_machine_without_groups_at_work_is_told_so(tmp_path, brief):
    with pytest.raises(NotFound, match=r"no control group holds a process; .* ask about a process .*--subject PID"):
        record_each(0.6, brief, tmp_path)


def test_groups_none_of_which_can_be_counted_are_told_so(stored, brief):
    for name in ("cpu.stat", "memory.current"):
        for file in stored.rglob(name):
            file.unlink()
    with pytest.raises(NotFound, match=r"of 2 control groups none could be counted: .*--subject PID"):
        record_each(0.6, brief, stored)
