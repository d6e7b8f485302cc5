"""SIGKILL: at whatever moment a step of workloads is killed, the same work done again ends as if it had not been.

kill_steps.py does the killing in processes of its own; here are the claims about what it found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("kill_steps.py")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What was found after kills at a sample of the moments of every scenario."""
    command = [sys.executable, str(PROGRAM), str(tmp_path_factory.mktemp("kills")), "0.03", "2026"]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["ingest", "fingerprint", "train", "look"])
def test_a_kill_at_any_moment_loses_nothing_and_doubles_nothing(killed, scenario):
    assert killed[scenario]["faults"] == {}
    assert killed[scenario]["n_kills"] >= 1
