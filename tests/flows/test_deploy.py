"""Registering the flows with a server."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.engine.deploying import (
    deploy,
    deploy_settings,
    read_deployments,
)
from flows.engine.servers import NoServer
from tasks.settings import Settings


def settings_of(home: Path, **jobs: Any) -> Settings:
    return Settings.model_validate({"whorl": {"home": str(home)}, "jobs": jobs})


def deployment(name: str) -> Any:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return client.read_deployment_by_name(f"{name}/{name}")


@pytest.mark.slow
def test_the_second_deploy_changes_nothing_and_the_form_shows_what_will_run(
    prefect_server: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_of(tmp_path, read={"time_zone": "Europe/Berlin"})
    first = deploy(settings)
    assert {one.name for one in first if one.kind == "deployment"} == {entry.name for entry in read_deployments()}
    capsys.readouterr()
    deploy_settings(settings.model_dump_json())  # as whorl serve does it
    told = capsys.readouterr().out.splitlines()
    assert {line.rpartition(": ")[2] for line in told} == {"unchanged"}
    assert "deployment jobs-ingest: unchanged" in told
    found = deployment("jobs-ingest")
    assert found.parameters["read"]["time_zone"] == "Europe/Berlin"
    assert found.parameters["warehouse"]["home"] == str(tmp_path)
    assert found.parameters["paths"] == [str(tmp_path / "inbox")]
    assert [schedule.active for schedule in found.schedules] == [False]
    assert found.work_pool_name == "whorl"
    assert found.global_concurrency_limit.limit == 1
    assert found.concurrency_options.collision_strategy == "ENQUEUE"
    assert json.loads(json.dumps(found.job_variables))["env"]["PREFECT_RESULTS_DEFAULT_SERIALIZER"] == "json"


@pytest.mark.slow
def test_a_changed_setting_is_an_update_and_nothing_else_is(prefect_server: None, tmp_path: Path) -> None:
    deploy(settings_of(tmp_path))
    done = deploy(settings_of(tmp_path, watch={"look_back_days": 3}))
    assert {one.name for one in done if one.change == "updated"} <= {"jobs-watch", "whorl-demo"}
    assert deployment("jobs-watch").parameters["watch"]["look_back_days"] == 3


@pytest.mark.slow
def test_what_an_operator_chose_stays(prefect_server: None, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import DeploymentUpdate

    deploy(settings_of(tmp_path))
    found = deployment("jobs-watch")
    with get_client(sync_client=True) as client:
        client.update_deployment(found.id, DeploymentUpdate(parameters={**found.parameters, "source": "theirs"}))
        client.update_deployment_schedule(found.id, found.schedules[0].id, active=True)
    try:
        deploy(settings_of(tmp_path))
        again = deployment("jobs-watch")
        assert again.parameters["source"] == "theirs"
        assert [schedule.active for schedule in again.schedules] == [True]
    finally:
        with get_client(sync_client=True) as client:
            client.update_deployment_schedule(found.id, found.schedules[0].id, active=False)


@pytest.mark.slow
def test_a_schedule_that_a_new_version_ships_is_added(prefect_server: None, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    deploy(settings_of(tmp_path))
    found = deployment("whorl-upkeep")
    with get_client(sync_client=True) as client:
        client.delete_deployment_schedule(found.id, found.schedules[0].id)
    assert [one.change for one in deploy(settings_of(tmp_path)) if one.name == "whorl-upkeep"] == ["updated"]
    assert [schedule.slug for schedule in deployment("whorl-upkeep").schedules] == ["weekly"]


def test_no_server_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(NoServer, match=r"http://127.0.0.1:9/api: no Prefect server answers here; .*'whorl serve'"):
        deploy(settings_of(tmp_path), "http://127.0.0.1:9/api")


def test_without_any_address_the_two_ways_to_a_server_are_named(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with (
        temporary_settings(restore_defaults={PREFECT_API_URL}),
        pytest.raises(NoServer, match="start one with 'whorl serve', or name one with PREFECT_API_URL"),
    ):
        deploy(settings_of(tmp_path))
