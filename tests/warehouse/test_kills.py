"""SIGKILL: whatever is killed, and wherever, the warehouse opens, the rerun completes, and nothing is lost or doubled.

kills.py does the killing in processes of its own; here are the claims about what it found."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("kills.py")
SCENARIOS = [
    "create", "migrate", "land", "ingest", "replace", "rebuild", "rebuild_broken", "snapshot", "backup", "restore",
    "promote", "prune",
]  # fmt: skip
ALWAYS = ("create", "land", "ingest", "replace", "rebuild", "backup", "promote", "prune")


def run(folder, *args):
    command = [sys.executable, str(PROGRAM), str(folder), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What was found after a kill at one step of each of these."""
    return run(tmp_path_factory.mktemp("kills"), 0.001, 2026, *ALWAYS)


@pytest.mark.parametrize("scenario", ALWAYS)
def test_a_kill_at_a_step_loses_nothing_and_doubles_nothing(killed, scenario):
    assert killed[scenario]["faults"] == {}
    assert killed[scenario]["n_kills"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(tmp_path, scenario):
    found = run(tmp_path, 1, 0, scenario)[scenario]
    assert found["faults"] == {}
    assert found["n_kills"] == found["n_steps"]
