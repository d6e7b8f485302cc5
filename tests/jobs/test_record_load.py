"""Background load and the monitor beside it."""

import math
import os
import shutil

import psutil
import pytest

from tasks.errors import MissingTool
from tasks.jobs.record import load
from tasks.jobs.record.load import BackgroundLoad, load_source, stress_command
from tasks.jobs.record.monitor import Monitor
from tasks.jobs.record.params import RecordParams


@pytest.fixture
def without_stress_ng(monkeypatch):
    monkeypatch.setattr(load.shutil, "which", lambda name: None)


def test_without_stress_ng_load_comes_from_jobs_and_one_line_says_so(without_stress_ng, caplog):
    assert load_source(RecordParams()) == "jobs"
    assert "stress-ng is not installed (Debian: apt-get install stress-ng)" in caplog.text


def test_asking_for_stress_ng_by_name_without_having_it_fails_with_what_to_do(without_stress_ng):
    with pytest.raises(MissingTool, match=r"stress-ng is not installed .*; install it, or record with load=jobs"):
        load_source(RecordParams(load="stress-ng"))


def test_levels_become_stressors(tmp_path):
    assert stress_command("none", tmp_path) == []
    assert stress_command("cpu-4", tmp_path)[2:4] == ["--cpu", "4"]
    assert stress_command("disk-2", tmp_path)[2:] == ["--hdd", "2", "--hdd-bytes", "128M", "--temp-path", str(tmp_path)]


def test_load_from_jobs_starts_no_stressor(tmp_path):
    with BackgroundLoad("jobs", tmp_path) as background:
        background.switch("cpu-4")
        assert background.level == "none" and background.pids == []


@pytest.mark.skipif(not shutil.which("stress-ng"), reason="needs stress-ng (Debian: apt-get install stress-ng)")
def test_a_stressor_ends_with_its_phase_and_with_the_campaign(tmp_path):
    with BackgroundLoad("stress-ng", tmp_path) as background:
        background.switch("cpu-1")
        first = background.pids[0]
        background.switch("memory-1")
        second = background.pids[0]
        assert not psutil.pid_exists(first) and psutil.pid_exists(second)
    assert not psutil.pid_exists(second)
    assert background.level == "none"


def test_the_monitor_tells_foreign_work_from_the_recorders_own():
    monitor = Monitor()
    assert math.isnan(monitor.state().busy_cores)
    monitor.sample([])
    sum(range(3_000_000))  # this process's own work
    monitor.sample([])
    state = monitor.state()
    assert 0 <= state.foreign_cores <= max(state.busy_cores, 0.0) <= (os.cpu_count() or 1) + 1
    assert state.load_1m >= 0
