"""Kill work on the warehouse at one step after the other, and see what is left. A program, run by test_kills.py.

    python kills.py FOLDER SHARE SEED SCENARIO…

A step is a statement that DuckDB gets (before it and after it) or an operation on a file. For each scenario the work is
done once undisturbed, then killed at a share of its steps (1: at every step), each time in a fresh copy of the home.
After a kill the warehouse must open, the same work must complete, and the outcome must be that of undisturbed work.
All work happens in forked children: this process never opens DuckDB itself. Prints one JSON object."""

import json
import os
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from kill_scenarios import FILLED, SCENARIOS, Scenario, outcome, place, prepare_broken_file, read, write

from tasks.warehouse import connection as connections
from tasks.warehouse.copies import rebuild

WATCHED = ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.truncate", "shutil.copyfile")


class Killer:
    """Counts steps, and kills this process at one of them."""

    def __init__(self, home: Path, at: int) -> None:
        self.home, self.at, self.n_steps = str(home), at, 0

    def step(self) -> None:
        self.n_steps += 1
        if self.n_steps == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Count what is done with files below the home, and every statement."""
        killer, connect = self, duckdb.connect

        def audit(event: str, args: tuple[Any, ...]) -> None:
            if event in WATCHED and any(killer.home in str(arg) for arg in args[:2]):
                killer.step()

        class Counted:
            """A connection whose statements are counted."""

            def __init__(self, real: Any) -> None:
                self.real = real

            def execute(self, *args: Any) -> Any:
                killer.step()
                found = self.real.execute(*args)
                killer.step()
                return found

            def close(self) -> None:
                killer.step()
                self.real.close()
                killer.step()

        sys.addaudithook(audit)
        connections.duckdb.connect = lambda *args, **kwargs: Counted(connect(*args, **kwargs))  # type: ignore[assignment]


def in_child(act: Callable[[], Any]) -> tuple[int, Any]:
    """Exit status (negative: the signal) and result of work done in a forked child."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        status = 0
        try:
            answer = json.dumps(act())
        except BaseException:
            answer, status = json.dumps(traceback.format_exc()), 1
        with os.fdopen(write_end, "w") as pipe:
            pipe.write(answer)
        os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), json.loads(text) if text else None


def undisturbed(scenario: Scenario, home: Path) -> tuple[int, dict[str, Any]]:
    """Number of steps, and the outcome."""

    def work() -> Any:
        killer = Killer(home, 0)
        killer.watch()
        scenario.work(place(home))
        return killer.n_steps

    status, n_steps = in_child(work)
    assert status == 0, n_steps
    status, found = in_child(lambda: outcome(place(home)))
    assert status == 0, found
    return n_steps, found


def aftermath(scenario: Scenario, home: Path, expected: dict[str, Any], *, with_rebuild: bool) -> str:
    """What is wrong after a kill; empty if nothing is."""

    def again() -> Any:
        if place(home).file.exists() and scenario.prepare is not prepare_broken_file:
            read(place(home))
        scenario.work(place(home))
        found = [outcome(place(home))]
        if with_rebuild and scenario.rebuilds:
            rebuild(place(home))
            found.append(outcome(place(home)))
        return found

    status, found = in_child(again)
    if status:
        return str(found)
    for name, one in zip(("rerun", "rebuild"), found, strict=False):
        for key, value in expected.items():
            if one[key] != value:
                return f"{name}: {key} is {one[key]}, expected {value}"
    return ""


def migrated(folder: Path) -> Path:
    """The file of an empty warehouse."""
    home = folder / "migrated"
    if not home.exists():
        status, fault = in_child(lambda: write(place(home)))
        assert status == 0, fault
    return place(home).file


def walk(name: str, folder: Path, share: float, rng: random.Random) -> dict[str, Any]:
    """Kill one scenario at a share of its steps."""
    scenario = SCENARIOS[name]
    prepared = folder / name / "prepared"
    prepared.parent.mkdir(parents=True)
    if scenario.prepare in FILLED:  # schemas are made once
        prepared.mkdir()
        shutil.copy(migrated(folder), place(prepared).file)
    status, fault = in_child(lambda: scenario.prepare(place(prepared)))
    assert status == 0, fault
    shutil.copytree(prepared, folder / name / "home")
    n_steps, expected = undisturbed(scenario, folder / name / "home")
    at_steps = sorted(rng.sample(range(1, n_steps + 1), max(1, round(share * n_steps))))
    faults = {}
    for at in at_steps:
        home = folder / name / "home"
        shutil.rmtree(home)
        shutil.copytree(prepared, home)

        def work(at: int = at, home: Path = home) -> None:
            Killer(home, at).watch()
            scenario.work(place(home))

        status, told = in_child(work)
        fault = "" if status == -signal.SIGKILL else f"not killed: {status} {told}"
        fault = fault or aftermath(scenario, home, expected, with_rebuild=share == 1 or at % 4 == 0)
        faults |= {at: fault} if fault else {}
    return {"n_steps": n_steps, "n_kills": len(at_steps), "faults": faults}


def main(folder: str, share: str, seed: str, *names: str) -> None:
    rng = random.Random(int(seed))
    print(json.dumps({name: walk(name, Path(folder), float(share), rng) for name in names or SCENARIOS}))


if __name__ == "__main__":
    main(*sys.argv[1:])
