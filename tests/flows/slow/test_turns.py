"""Two runs of one deployment: the second waits, and a run that was killed does not keep its turn."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tasks.jobs import steps
from tasks.jobs.params import GroupParams, ReadParams
from tasks.warehouse import lock

pytestmark = pytest.mark.slow
TURN_S = 240  # measured: 32 s after the kill of a run; a slot that is kept by a lease is free after 300 s
WAITING = "AwaitingConcurrencySlot"
SOURCE = "turns"


@pytest.fixture(autouse=True)
def _runs_to_watch(served: Any, csv_in: Callable[..., Path]) -> None:
    batch = steps.land_log(served.warehouse, str(csv_in(SOURCE)), SOURCE, "", ReadParams(), GroupParams())
    steps.ingest_batch(served.warehouse, batch)


def two_runs(served: Any) -> tuple[str, str]:
    """A run that waits for the warehouse, and one that waits for that run."""
    first = served.start("jobs-watch", {"expert": {"warehouse.lock_wait_s": 3600}, "source": SOURCE})
    served.wait(first, "RUNNING")
    second = served.start("jobs-watch", {"source": SOURCE})
    served.until("the second run waits", lambda: served.run(second)["state_name"] == WAITING, 120)
    return first, second


def test_the_second_run_of_a_deployment_starts_when_the_first_has_ended(served: Any) -> None:
    with lock.hold(served.warehouse.home, "exclusive", 60):
        first, second = two_runs(served)
        assert served.run(first)["state_type"] == "RUNNING"
    ended = served.wait(first, "COMPLETED")
    started = served.wait(second, "COMPLETED", timeout_s=TURN_S)
    assert datetime.fromisoformat(started["start_time"]) >= datetime.fromisoformat(ended["end_time"])


def test_a_killed_run_lets_the_next_one_start(served: Any) -> None:
    with lock.hold(served.warehouse.home, "exclusive", 60):
        first, second = two_runs(served)
        for process in served.processes_of(first):
            process.kill()
        served.wait(first, "CRASHED", timeout_s=60)
        assert served.run(second)["run_count"] == 0
    served.wait(second, "COMPLETED", timeout_s=TURN_S)
