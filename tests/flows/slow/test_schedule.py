"""A schedule really fires: with a SQLAlchemy that is too new everything works but this."""

from typing import Any

import pytest

pytestmark = pytest.mark.slow
EVERY_S = 15


def test_an_interval_schedule_makes_runs_that_a_worker_completes(served: Any) -> None:
    deployment = served.deployment("jobs-watch")
    path = f"/deployments/{deployment['id']}/schedules"
    [made] = served.post(
        path, [{"schedule": {"interval": EVERY_S, "anchor_date": "2026-01-01T00:00:00Z"}, "active": True}]
    )
    wanted = {
        "deployments": {"id": {"any_": [deployment["id"]]}},
        "flow_runs": {"state": {"type": {"any_": ["COMPLETED"]}}},
        "limit": 200,
    }

    def made_by_schedule() -> list[dict[str, Any]]:
        return [run for run in served.post("/flow_runs/filter", wanted) if run["auto_scheduled"]]

    try:
        [run, *_] = served.until("a run that the schedule made", made_by_schedule, 180)
        assert run["name"] == "watch main"
        assert run["created_by"]["type"] == "SCHEDULE"
    finally:
        served.ask("DELETE", f"{path}/{made['id']}")
