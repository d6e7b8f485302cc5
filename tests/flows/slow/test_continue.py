"""A run that failed or died is run again as the UI does it, and goes on after its last finished step."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tasks.warehouse import lock
from tasks.warehouse.connection import fetch

pytestmark = pytest.mark.slow
MARKED_S = 300  # heartbeats every 30 s, silence of 90 s, and a busy machine


def n_runs(served: Any, source: str) -> int:
    found = fetch(served.warehouse, "SELECT count(*) AS n FROM jobs.runs WHERE source = $source", {"source": source})
    return int(found["n"].iloc[0])


def test_a_failed_ingest_goes_on_with_the_file_that_was_mended(served: Any, csv_in: Callable[..., Path]) -> None:
    good, bad = csv_in("alpha"), csv_in("beta")
    mended = bad.read_text()
    bad.write_text("these are no job runs\n")
    run_id = served.start("jobs-ingest", {"paths": [str(good), str(bad)], "source": "failed", "reader": "table"})
    failed = served.wait(run_id, "FAILED", "COMPLETED")
    assert failed["state_type"] == "FAILED"
    assert "beta.csv" in failed["state"]["message"]
    assert n_runs(served, "failed") == 10  # the good file is not held up
    bad.write_text(mended)
    n_before = len(served.steps(run_id))
    served.retry(run_id)
    assert served.wait(run_id, "COMPLETED", timeout_s=180)["run_count"] == 2
    again = served.steps(run_id)[n_before:]
    assert again[:3] == [("find-logs", "Cached"), ("land-log", "Cached"), ("ingest-batch", "Cached")]
    assert again[3:] == [
        ("land-log", "Completed"),
        ("ingest-batch", "Completed"),
        ("group-source", "Completed"),
        ("summarise", "Completed"),  # there is more to summarise than before
        ("write-report", "Completed"),
    ]
    assert n_runs(served, "failed") == 20


def test_a_run_killed_with_its_worker_is_marked_and_goes_on_where_it_was(
    served: Any, csv_in: Callable[..., Path]
) -> None:
    log = csv_in("gamma")
    served.warehouse.home.mkdir(exist_ok=True)
    worker = served.worker()
    with lock.hold(served.warehouse.home, "shared", 60):  # the run reads its log, and waits to load it
        patient = {"warehouse.lock_wait_s": 3600}
        run_id = served.start("jobs-ingest", {"paths": [str(log)], "source": "killed", "expert": patient})
        served.until("the log is landed", lambda: ("land-log", "Completed") in served.steps(run_id), 120)
        processes = served.processes_of(run_id)
        assert processes
        for process in [worker, *processes]:
            process.kill()
    psutil.wait_procs([worker, *processes], timeout=30)
    assert served.run(run_id)["state_type"] == "RUNNING"  # nobody was left to say otherwise
    served.wait(run_id, "CRASHED", timeout_s=MARKED_S)
    served.until("another worker", lambda: served.worker().pid != worker.pid, 60)
    n_before = len(served.steps(run_id))
    served.retry(run_id)
    served.wait(run_id, "COMPLETED", timeout_s=240)
    assert served.steps(run_id)[n_before:] == [
        ("find-logs", "Cached"),
        ("land-log", "Cached"),
        ("ingest-batch", "Completed"),
        ("group-source", "Completed"),
        ("summarise", "Completed"),
        ("write-report", "Completed"),
    ]
    assert n_runs(served, "killed") == 10
