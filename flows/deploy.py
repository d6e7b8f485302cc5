"""Register the flows with a Prefect server: deployments, pool, limits and automation. Twice is the same as once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentUpdate, WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.workers.process import ProcessWorker

from flows.deployment_file import DeploymentEntry, read_deployments
from flows.environment import FLOW_VARIABLES
from flows.fleet import fleet_entries, fleet_source
from flows.form_words import form_of
from flows.network_turn import LIMIT, make_limit
from flows.resolved import first_parameters, resolved_parameters
from flows.server_file import NoServer, is_healthy, key_for
from flows.watchdog import dead_run_automation
from tasks.settings import Settings

Change = Literal["created", "updated", "unchanged"]
DESCRIPTION = "Processes on the machines where 'whorl serve' or 'prefect worker start --pool whorl' runs"


@dataclass(frozen=True)
class Registered:
    """One thing on the server, and what was done to it."""

    kind: Literal["work pool", "automation", "concurrency limit", "deployment"]
    name: str
    change: Change


def deploy(settings: Settings, api_url: str | None = None) -> list[Registered]:
    """Bring the server in line with deployments/prefect.yaml and the settings; returns what was done.

    api_url: by default PREFECT_API_URL. What an operator chose stays: switched schedules, schedules of their own,
    parameters that no setting decides, limits. Raises NoServer if no server answers."""
    url = api_url or PREFECT_API_URL.value()
    if not url:
        raise NoServer("no Prefect server: start one with 'whorl serve', or name one with PREFECT_API_URL")
    if not is_healthy(url):
        raise NoServer(f"{url}: no Prefect server answers here; start one with 'whorl serve', or mend PREFECT_API_URL")
    entries, fleet = read_deployments(), fleet_entries(settings)
    names = {entry.work_pool.name for entry in (*entries, *(entry for entry, _ in fleet))}
    key = key_for(settings.warehouse.home, url)
    server = {PREFECT_API_URL: url} | ({PREFECT_API_AUTH_STRING: key} if key else {})
    with temporary_settings(server), get_client(sync_client=True) as client:
        pools = [_pool(client, name) for name in sorted(names)]
        limit = Registered("concurrency limit", LIMIT, "created" if make_limit() else "unchanged")
        deployments = [_deployment(client, entry, settings, fleet_source(settings, entry.name)) for entry in entries]
        remote = [_deployment(client, entry, settings, decided) for entry, decided in fleet]
        return [*pools, limit, _automation(client), *deployments, *remote]


def deploy_settings(settings: str) -> None:
    """Deploy with settings given as JSON, to the server of this process's environment; prints what was done."""
    for one in deploy(Settings.model_validate_json(settings)):
        print(f"{one.kind} {one.name}: {one.change}")


def _pool(client: SyncPrefectClient, name: str) -> Registered:
    try:
        client.read_work_pool(name)
    except ObjectNotFound:
        template = ProcessWorker.get_default_base_job_template()
        wanted = WorkPoolCreate(name=name, type="process", description=DESCRIPTION, base_job_template=template)
        client.create_work_pool(wanted)
        return Registered("work pool", name, "created")
    return Registered("work pool", name, "unchanged")


def _automation(client: SyncPrefectClient) -> Registered:
    wanted = dead_run_automation()
    found = client.read_automations_by_name(wanted.name)
    if not found:
        client.create_automation(wanted)
        return Registered("automation", wanted.name, "created")
    ours = {"trigger", "actions", "description", "tags"}  # whether it is enabled is the operator's choice
    if all(getattr(found[0], key) == getattr(wanted, key) for key in ours):
        return Registered("automation", wanted.name, "unchanged")
    client.update_automation(found[0].id, wanted.model_copy(update={"enabled": found[0].enabled}))
    return Registered("automation", wanted.name, "updated")


def _deployment(
    client: SyncPrefectClient, entry: DeploymentEntry, settings: Settings, decided: Mapping[str, Any] | None = None
) -> Registered:
    """Register one deployment. decided: parameters that settings decide for this deployment alone."""
    flow = entry.load_flow()
    names = list(flow.parameters.properties)
    resolved = resolved_parameters(settings, flow.name, names) | dict(decided or {})
    wanted: dict[str, Any] = {
        "description": entry.description,
        "tags": entry.tags,
        "entrypoint": entry.entrypoint,
        "work_pool_name": entry.work_pool.name,
        "parameter_openapi_schema": form_of(flow),
        "enforce_parameter_schema": True,
        "job_variables": {"env": FLOW_VARIABLES},
    }
    if entry.work_pool.work_queue_name:
        wanted["work_queue_name"] = entry.work_pool.work_queue_name
    try:
        found = client.read_deployment_by_name(f"{flow.name}/{entry.name}")
    except ObjectNotFound:
        client.create_deployment(
            flow_id=client.create_flow_from_name(flow.name),
            name=entry.name,
            parameters=first_parameters(settings, flow.name, names) | resolved,
            schedules=[schedule.request() for schedule in entry.schedules],
            **_limits(entry),
            **wanted,
        )
        return Registered("deployment", entry.name, "created")
    chosen = {name: value for name, value in found.parameters.items() if name in names}
    wanted["parameters"] = first_parameters(settings, flow.name, names) | chosen | resolved
    is_changed = _update(client, found, wanted)
    has_more = _add_schedules(client, found, entry)
    return Registered("deployment", entry.name, "updated" if is_changed or has_more else "unchanged")


def _limits(entry: DeploymentEntry) -> dict[str, Any]:
    asked = entry.concurrency_limit
    if asked is None:
        return {}
    options = ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy(asked.collision_strategy))
    return {"concurrency_limit": asked.limit, "concurrency_options": options}


def _update(client: SyncPrefectClient, found: DeploymentResponse, wanted: dict[str, Any]) -> bool:
    changed = {key: value for key, value in wanted.items() if getattr(found, key) != value}
    if changed:
        client.update_deployment(found.id, DeploymentUpdate(**changed))
    return bool(changed)


def _add_schedules(client: SyncPrefectClient, found: DeploymentResponse, entry: DeploymentEntry) -> bool:
    """Add the schedules whose slug the deployment does not have; those it has stay as they are, switched on or off."""
    known = {schedule.slug for schedule in found.schedules}
    missing = [schedule for schedule in entry.schedules if schedule.slug not in known]
    if missing:
        client.create_deployment_schedules(found.id, [schedule.request() for schedule in missing])
    return bool(missing)
