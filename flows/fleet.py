"""Remote nodes on a Prefect server: for each a deployment and a work queue of its name, in a pool of their own.

A worker that names no queue takes the runs of all queues of its pool: nodes do not share the pool of `whorl serve`."""

from collections.abc import Sequence
from typing import Any

from flows.deployment_file import DeploymentEntry, PoolEntry, read_deployments
from tasks.errors import BadSetting
from tasks.nodes.record.params import node_name
from tasks.settings import Settings

POOL = "whorl-nodes"
DEPLOYED = "nodes-record"
OF_NODES = "nodes-"  # how the names of deployments of nodes begin


def fleet_entries(settings: Settings) -> list[tuple[DeploymentEntry, dict[str, Any]]]:
    """A deployment for each remote node, with the parameters that its settings decide.

    Raises BadSetting if nodes are named but no landing folder that they can reach, or two nodes whose executions would
    stand under one name."""
    fleet, own = settings.nodes.fleet, settings.whorl.landing
    if not fleet.nodes:
        return []
    landing = fleet.landing or own
    if not landing:
        raise BadSetting(
            "nodes.fleet.nodes names remote nodes, and no landing folder that they reach; set nodes.fleet.landing to "
            "an address such as s3://bucket/landing, or to a folder that is mounted on all of them"
        )
    _check_names(fleet.nodes)
    shipped = next(entry for entry in read_deployments() if entry.name == DEPLOYED)
    return [(_entry(shipped, node), _parameters(settings, node, landing)) for node in fleet.nodes]


def fleet_source(settings: Settings, name: str) -> dict[str, Any]:
    """The source of a deployment of nodes, where remote nodes are named: what they land is loaded and ranked there."""
    fleet = settings.nodes.fleet
    return {"source": fleet.source} if fleet.nodes and name.startswith(OF_NODES) else {}


def _check_names(nodes: Sequence[str]) -> None:
    known = {DEPLOYED: DEPLOYED}
    for node in nodes:
        name = node_name(node)
        if name in known:
            raise BadSetting(
                f"nodes.fleet.nodes: {node!r} cannot be the name of one node; executions would call it {name}, as "
                f"{known[name]!r}; name each node differently"
            )
        known[name] = node


def _entry(shipped: DeploymentEntry, node: str) -> DeploymentEntry:
    pool = PoolEntry(name=POOL, work_queue_name=node)
    about = f"Run benchmarks on the node {node}, by its own worker, and put the executions into the landing folder."
    return shipped.model_copy(update={"name": node, "work_pool": pool, "description": about})


def _parameters(settings: Settings, node: str, landing: str) -> dict[str, Any]:
    fleet = settings.nodes.fleet
    record = settings.nodes.record.model_copy(update={"node": node, "place": "local"})
    return {
        "folder": fleet.folder,
        "record": record.model_dump(mode="json"),
        "landing": landing,
        "source": fleet.source,
    }
