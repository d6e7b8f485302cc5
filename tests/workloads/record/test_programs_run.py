"""Every workload that can be run here: it prepares, runs, answers on loopback alone, and leaves no process."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tasks.record.processes import LOOPBACK, members
from tasks.workloads.record.programs import PROGRAMS
from tasks.workloads.record.programs.program import N_USUAL, Program, ProgramPlace, lacks

ROOT = Path(__file__).parents[3]
RECORDER = """
import sys
from pathlib import Path
from tasks.workloads.record.programs import PROGRAMS
from tasks.workloads.record.programs.program import make_place
program = PROGRAMS[sys.argv[1]]
program.run(make_place(Path(sys.argv[2])), next(iter(program.inputs.values())), 1000.0)
"""
SECONDS = 1.0
LONG_TO_START = {"cnn": 2.0, "bayes": 2.0}  # they import torch, or numpy, first
LIMIT_S = 60.0
SERVERS = {"redis", "mariadb", "postgresql", "wordpress", "memcached", "nginx"}
QUICK = {"redis", "cnn"}  # a server and a script; nginx and compile are stopped in the middle of a run below
NAMES = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in PROGRAMS]


def leaders(place: ProgramPlace) -> list[int]:
    """The processes that were started in the place, by its own list."""
    return [int(line.split()[0]) for line in place.register.read_text().splitlines()] if place.register.exists() else []


def inside(place: ProgramPlace) -> set[int]:
    """All living processes whose working folder, or the folder of whose session's leader, is the place's."""
    found = {pid for leader in leaders(place) for pid in members(leader)}
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.cwd().startswith(str(place.folder)):
                found.add(process.pid)
        except psutil.Error:
            continue
    return found


def addresses(place: ProgramPlace) -> set[str]:
    """Where processes of the place listen."""
    pids, heard = inside(place), psutil.net_connections("inet")
    return {one.laddr.ip for one in heard if one.pid in pids and (one.status == psutil.CONN_LISTEN or not one.raddr)}


def watch(program: Program, place: ProgramPlace, input: str) -> set[str]:
    """Run one input; returns the addresses that were listened on meanwhile."""
    errors: list[BaseException] = []
    listened: set[str] = set()

    def run() -> None:
        try:
            program.run(place, program.inputs[input], LONG_TO_START.get(program.name, SECONDS))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        listened |= addresses(place)
        thread.join(0.05)
    assert errors == []
    return listened


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_runs_listens_on_loopback_alone_and_leaves_no_process(name: str, place: ProgramPlace) -> None:
    program = PROGRAMS[name]
    if missing := lacks(program.needs):
        pytest.skip("; ".join(missing))
    program.prepare(place)
    assert inside(place) == set()
    for input in list(program.inputs)[:N_USUAL]:
        assert watch(program, place, input) == ({LOOPBACK} if name in SERVERS else set())
        assert inside(place) == set()
    place.stop()


@pytest.mark.parametrize("name", ["nginx", "compile"])
def test_a_stop_in_the_middle_of_a_run_leaves_no_worker_behind(name: str, place: ProgramPlace) -> None:
    program = PROGRAMS[name]
    if missing := lacks(program.needs):
        pytest.skip("; ".join(missing))
    program.prepare(place)
    thread = threading.Thread(target=program.run, args=(place, next(iter(program.inputs.values())), LIMIT_S))
    thread.start()
    while len(inside(place)) < 3:
        assert thread.is_alive()
        thread.join(0.02)
    place.stop()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert inside(place) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_recorder_that_is_killed_in_a_run_leaves_no_process_of_the_workload(name: str, place: ProgramPlace) -> None:
    program = PROGRAMS[name]
    if missing := lacks(program.needs):
        pytest.skip("; ".join(missing))
    program.prepare(place)
    recorder = subprocess.Popen([sys.executable, "-c", RECORDER, name, str(place.folder.parent)], cwd=ROOT)
    while not place.log("load").exists() or not inside(place):
        assert recorder.poll() is None
    recorder.kill()
    recorder.wait(LIMIT_S)
    late = time.monotonic() + LIMIT_S
    while left := inside(place):
        assert time.monotonic() < late, left
