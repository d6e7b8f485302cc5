"""Remote nodes: what the settings make of them on a Prefect server."""

from pathlib import Path
from typing import Any

import pytest

from flows.engine.deploying import (
    POOL,
    deploy,
    fleet_entries,
    fleet_source,
)
from tasks.errors import BadSetting
from tasks.settings import Settings


def settings_of(home: Path, **fleet: Any) -> Settings:
    return Settings.model_validate({"whorl": {"home": str(home)}, "nodes": {"fleet": fleet}})


def test_without_nodes_there_is_nothing_to_register(tmp_path: Path) -> None:
    assert fleet_entries(settings_of(tmp_path)) == []


def test_nodes_without_a_landing_folder_that_they_reach_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"no landing folder that they reach; set nodes.fleet.landing to an address"):
        fleet_entries(settings_of(tmp_path, nodes=["a"]))


@pytest.mark.parametrize("names", [["a", "a"], ["nodes-record"]])
def test_a_name_that_is_taken_is_refused(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(BadSetting, match=f"'{names[0]}' cannot be the name of one node"):
        fleet_entries(settings_of(tmp_path, nodes=names, landing="s3://bucket/landing"))


@pytest.mark.parametrize("names", [["rack1.a", "Rack1-A"], ["rack1_a", "rack1-a"]])
def test_names_that_executions_would_not_tell_apart_are_refused(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(BadSetting, match=f"'{names[1]}' cannot be the name of one node; .* rack1-a, as '{names[0]}'"):
        fleet_entries(settings_of(tmp_path, nodes=names, landing="s3://bucket/landing"))


def test_what_remote_nodes_land_is_loaded_and_ranked_under_their_source(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, nodes=["a"], landing="s3://bucket/landing", source="fleet")
    for name in ("nodes-ingest", "nodes-rank", "nodes-record"):
        assert fleet_source(settings, name) == {"source": "fleet"}
    assert fleet_source(settings, "jobs-ingest") == {}
    assert fleet_source(settings_of(tmp_path, source="fleet"), "nodes-ingest") == {}


@pytest.mark.slow
def test_each_node_gets_a_deployment_and_a_queue_of_its_name(prefect_server: None, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    settings = settings_of(tmp_path, nodes=["rack1-a", "rack1-b"], landing="memory://landing", source="fleet")
    done = {one.name: one for one in deploy(settings)}
    assert {"rack1-a", "rack1-b", POOL} <= set(done)
    assert {one.change for one in deploy(settings)} == {"unchanged"}
    with get_client(sync_client=True) as client:
        for node in ("rack1-a", "rack1-b"):
            found = client.read_deployment_by_name(f"nodes-record/{node}")
            assert (found.work_pool_name, found.work_queue_name) == (POOL, node)
            assert found.parameters["record"]["node"] == node
            assert found.parameters["landing"] == "memory://landing"
            assert found.parameters["source"] == "fleet"
            assert not any(schedule.active for schedule in found.schedules)
        ours = client.read_deployment_by_name("nodes-record/nodes-record")
        assert ours.work_pool_name == "whorl"
        assert ours.parameters["record"]["node"] == ""
        assert client.read_deployment_by_name("nodes-ingest/nodes-ingest").parameters["source"] == "fleet"
        assert client.read_deployment_by_name("nodes-rank/nodes-rank").parameters["source"] == "fleet"
        assert "source" not in client.read_deployment_by_name("jobs-ingest/jobs-ingest").parameters
