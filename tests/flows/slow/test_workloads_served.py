"""The flows of workloads on a real server and worker, each on what the one before has made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import fetch
from tasks.warehouse.registry import champion

pytestmark = pytest.mark.slow
SOURCE = "served"


def n_runs(served: Any, source: str) -> int:
    found = fetch(served.warehouse, "SELECT count(*) AS n FROM workloads.runs WHERE source = $s", {"s": source})
    return int(found["n"].iloc[0])


def done(served: Any, name: str, parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """Run a deployment to its end; returns its steps and how each ended."""
    run_id = served.start(name, {"source": SOURCE, **parameters})
    ended = served.wait(run_id, "COMPLETED", "FAILED", "CRASHED", timeout_s=300)
    assert ended["state_type"] == "COMPLETED", ended["state"]["message"]
    steps: list[tuple[str, str]] = served.steps(run_id)
    return steps


def artifact(served: Any, key: str) -> str:
    """The latest artifact under a key."""
    return str(served.get(f"/artifacts/{key}/latest")["data"]).replace("\\", "")


def test_telemetry_is_read_learned_identified_and_watched_by_the_worker(
    served: Any, drawn_telemetry: Callable[..., Path]
) -> None:
    paths = [str(drawn_telemetry("labelled"))]
    assert ("ingest-batch", "Completed") in done(served, "workloads-ingest", {"telemetry": paths})
    assert n_runs(served, SOURCE) == 24

    steps = done(served, "workloads-fingerprint", {"expert": {"fan_out.runs_per_part": 12}})
    assert steps.count(("cut-phases", "Completed")) == 2
    assert "24 runs of 24 cut now, in 2 parts" in artifact(served, f"workloads-{SOURCE}-fingerprints")

    done(served, "workloads-train", {})
    in_use = champion(served.warehouse.models, "workloads", SOURCE, "identity")
    assert in_use is not None
    assert "What runs were taken for" in artifact(served, f"workloads-{SOURCE}-model")

    done(served, "workloads-identify", {"which": "all"})
    found = artifact(served, f"workloads-{SOURCE}-identifications")
    assert f"24 runs identified by {in_use.model_id}" in found
    assert "data:image/png;base64," in found

    watch = {"look_at": "newest", "newest": 3, "expected": ["nothing"]}
    done(served, "workloads-watch", watch)
    alarms = read_alarms(served.warehouse, source=SOURCE)
    assert len(alarms) >= 1
    assert alarms["announced_at"].notna().all()
