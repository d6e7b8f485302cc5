"""Background load: levels, changes of level, and nothing that outlives the campaign."""

import os
import shutil
from pathlib import Path

import psutil
import pytest

from tasks.errors import MissingTool
from tasks.jobs.record import cluster as load
from tasks.jobs.record.cluster import BackgroundLoad, load_source, stress_command
from tasks.jobs.record.params import Campaign

WAITING = {"cpu": ["tail", "-f", "/dev/null"], "memory": ["tail", "-F", "/dev/null"], "none": []}


class Passing:
    """Stands in for a control group: a command stays as it is."""

    def command_inside(self, command):
        return command


@pytest.fixture
def without_stress_ng(monkeypatch):
    monkeypatch.setattr(load.shutil, "which", lambda name: None)


@pytest.fixture
def stand_in(monkeypatch):
    """Programs that only wait, in the place of stress-ng."""
    monkeypatch.setattr(load, "stress_command", lambda level, temp, **_: WAITING[level.partition("-")[0]])


@pytest.fixture
def background_of(tmp_path, stand_in):
    made = []

    def make(group):
        made.append(BackgroundLoad("stress-ng", tmp_path, group))
        return made[-1]

    yield make
    for background in made:
        background.stop()


def test_without_stress_ng_load_comes_from_jobs_and_one_line_says_so(without_stress_ng, caplog):
    assert load_source(Campaign()) == "jobs"
    assert "stress-ng is not installed (Debian: apt-get install stress-ng)" in caplog.text


def test_asking_for_stress_ng_by_name_without_having_it_fails_with_what_to_do(without_stress_ng):
    with pytest.raises(MissingTool, match=r"stress-ng is not installed .*; install it, or record with load=jobs"):
        load_source(Campaign(load="stress-ng"))


def test_a_kind_of_load_is_a_stressor_and_its_dose_is_left_to_the_quota(tmp_path):
    assert stress_command("none", tmp_path) == []
    assert stress_command("cpu-20", tmp_path) == stress_command("cpu-80", tmp_path)
    assert "--cpu" in stress_command("cpu-20", tmp_path)
    assert "--vm" in stress_command("memory-30", tmp_path)
    assert stress_command("disk-30", tmp_path)[-2:] == ["--temp-path", str(tmp_path)]


def test_load_from_jobs_starts_no_stressor(tmp_path):
    background = BackgroundLoad("jobs", tmp_path, None)
    background.switch("cpu-40")
    assert (background.level, background.pids) == ("none", [])


def test_the_same_kind_goes_on_at_another_quota(background_of):
    background = background_of(Passing())
    background.switch("cpu-20")
    (first,) = background.pids
    background.switch("cpu-80")
    assert (background.level, background.pids) == ("cpu-80", [first])


def test_without_a_group_another_level_is_another_stressor(background_of):
    background = background_of(None)
    background.switch("cpu-20")
    (first,) = background.pids
    background.switch("cpu-80")
    assert background.pids[0] != first


def test_another_kind_replaces_the_stressor_and_none_ends_it(background_of):
    background = background_of(Passing())
    background.switch("cpu-20")
    first = psutil.Process(background.pids[0])
    background.switch("memory-30")
    second = psutil.Process(background.pids[0])
    first.wait(10)
    assert second.is_running()
    background.switch("none")
    second.wait(10)
    background.stop()
    assert (background.level, background.pids) == ("none", [])


def test_a_stressor_that_will_not_end_holds_nobody_up_and_is_killed_at_the_end(background_of, tmp_path, monkeypatch):
    ready = tmp_path / "ready"
    stubborn = ["sh", "-c", 'trap "" TERM; touch "$1"; exec tail -f /dev/null', "sh", str(ready)]
    monkeypatch.setattr(load, "stress_command", lambda level, temp, **_: stubborn if level != "none" else [])
    monkeypatch.setattr(load, "STOP_S", 0.1)
    background = background_of(Passing())
    background.switch("cpu-20")
    while not ready.exists():
        assert psutil.pid_exists(background.pids[0])
    process = psutil.Process(background.pids[0])
    background.switch("none")
    assert process.is_running()
    assert background.pids == [process.pid]  # its work is still the recorder's, not foreign
    background.stop()
    assert not psutil.pid_exists(process.pid)
    assert background.pids == []


@pytest.mark.skipif(not shutil.which("stress-ng"), reason="needs stress-ng (Debian: apt-get install stress-ng)")
def test_a_real_stressor_ends_with_all_that_it_started(tmp_path):
    background = BackgroundLoad("stress-ng", tmp_path, None)
    background.switch("cpu-20")
    stressor = psutil.Process(background.pids[0])
    while not (children := stressor.children(recursive=True)):
        assert stressor.is_running()
    background.stop()
    _, alive = psutil.wait_procs([stressor, *children], timeout=10)
    assert alive == []
    assert list(Path(tmp_path).iterdir()) == []


def test_a_stressor_is_the_head_of_a_process_group_of_its_own(background_of):
    background = background_of(Passing())
    background.switch("cpu-20")
    assert os.getpgid(background.pids[0]) == background.pids[0] != os.getpgrp()
