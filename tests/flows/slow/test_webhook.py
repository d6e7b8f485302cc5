"""Events and what follows: an alarm reaches a webhook, as the runbook says; word of new files starts an ingest."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.loopback import Quiet, listening

pytestmark = pytest.mark.slow
RUNBOOK = Path(__file__).parents[3] / "deployments" / "README.md"


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address on loopback, and what was posted to it."""
    received: list[dict[str, Any]] = []

    class Receiver(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

    with listening(Receiver) as server:
        yield f"http://127.0.0.1:{server.server_port}/alarm", received


def recipe(url: str) -> str:
    """The lines of the runbook that send alarms to a webhook, with this address."""
    [found] = re.findall(r"```python\n(.*?)```", RUNBOOK.read_text(), re.DOTALL)
    return re.sub(r'url = ".*"', f'url = "{url}"', found)


def test_a_slow_run_reaches_a_webhook(
    served: Any, csv_in: Callable[..., Path], webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    url, received = webhook
    subprocess.run([sys.executable, "-c", recipe(url)], env=served.variables, check=True, timeout=180)
    [made] = [one for one in served.post("/automations/filter", {}) if one["name"] == "whorl: send alarms on"]
    try:
        log = csv_in("delta", last_s=6000)
        ingest = served.start(
            "jobs-ingest", {"paths": [str(log)], "source": "watched", "expert": {"with_summary": False}}
        )
        served.wait(ingest, "COMPLETED")
        watch = served.start("jobs-watch", {"source": "watched"})
        served.wait(watch, "COMPLETED")
        served.until("a call of the webhook", lambda: received, 60)
        assert len(received) == 1
        assert "delta" in received[0]["text"]
        assert "took" in received[0]["text"]
        again = served.start("jobs-watch", {"source": "watched"})
        served.wait(again, "COMPLETED")
        assert ("announce", "Completed") in served.steps(again)
        assert len(received) == 1  # an alarm is raised once
    finally:
        served.ask("DELETE", f"/automations/{made['id']}")


def test_word_of_new_files_starts_an_ingest_once_that_is_switched_on(served: Any) -> None:
    [rule] = [one for one in served.post("/automations/filter", {}) if one["name"] == "whorl: read new files of jobs"]
    served.ask("PATCH", f"/automations/{rule['id']}", {"enabled": True})
    ingest = served.deployment("jobs-ingest")["id"]
    of_ingest = {"deployments": {"id": {"any_": [ingest]}}}
    before = served.post("/flow_runs/count", of_ingest)
    event = {"event": "whorl.jobs.files", "resource": {"prefect.resource.id": "whorl.inbox"}, "id": str(uuid4())}
    try:
        served.post("/events", [event | {"occurred": datetime.now(UTC).isoformat()}])
        served.until("a run of jobs-ingest", lambda: served.post("/flow_runs/count", of_ingest) > before, 60)
    finally:
        served.ask("PATCH", f"/automations/{rule['id']}", {"enabled": False})
