"""Prefect's own deploy takes the file as well."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


def test_prefects_own_deploy_accepts_the_file(served: Any) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--name", "jobs-record"]
    command += ["--prefect-file", "deployments/prefect.yaml"]
    done = subprocess.run(
        command, cwd=ROOT, env=served.variables, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert served.deployment("jobs-record")["entrypoint"] == "flows.jobs.jobs_record"
    ours = [sys.executable, "-m", "flows.cli", "deploy", "--home", str(served.home)]
    subprocess.run(ours, cwd=ROOT, env=served.variables, check=True, timeout=180)
