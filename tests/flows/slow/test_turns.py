"""Two runs of one deployment: the second waits, and a run that was killed does not keep its turn."""

from datetime import datetime
from typing import Any

import pytest

from tasks.warehouse import lock

pytestmark = pytest.mark.slow
TURN_S = 240  # measured: 32 s after the kill of a run; a slot that is kept by a lease is free after 300 s
WAITING = "AwaitingConcurrencySlot"


def two_runs(served: Any) -> tuple[str, str]:
    """A run that waits for the warehouse, and one that waits for that run."""
    first = served.start("jobs-watch", {"expert": {"warehouse.lock_wait_s": 3600}, "source": "main"})
    served.wait(first, "RUNNING")
    second = served.start("jobs-watch", {"source": "main"})
    served.until("the second run waits", lambda: served.run(second)["state_name"] == WAITING, 120)
    return first, second


def test_the_second_run_of_a_deployment_starts_when_the_first_has_ended(served: Any) -> None:
    served.warehouse.home.mkdir(exist_ok=True)
    with lock.hold(served.warehouse.home, "exclusive", 60):
        first, second = two_runs(served)
        assert served.run(first)["state_type"] == "RUNNING"
    ended = served.wait(first, "COMPLETED")
    started = served.wait(second, "COMPLETED", timeout_s=TURN_S)
    assert datetime.fromisoformat(started["start_time"]) >= datetime.fromisoformat(ended["end_time"])


def test_a_killed_run_lets_the_next_one_start(served: Any) -> None:
    served.warehouse.home.mkdir(exist_ok=True)
    with lock.hold(served.warehouse.home, "exclusive", 60):
        first, second = two_runs(served)
        for process in served.processes_of(first):
            process.kill()
        served.wait(first, "CRASHED", timeout_s=60)
        assert served.run(second)["run_count"] == 0
    served.wait(second, "COMPLETED", timeout_s=TURN_S)
