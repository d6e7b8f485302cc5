"""Processes that `whorl serve` and commands keep: started in a group of their own, stopped for certain, with their
flow runs.

Prefect's worker, told to stop, kills its runs and leaves without a word: they would stay Running for ever."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

TAIL_CHARS = 400
SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2); it outlives exec
BOUND = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl({SET_PARENT_DEATH_SIGNAL}, {int(signal.SIGKILL)})
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this one is gone already")
os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Child:
    """A running process, with the file that its output goes to."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def has_ended(self) -> bool:
        """Whether it is no longer there."""
        return self.process.poll() is not None

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended it."""
        return self.has_ended and self.process.returncode < 0

    def last_line(self) -> str:
        """The end of its log, for an error message."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:TAIL_CHARS] if lines else "its log is empty"


def start_child(name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
    """Start a process that Ctrl-C at the terminal does not reach, and that dies with this one if that is killed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    bound = [sys.executable, "-c", BOUND, str(os.getpid()), *command] if sys.platform == "linux" else list(command)
    with log.open("ab") as output:
        process = subprocess.Popen(
            bound,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Child(name, process, log)


def stop_child(child: Child, *, patience_s: float) -> None:
    """End a process and everything that it started: asked first, and after patience_s without asking."""
    family = _family(child.process.pid)
    with suppress(ProcessLookupError):
        os.kill(child.process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.process.wait(patience_s)
    family |= _family(child.process.pid)
    left = [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=patience_s)
    child.process.wait()


def _family(pid: int) -> set[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return {parent, *parent.children(recursive=True)}
    except psutil.Error:
        return set()


RUN_ID = "PREFECT__FLOW_RUN_ID"  # the worker sets it in the environment of a run's process
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}
REQUEST_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.2
MESSAGE = "Stopped together with 'whorl serve'; retry it to continue after its last finished step"


def end_runs(worker_pid: int, api_url: str, key: str, *, patience_s: float) -> list[str]:
    """End every flow run that this worker runs now; returns their ids. key: that of the server.

    The run or its worker gets patience_s to write down the end; after that it is written from here."""
    found = _runs_of(worker_pid)
    processes = [process for family in found.values() for process in family]
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=patience_s)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    deadline = time.monotonic() + patience_s
    open_ids = list(found)
    while open_ids := [run_id for run_id in open_ids if not _has_ended(api_url, key, run_id)]:
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_EVERY_S)
    for run_id in open_ids:
        state = {"type": "CRASHED", "name": "Crashed", "message": MESSAGE}
        _ask(f"{api_url}/flow_runs/{run_id}/set_state", key, {"state": state, "force": True})
    return list(found)


def _runs_of(worker_pid: int) -> dict[str, list[psutil.Process]]:
    runs: dict[str, list[psutil.Process]] = {}
    with suppress(psutil.Error):
        for process in psutil.Process(worker_pid).children(recursive=True):
            with suppress(psutil.Error):
                run_id = process.environ().get(RUN_ID)
                runs.setdefault(run_id or "", []).append(process)
    runs.pop("", None)
    return runs


def _has_ended(api_url: str, key: str, run_id: str) -> bool:
    run = _ask(f"{api_url}/flow_runs/{run_id}", key)
    return run is None or run.get("state_type") in FINAL


def _ask(url: str, key: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The answer of the API; None if it gives none (the server is going, too)."""
    data = None if body is None else json.dumps(body).encode()
    told = {"Content-Type": "application/json", "Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}
    request = urllib.request.Request(url, data=data, headers=told)
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (urllib.error.URLError, OSError, ValueError):
        return None
