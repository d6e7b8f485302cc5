"""Registering twice is the same as once, and leaves an operator's choices alone."""

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


def everything(served: Any) -> dict[str, Any]:
    """All that a deploy registers, with the server's own times of the last change."""
    deployments = served.post("/deployments/filter", {"sort": "NAME_ASC"})
    by_the_worker = ("last_polled", "status")
    return {
        "deployments": [{k: v for k, v in one.items() if k not in by_the_worker} for one in deployments],
        "automations": served.post("/automations/filter", {}),
        "limits": served.post("/v2/concurrency_limits/filter", {}),
        "pools": [pool["base_job_template"] for pool in served.post("/work_pools/filter", {})],
    }


def test_deploying_again_changes_nothing(served: Any) -> None:
    before = everything(served)
    assert len(before["deployments"]) >= 5
    assert deploy(served.home) == "unchanged"
    assert everything(served) == before


def test_a_new_setting_reaches_the_form_and_an_operators_choices_stay(served: Any) -> None:
    ingest = served.deployment("jobs-ingest")
    [shipped] = ingest["schedules"]
    schedule = f"/deployments/{ingest['id']}/schedules/{shipped['id']}"
    try:
        served.ask("PATCH", schedule, {"active": True})
        parameters = {**ingest["parameters"], "source": "theirs", "paths": ["/logs"]}
        served.ask("PATCH", f"/deployments/{ingest['id']}", {"parameters": parameters})
        assert "updated" in deploy(served.home, WHORL_JOBS__READ__TIME_ZONE="Europe/Berlin")
        found = served.deployment("jobs-ingest")
        assert found["parameters"]["time_zone"] == "Europe/Berlin"
        assert (found["parameters"]["source"], found["parameters"]["paths"]) == ("theirs", ["/logs"])
        assert [one["active"] for one in found["schedules"]] == [True]
    finally:
        served.ask("PATCH", schedule, {"active": False})
        served.ask("PATCH", f"/deployments/{ingest['id']}", {"parameters": ingest["parameters"]})
        deploy(served.home)


def test_prefects_own_deploy_accepts_the_file(served: Any) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--name", "jobs-record"]
    command += ["--prefect-file", "deployments/prefect.yaml"]
    done = subprocess.run(
        command, cwd=ROOT, env=served.variables, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert served.deployment("jobs-record")["entrypoint"] == "flows.jobs.jobs_record"
    deploy(served.home)
