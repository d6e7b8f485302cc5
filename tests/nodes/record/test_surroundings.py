"""Programs that the recorder starts: ended in time, with all they have started, and nothing else."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tasks.nodes.record.surroundings import REGISTER, Surroundings, run, start
from tasks.workloads.record.programs.session import end_registered, started

FAMILY = "sleep 60 & echo $!; wait"


@pytest.fixture
def around(tmp_path):
    return Surroundings(tmp_path, register=tmp_path / REGISTER)


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(is_so):
    deadline = time.monotonic() + 10
    while not is_so() and time.monotonic() < deadline:
        pass
    return is_so()


def test_a_program_s_words_and_status_are_kept(around, tmp_path):
    running, status = run(["sh", "-c", "echo out; echo err >&2; exit 3"], around, tmp_path / "log", 10)
    assert status == 3
    assert running.said() == "out\nerr\n"
    assert running.last_words() == "err"
    assert 0 < running.ended_s - running.began_s < 10


def test_one_that_takes_too_long_is_killed_with_all_that_it_has_started(around, tmp_path):
    bystander = subprocess.Popen(["sleep", "60"])
    running, status = run(["sh", "-c", FAMILY], around, tmp_path / "log", 0.3)
    assert status is None
    child = int(running.said())
    assert not lives(child)
    assert lives(bystander.pid)
    bystander.kill()
    bystander.wait()


def test_what_a_program_leaves_running_is_ended_too(around, tmp_path):
    running, status = run(["sh", "-c", "sleep 60 & echo $!"], around, tmp_path / "log", 10)
    assert status == 0
    assert not lives(int(running.said()))


def test_a_killed_recorder_s_programs_are_found_by_its_register(around, tmp_path):
    running = start(["sh", "-c", FAMILY], around, tmp_path / "log")
    assert wait_until(lambda: running.said().endswith("\n"))
    child = int(running.said())
    assert end_registered(tmp_path / REGISTER, tmp_path) == 1
    assert wait_until(lambda: not lives(child))
    assert not (tmp_path / REGISTER).exists()
    assert end_registered(tmp_path / REGISTER, tmp_path) == 0
    running.process.wait()


def test_a_program_whose_recorder_was_killed_before_it_wrote_it_down_is_ended(around, tmp_path):
    running = start(["sleep", "60"], around, tmp_path / "log")
    (tmp_path / REGISTER).unlink()
    assert wait_until(lambda: "sleep" in Path(f"/proc/{running.process.pid}/cmdline").read_text())
    assert end_registered(tmp_path / REGISTER, tmp_path) == 1
    assert running.process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("line", ["{pid} 1 9", "{pid} {start} 9", "{pid}", "{pid} {start} 999", "0 0 9", "-1 0 9", "x"])
def test_no_process_from_elsewhere_is_ended_whatever_a_register_says(tmp_path, line):
    """A later one with the same id, and one whose id and start somebody has written in there."""
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (tmp_path / REGISTER).write_text(line.format(pid=bystander.pid, start=started(bystander.pid)) + "\n")
    end_registered(tmp_path / REGISTER, tmp_path)
    assert lives(bystander.pid)
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_programs_see_a_plain_environment(around, tmp_path, monkeypatch):
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("SECRET", "x")
    running, _ = run(["env"], around, tmp_path / "log", 10)
    told = dict(line.split("=", 1) for line in running.said().splitlines())
    assert told["LANG"] == "C.UTF-8"
    assert "SECRET" not in told
    assert told["HOME"] == str(tmp_path)


def test_a_group_that_cannot_be_joined_stops_the_program_from_running_elsewhere(tmp_path):
    from tasks.machine_groups import Group

    around = Surroundings(tmp_path, Group(1, {"cpu": tmp_path / "no" / "such"}))
    running, status = run(["echo", "ran"], around, tmp_path / "log", 10)
    assert status == 97
    assert "ran" not in running.said().splitlines()
