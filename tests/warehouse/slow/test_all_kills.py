"""SIGKILL at every step of everything that writes, and a soak of 50 kills at random moments."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "kills.py"
SCENARIOS = [
    "create", "migrate", "land", "ingest", "replace", "rebuild", "rebuild_broken", "snapshot", "backup", "restore",
    "promote", "prune",
]  # fmt: skip
pytestmark = pytest.mark.slow


def run(folder, *args):
    command = [sys.executable, str(PROGRAM), str(folder), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(tmp_path, scenario):
    found = run(tmp_path, 1, 0, scenario)[scenario]
    assert found["faults"] == {}
    assert found["n_kills"] == found["n_steps"]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_soak_of_50_kills_loses_nothing_and_doubles_nothing(tmp_path, seed):
    found = run(tmp_path, 50, seed, "soak")["soak"]
    assert found["faults"] == {}
    assert found["n_kills"] >= 50
