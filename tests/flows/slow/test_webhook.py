"""An alarm reaches a webhook through a Prefect automation, with its message and its figures."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
BODY = '{"text": {{ event.payload.message | tojson }}, "runtime_s": {{ event.payload.evidence.runtime_s }}}'


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address on loopback, and what was posted to it."""
    received: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/alarm", received
    server.shutdown()
    thread.join()
    server.server_close()


def webhook_block(served: Any, url: str) -> str:
    """What the UI does under Blocks > Webhook; returns the id of the block."""
    kind = served.get("/block_types/slug/webhook")
    [schema, *_] = served.post("/block_schemas/filter", {"block_schemas": {"block_type_id": {"any_": [kind["id"]]}}})
    block = {
        "name": "alarm-target",
        "data": {"method": "POST", "url": url, "allow_private_urls": True},
        "block_type_id": kind["id"],
        "block_schema_id": schema["id"],
    }
    return str(served.post("/block_documents/", block)["id"])


def test_a_slow_run_reaches_a_webhook(
    served: Any, csv_in: Callable[..., Path], webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    url, received = webhook
    automation = {
        "name": "send alarms on",
        "trigger": {
            "type": "event",
            "posture": "Reactive",
            "expect": ["whorl.jobs.alarm"],
            "threshold": 1,
            "within": 0,
            "match": {"prefect.resource.id": "whorl.alarm.*"},
            "for_each": ["prefect.resource.id"],
        },
        "actions": [{"type": "call-webhook", "block_document_id": webhook_block(served, url), "payload": BODY}],
    }
    made = served.post("/automations/", automation)
    try:
        log = csv_in("delta", last_s=6000)
        ingest = served.start("jobs-ingest", {"paths": [str(log)], "source": "watched", "with_summary": False})
        served.wait(ingest, "COMPLETED")
        watch = served.start("jobs-watch", {"source": "watched"})
        served.wait(watch, "COMPLETED")
        served.until("a call of the webhook", lambda: received, 60)
        assert len(received) == 1
        assert "delta" in received[0]["text"]
        assert received[0]["runtime_s"] == 6000
        again = served.start("jobs-watch", {"source": "watched"})
        served.wait(again, "COMPLETED")
        assert ("announce", "Completed") in served.steps(again)
        assert len(received) == 1  # an alarm is raised once
    finally:
        served.ask("DELETE", f"/automations/{made['id']}")
