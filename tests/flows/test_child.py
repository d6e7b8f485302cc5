"""Processes that `whorl serve` keeps: none of them, and none of their children, outlives it."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from flows.engine.processes import (
    Child,
    start_child,
    stop_child,
)

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
)
PARENT = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {STUBBORN!r}]).pid, flush=True)
import time; time.sleep(600)
"""


def lines_of(one: Child, n_lines: int) -> list[str]:
    """The first lines of its log, as soon as they are there."""
    while len(lines := one.log.read_text().split()) < n_lines:
        assert not one.has_ended
    return lines


def test_a_process_that_ignores_the_signal_and_its_child_are_ended(tmp_path: Path) -> None:
    started = start_child("parent", [sys.executable, "-c", PARENT], os.environ, tmp_path / "log")
    pid = int(lines_of(started, 2)[0])
    assert psutil.pid_exists(pid)
    stop_child(started, patience_s=1)
    assert started.has_ended
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_stopping_what_has_ended_is_no_error(tmp_path: Path) -> None:
    started = start_child("short", [sys.executable, "-c", "print('done')"], os.environ, tmp_path / "log")
    started.process.wait(30)
    stop_child(started, patience_s=1)
    assert started.last_line() == "done"
    assert not started.was_killed


def test_a_killed_process_is_told_from_one_that_gave_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    killed = start_child("killed", command, os.environ, tmp_path / "log")
    killed.process.wait(30)
    assert killed.was_killed
    assert killed.last_line() == "its log is empty"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends it")
def test_a_process_dies_with_the_one_that_started_it(tmp_path: Path) -> None:
    starter = f"""
import os, sys
from pathlib import Path
from flows.engine.processes import start_child
command = [sys.executable, "-c", "import time; time.sleep(600)"]
one = start_child("left", command, os.environ, Path({str(tmp_path)!r}) / "log")
print(one.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    if psutil.pid_exists(pid):
        _, alive = psutil.wait_procs([psutil.Process(pid)], timeout=10)
        assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []
