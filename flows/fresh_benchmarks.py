"""A suspected node is asked for fresh benchmarks of the suspected aspect, through its own deployment."""

import logging
from collections.abc import Sequence

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.responses import DeploymentResponse

from flows.fleet import DEPLOYED
from tasks.nodes.detect.params import AlarmParams
from tasks.nodes.record.params import node_name
from tasks.nodes.steps import benchmarks_of_aspect
from tasks.warehouse.place import Warehouse

TAGS = ["whorl", "nodes", "fresh-benchmark"]

logger = logging.getLogger(__name__)


def ask_for_benchmarks(
    warehouse: Warehouse, source: str, suspected: Sequence[Sequence[str]], least: int = 1
) -> tuple[list[str], list[str]]:
    """Start the deployment of each suspected node, with the benchmarks of the suspected aspect alone.

    suspected: node, aspect and start of the newest execution; as long as that stays the newest, the node is asked once.
    least: executions that the node is asked for, at least one of each benchmark (see enough_for). Returns the
    deployments that were started, with the aspect, and the nodes that have none on this server which puts executions
    into this source: those are to be recorded by hand."""
    if not suspected:
        return [], []
    started: list[str] = []
    without: set[str] = set()
    with get_client(sync_client=True) as client:
        by_node = _deployments(client, source)
        for node, aspect, newest in suspected:
            deployment = by_node.get(node_name(node))
            benchmarks = benchmarks_of_aspect(warehouse, source, node, aspect)
            if deployment is None or not benchmarks:
                without.add(node)
                continue
            asked = {"benchmarks": benchmarks, "runs": 0, "executions": max(len(benchmarks), least)}
            own = deployment.parameters.get("record", {})
            client.create_flow_run_from_deployment(
                deployment.id,
                parameters={**deployment.parameters, "record": {**own, **asked}},
                tags=TAGS,
                idempotency_key=f"whorl fresh benchmark {source} {node} {aspect} {newest}",
            )
            started.append(f"{DEPLOYED}/{deployment.name} ({aspect})")
            logger.info("asked %s for %s", deployment.name, ", ".join(benchmarks))
    return started, sorted(without)


def enough_for(rules: AlarmParams) -> int:
    """Executions after which an alarm is decided if they agree: confirmed if all are flagged, cleared if none is."""
    return max(rules.confirm, rules.clear)


def _deployments(client: SyncPrefectClient, source: str) -> dict[str, DeploymentResponse]:
    """The deployments of remote nodes that record into a source, by the name that executions carry.

    The server tells of so many at once only."""
    of_flow = FlowFilter(name=FlowFilterName(any_=[DEPLOYED]))
    found: list[DeploymentResponse] = []
    while page := client.read_deployments(flow_filter=of_flow, offset=len(found)):
        found += page
    remote = [one for one in found if one.name != DEPLOYED]
    return {node_name(one.name): one for one in remote if one.parameters.get("source", source) == source}
