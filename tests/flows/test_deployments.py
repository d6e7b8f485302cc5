"""deployments/prefect.yaml: every flow is in it, by a path that imports."""

import importlib
import re
from pathlib import Path

from prefect import Flow

from flows.engine.deploying import (
    FILE,
    read_deployments,
)

FLOWS = Path(__file__).parents[2] / "flows"


def test_every_flow_is_deployed_under_its_own_name() -> None:
    text = "\n".join(path.read_text() for path in FLOWS.glob("*.py"))
    written = set(re.findall(r'@flow\(\s*name="([a-z-]+)"', text))
    assert written
    assert {entry.name for entry in read_deployments()} == written
    assert [entry.name for entry in read_deployments() if entry.load_flow().name != entry.name] == []


def test_every_entrypoint_is_a_module_path_that_plain_importlib_finds() -> None:
    for entry in read_deployments():
        module, name = entry.entrypoint.rsplit(".", 1)
        assert isinstance(getattr(importlib.import_module(module), name), Flow)
        assert ":" not in entry.entrypoint  # a file path would put flows/ first on sys.path


def test_schedules_are_shipped_inactive_and_named() -> None:
    schedules = [schedule for entry in read_deployments() for schedule in entry.schedules]
    assert schedules
    assert not any(schedule.active for schedule in schedules)
    for entry in read_deployments():
        assert len({schedule.slug for schedule in entry.schedules}) == len(entry.schedules)


def test_of_each_deployment_one_run_is_at_work_at_a_time_and_the_next_one_waits() -> None:
    limits = {entry.name: entry.concurrency_limit for entry in read_deployments()}
    assert {(found.limit, found.collision_strategy) if found else None for found in limits.values()} == {(1, "ENQUEUE")}


def test_no_parameters_stand_in_the_file_where_they_would_hide_the_settings() -> None:
    assert "parameters" not in {word.strip(" -:") for word in FILE.read_text().splitlines() if "#" not in word}
