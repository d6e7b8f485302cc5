"""Deployments: the file, the server, remote nodes, the automation."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.events.schemas.automations import EventTrigger
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.engine.deploying import (
    FILE,
    HEARTBEAT,
    POOL,
    REACTIONS,
    dead_run_automation,
    deploy,
    deploy_settings,
    fleet_entries,
    fleet_source,
    read_deployments,
)
from flows.engine.forms import TAG
from flows.engine.servers import FLOW_VARIABLES, NoPrefectServer
from tasks.errors import BadSetting
from tasks.settings import Settings


def test_schedules_are_shipped_inactive_and_named_and_one_run_is_at_work_at_a_time_while_the_next_one_waits() -> None:
    entries = read_deployments()
    schedules = [schedule for entry in entries for schedule in entry.schedules]
    assert schedules and not any(schedule.active for schedule in schedules)
    for entry in entries:
        assert len({schedule.slug for schedule in entry.schedules}) == len(entry.schedules)
    limits = [entry.concurrency_limit for entry in entries]
    assert {(found.limit, found.collision_strategy) if found else None for found in limits} == {(1, "ENQUEUE")}


def test_no_parameters_stand_in_the_file_where_they_would_hide_the_settings() -> None:
    assert "parameters" not in {word.strip(" -:") for word in FILE.read_text().splitlines() if "#" not in word}


def settings_of(home: Path, **jobs: Any) -> Settings:
    return Settings.model_validate({"whorl": {"home": str(home)}, "jobs": jobs})


def deployment(name: str) -> Any:
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
    assert found.parameters["time_zone"] == "Europe/Berlin"
    assert found.parameters["home"] == str(tmp_path)
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
    assert {one.name for one in done if one.change == "updated"} <= {"jobs-watch", "whorl-demo", "whorl-pipeline"}
    assert deployment("jobs-watch").parameters["look_back_days"] == 3


@pytest.mark.slow
def test_what_an_operator_chose_stays(prefect_server: None, tmp_path: Path) -> None:
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
def test_what_an_operator_set_under_expert_stays_unless_a_setting_decides_it(
    prefect_server: None, tmp_path: Path
) -> None:
    deploy(settings_of(tmp_path))
    chosen = {"jobs-ingest": {"with_summary": False}, "nodes-train": {"model.fit.seed": 3}}
    with get_client(sync_client=True) as client:
        for name, expert in chosen.items():
            found = deployment(name)
            expert = expert | {"warehouse.memory_mb": 2048}
            client.update_deployment(found.id, DeploymentUpdate(parameters=found.parameters | {"expert": expert}))
    deploy(settings_of(tmp_path))
    assert {name: deployment(name).parameters["expert"] for name in chosen} == chosen


@pytest.mark.slow
def test_a_schedule_that_a_new_version_ships_is_added(prefect_server: None, tmp_path: Path) -> None:
    deploy(settings_of(tmp_path))
    found = deployment("whorl-upkeep")
    with get_client(sync_client=True) as client:
        client.delete_deployment_schedule(found.id, found.schedules[0].id)
    assert [one.change for one in deploy(settings_of(tmp_path)) if one.name == "whorl-upkeep"] == ["updated"]
    assert [schedule.slug for schedule in deployment("whorl-upkeep").schedules] == ["weekly"]


def test_no_server_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(
        NoPrefectServer, match=r"http://127.0.0.1:9/api: no Prefect server answers here; .*'whorl serve'"
    ):
        deploy(settings_of(tmp_path), "http://127.0.0.1:9/api")


def test_without_any_address_the_two_ways_to_a_server_are_named(tmp_path: Path) -> None:
    with (
        temporary_settings(restore_defaults={PREFECT_API_URL}),
        pytest.raises(NoPrefectServer, match="start one with 'whorl serve', or name one with PREFECT_API_URL"),
    ):
        deploy(settings_of(tmp_path))


def fleet_settings(home: Path, **fleet: Any) -> Settings:
    return Settings.model_validate({"whorl": {"home": str(home)}, "nodes": {"fleet": fleet}})


def test_without_nodes_there_is_nothing_to_register(tmp_path: Path) -> None:
    assert fleet_entries(fleet_settings(tmp_path)) == []


def test_nodes_without_a_landing_folder_that_they_reach_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"no landing folder that they reach; set nodes.fleet.landing to an address"):
        fleet_entries(fleet_settings(tmp_path, nodes=["a"]))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a", "a"], "'a' cannot be the name of one node"),
        (["nodes-record"], "'nodes-record' cannot be the name of one node"),
        # executions would not tell these apart
        (["rack1.a", "Rack1-A"], "'Rack1-A' cannot be the name of one node; .* rack1-a, as 'rack1.a'"),
        (["rack1_a", "rack1-a"], "'rack1-a' cannot be the name of one node; .* rack1-a, as 'rack1_a'"),
    ],
)
def test_a_name_that_is_taken_is_refused(tmp_path: Path, names: list[str], told: str) -> None:
    with pytest.raises(BadSetting, match=told):
        fleet_entries(fleet_settings(tmp_path, nodes=names, landing="s3://bucket/landing"))


def test_what_remote_nodes_land_is_loaded_and_ranked_under_their_source(tmp_path: Path) -> None:
    settings = fleet_settings(tmp_path, nodes=["a"], landing="s3://bucket/landing", source="fleet")
    for name in ("nodes-ingest", "nodes-rank", "nodes-record"):
        assert fleet_source(settings, name) == {"source": "fleet"}
    assert fleet_source(settings, "jobs-ingest") == {}
    assert fleet_source(fleet_settings(tmp_path, source="fleet"), "nodes-ingest") == {}


@pytest.mark.slow
def test_each_node_gets_a_deployment_and_a_queue_of_its_name(prefect_server: None, tmp_path: Path) -> None:
    settings = fleet_settings(tmp_path, nodes=["rack1-a", "rack1-b"], landing="memory://landing", source="fleet")
    done = {one.name: one for one in deploy(settings)}
    assert {"rack1-a", "rack1-b", POOL} <= set(done)
    assert {one.change for one in deploy(settings)} == {"unchanged"}
    with get_client(sync_client=True) as client:
        for node in ("rack1-a", "rack1-b"):
            found = client.read_deployment_by_name(f"nodes-record/{node}")
            assert (found.work_pool_name, found.work_queue_name) == (POOL, node)
            assert found.parameters["node"] == node
            assert found.parameters["landing"] == "memory://landing"
            assert found.parameters["source"] == "fleet"
            assert not any(schedule.active for schedule in found.schedules)
        ours = client.read_deployment_by_name("nodes-record/nodes-record")
        assert ours.work_pool_name == "whorl"
        assert ours.parameters["node"] == ""
        assert client.read_deployment_by_name("nodes-ingest/nodes-ingest").parameters["source"] == "fleet"
        assert client.read_deployment_by_name("nodes-rank/nodes-rank").parameters["source"] == "fleet"
        assert "source" not in client.read_deployment_by_name("jobs-ingest/jobs-ingest").parameters


def test_a_dead_run_is_one_of_ours_that_neither_ended_nor_sent_two_heartbeats() -> None:
    trigger = dead_run_automation().trigger
    assert isinstance(trigger, EventTrigger)
    assert trigger.within > timedelta(seconds=2 * int(FLOW_VARIABLES["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"]))
    assert f"prefect.tag.{TAG}" in str(trigger.match_related)
    assert {HEARTBEAT, "prefect.flow-run.Completed", "prefect.flow-run.Failed"} <= trigger.expect
    assert trigger.after == {HEARTBEAT}


@pytest.mark.parametrize("reaction", REACTIONS, ids=lambda one: one.name)
def test_an_event_starts_a_deployment_that_is_shipped_and_is_switched_off(reaction: Any) -> None:
    assert reaction.deployment in {entry.name for entry in read_deployments()}
    made = reaction.automation(UUID(int=1))
    assert (made.enabled, made.trigger.expect, made.actions[0].deployment_id) == (False, {reaction.event}, UUID(int=1))
