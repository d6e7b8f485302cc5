"""`whorl serve` ends without leaving anything behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tasks.machine import server_file
from tasks.warehouse import lock

pytestmark = pytest.mark.slow


def test_stopping_ends_runs_worker_and_server_and_leaves_schedules_as_they_were(
    serving_in: Callable[[Path], Any], tmp_path: Path
) -> None:
    home, log = tmp_path / "home", tmp_path / "log.csv"
    log.write_text("run_id,name,started_at,runtime_s\nr1,nightly,2026-01-01T01:00:00,60\n")
    with serving_in(home) as served:
        watch = served.deployment("jobs-watch")
        [shipped] = watch["schedules"]
        schedule = f"/deployments/{watch['id']}/schedules/{shipped['id']}"
        served.ask("PATCH", schedule, {"active": True})
        with lock.hold(home, "exclusive", 60):  # a run that is at work when everything is stopped
            run_id = served.start("jobs-ingest", {"paths": [str(log)], "source": "main"})
            served.until("the run is at work", lambda: ("ingest-batch", "Running") in served.steps(run_id), 120)
            family = psutil.Process(served.process.pid).children(recursive=True)
            assert len(family) >= 3
            assert served.stop() == 0
        assert [process for process in family if process.is_running()] == []
        assert not server_file(home).exists()
        assert b"Traceback" not in served.output.read_bytes()
    with serving_in(home) as served:
        assert [one["active"] for one in served.deployment("jobs-watch")["schedules"]] == [True]
        assert served.run(run_id)["state_type"] == "CRASHED"  # and not Running for ever
        served.retry(run_id)
        served.wait(run_id, "COMPLETED")


def test_when_serve_itself_is_killed_server_and_worker_go_with_it(
    serving_in: Callable[[Path], Any], tmp_path: Path
) -> None:
    with serving_in(tmp_path / "home") as served:
        family = psutil.Process(served.process.pid).children(recursive=True)
        served.process.kill()
        _, alive = psutil.wait_procs(family, timeout=30)
        assert alive == []
