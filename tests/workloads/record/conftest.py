"""What the tests of the recorder share: a made-up machine, and a program that keeps a core busy for its time."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasks.record.processes import wait_for_end
from tasks.workloads.params import RecordParams
from tasks.workloads.record.programs.program import Need, Options, ProgramPlace, make_place

STAT = """cpu  {user} 0 {system} {idle} 40 0 10 5 0 0
cpu0 100 0 50 1000 40 0 10 5 0 0
intr 12345 0 1
ctxt {ctxt}
btime 1700000000
processes 500
procs_running 3
procs_blocked 1
softirq 1 2 3
"""


class Busy:
    """A workload of one python process that counts. fails: raise in the n-th run (from 0)."""

    role, needs = "workload", (Need((sys.executable,), "python3", kind="file"),)

    def __init__(self, name: str = "busy", inputs: tuple[str, ...] = ("one",), *, code: str = "while True: pass"):
        self.name, self.code = name, code
        self.inputs = {one: {"input": one} for one in inputs}
        self.calls: list[str] = []
        self.errors: dict[int, Exception] = {}

    def prepare(self, place: ProgramPlace) -> None:
        self.calls.append("prepare")

    def run(self, place: ProgramPlace, options: Options, seconds: float) -> None:
        n = len([call for call in self.calls if call.startswith("run")])
        self.calls.append(f"run {options['input']}")
        if n in self.errors:
            raise self.errors[n]
        place.open()
        try:
            process = place.spawn([sys.executable, "-c", self.code], name="load", reads_all=True)
            wait_for_end(process.pid, seconds)
        finally:
            place.stop()


@pytest.fixture
def place(scratch: Path) -> Iterator[ProgramPlace]:
    made = make_place(scratch, seed=3)
    yield made
    made.stop()


@pytest.fixture
def busy() -> Callable[..., Busy]:
    return Busy


@pytest.fixture
def having(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that makes these programs all that there are to record."""
    of = "tasks.workloads.record.campaign.programs_of"
    return lambda *programs: monkeypatch.setattr(of, lambda _: {one.name: one for one in programs})


@pytest.fixture
def quick() -> RecordParams:
    """Four samples in under half a second, no rest, no perf; nobody is foreign on a machine that runs tests."""
    return RecordParams(
        rounds=1, runs=1, samples=4, interval_s=0.1, pause_s=0, perf="none", foreign_limit_ratio=1, repeats=0
    )


@pytest.fixture
def stat_text() -> Callable[..., str]:
    """/proc/stat with these ticks."""
    return lambda user=100, system=50, idle=1000, ctxt=7000: STAT.format(user=user, system=system, idle=idle, ctxt=ctxt)
