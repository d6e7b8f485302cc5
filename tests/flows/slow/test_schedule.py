"""A schedule really fires: with a SQLAlchemy that is too new everything works but this."""

from typing import Any

import pytest

from tasks.jobs.intake import Intake, land_log
from tasks.jobs.params import GroupParams, ReadParams
from tasks.warehouse.ingest import ingest

pytestmark = pytest.mark.slow
EVERY_S = 15


def test_an_interval_schedule_makes_runs_that_a_worker_completes(served: Any, csv_in: Any) -> None:
    log = str(csv_in("scheduled"))
    batch = land_log(served.warehouse, log, Intake("scheduled", "", ReadParams(), GroupParams()))
    ingest(served.warehouse, "jobs", batch.batch_id)
    deployment = served.deployment("jobs-watch")
    path = f"/deployments/{deployment['id']}/schedules"
    schedule = {"interval": EVERY_S, "anchor_date": "2026-01-01T00:00:00Z"}
    # other tests have left their sources on this server
    [made] = served.post(path, [{"schedule": schedule, "active": True, "parameters": {"source": "scheduled"}}])
    wanted = {
        "deployments": {"id": {"any_": [deployment["id"]]}},
        "flow_runs": {"state": {"type": {"any_": ["COMPLETED"]}}},
        "limit": 200,
    }

    def made_by_schedule() -> list[dict[str, Any]]:
        return [run for run in served.post("/flow_runs/filter", wanted) if run["auto_scheduled"]]

    try:
        [run, *_] = served.until("a run that the schedule made", made_by_schedule, 180)
        assert run["name"] == "watch scheduled"
        assert run["created_by"]["type"] == "SCHEDULE"
    finally:
        served.ask("DELETE", f"{path}/{made['id']}")
