"""Prefect's own deploy takes the file as well."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
DEPLOY = (
    "import sys; from pathlib import Path; from flows.engine.servers import prepare; prepare(Path(sys.argv[1])); "
    "from flows.engine.deploying import deploy; from tasks.settings import load_settings; "
    "print(*sorted({one.change for one in deploy(load_settings({'whorl': {'home': sys.argv[1]}}).settings)}))"
)


def deploy(home: Path, **variables: str) -> str:
    """Run `whorl deploy` as a person would, in a process of its own; returns what it did."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "WHORL_"))}
    command = [sys.executable, "-c", DEPLOY, str(home)]
    done = subprocess.run(command, env=inherited | variables, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_prefects_own_deploy_accepts_the_file(served: Any) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--name", "jobs-record"]
    command += ["--prefect-file", "deployments/prefect.yaml"]
    done = subprocess.run(
        command, cwd=ROOT, env=served.variables, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert served.deployment("jobs-record")["entrypoint"] == "flows.jobs.jobs_record"
    deploy(served.home)
