"""Register the flows with a Prefect server: deployments, pool, limits and automations. Twice is the same as once.

deployments/prefect.yaml is the same file that `prefect deploy --all` takes. Each remote node has a deployment and a
work queue of its name, in a pool of their own: a worker without a queue takes the runs of all queues of its pool."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import yaml
from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, DeploymentUpdate, WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions, StateType
from prefect.client.schemas.schedules import CronSchedule
from prefect.events.actions import ChangeFlowRunState, RunDeployment
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.workers.process import ProcessWorker
from pydantic import Field

from flows.engine import forms
from flows.engine.forms import EXPERT, TAG, first_parameters, form_fields, form_of, model_of, resolved_parameters
from flows.engine.servers import FLOW_VARIABLES, NoPrefectServer, is_healthy, key_for
from flows.engine.steps import LIMIT, make_limit
from tasks.errors import BadSetting
from tasks.nodes.record.params import node_name
from tasks.params import Params
from tasks.settings import Settings
from tasks.warehouse.sources import known_sources

FILE = Path(__file__).parents[2] / "deployments" / "prefect.yaml"


class ScheduleEntry(Params):
    """One schedule. slug: its name within the deployment, by which a later deploy knows it again."""

    slug: str
    cron: str
    timezone: str = "UTC"
    active: bool = False

    def request(self) -> DeploymentScheduleCreate:
        """What Prefect's API takes."""
        schedule = CronSchedule(cron=self.cron, timezone=self.timezone)
        return DeploymentScheduleCreate(schedule=schedule, slug=self.slug, active=self.active)


class LimitEntry(Params):
    """How many runs of a deployment may be at work at once, and what becomes of one too many."""

    limit: int = Field(ge=1)
    collision_strategy: Literal["ENQUEUE", "CANCEL_NEW"] = "ENQUEUE"


class DeploymentEntry(Params):
    """One deployment: a flow by its module path, and when it may run."""

    name: str
    entrypoint: str
    description: str
    tags: list[str]
    work_pool: dict[str, str]  # its name, and work_queue_name where it is not the default one
    schedules: list[ScheduleEntry] = Field([])
    concurrency_limit: LimitEntry | None = None

    def load_flow(self) -> Flow[..., Any]:
        """Import the flow in the plain way: Prefect's own loader hides a failed import."""
        module, name = self.entrypoint.rsplit(".", 1)
        loaded = getattr(importlib.import_module(module), name)
        if not isinstance(loaded, Flow):
            raise TypeError(f"{self.entrypoint}: a {type(loaded).__name__}; expected a flow")
        return loaded


def read_deployments() -> list[DeploymentEntry]:
    """All deployments of deployments/prefect.yaml."""
    return [DeploymentEntry(**entry) for entry in yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]]


POOL = "whorl-nodes"
DEPLOYED = "nodes-record"
OF_NODES = "nodes-"  # how the names of deployments of nodes begin


def fleet_entries(settings: Settings) -> list[tuple[DeploymentEntry, dict[str, Any]]]:
    """A deployment for each remote node, with the parameters that its settings decide.

    Raises BadSetting if nodes are named but no landing folder that they can reach, or two nodes whose executions would
    stand under one name."""
    fleet = settings.nodes.fleet
    if not fleet.nodes:
        return []
    landing = fleet.landing or settings.whorl.landing
    if not landing:
        raise BadSetting(
            "nodes.fleet.nodes names remote nodes, and no landing folder that they reach; set nodes.fleet.landing to "
            "an address such as s3://bucket/landing, or to a folder that is mounted on all of them"
        )
    known = {DEPLOYED: DEPLOYED}
    for node in fleet.nodes:
        if (name := node_name(node)) in known:
            raise BadSetting(
                f"nodes.fleet.nodes: {node!r} cannot be the name of one node; executions would call it {name}, as "
                f"{known[name]!r}; name each node differently"
            )
        known[name] = node
    shipped = next(entry for entry in read_deployments() if entry.name == DEPLOYED)
    model: Any = model_of(shipped.load_flow())
    entries: list[tuple[DeploymentEntry, dict[str, Any]]] = []
    for node in fleet.nodes:
        about = f"Run benchmarks on the node {node}, by its own worker, and put the executions into the landing folder."
        pool = {"name": POOL, "work_queue_name": node}
        entry = shipped.model_copy(update={"name": node, "work_pool": pool, "description": about})
        record = settings.nodes.record.model_copy(update={"node": node, "place": "local"})
        params = model(folder=fleet.folder, record=record, landing=landing, source=fleet.source)
        entries.append((entry, form_fields(params)))
    return entries


def fleet_source(settings: Settings, name: str) -> dict[str, Any]:
    """The source of a deployment of nodes, where remote nodes are named: what they land is loaded and ranked there."""
    fleet = settings.nodes.fleet
    return {"source": fleet.source} if fleet.nodes and name.startswith(OF_NODES) else {}


NAME = "whorl: mark runs that stopped without a word"
SILENCE_S = 90  # three heartbeats, which come every 30 s
HEARTBEAT = "prefect.flow-run.heartbeat"
LAST_WORDS = ["Completed", "Failed", "Cancelled", "Crashed", "Cancelling", "AwaitingRetry", "Paused", "Suspended"]


def dead_run_automation() -> AutomationCore:
    """Set a whorl run to Crashed if after a heartbeat neither another one nor its end comes within SILENCE_S."""
    return AutomationCore(
        name=NAME,
        description="A run whose process and worker were killed at once cannot say so. It becomes Crashed, so that it "
        "can be retried; it then continues after its last finished step.",
        tags=[TAG],
        trigger=EventTrigger(
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related={"prefect.resource.id": f"prefect.tag.{TAG}", "prefect.resource.role": "tag"},
            for_each={"prefect.resource.id"},
            after={HEARTBEAT},
            expect={HEARTBEAT, *(f"prefect.flow-run.{state}" for state in LAST_WORDS)},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=SILENCE_S),
        ),
        actions=[
            ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message=f"No heartbeat for {SILENCE_S} s")
        ],
    )


FILES = "whorl.{word}.files"  # an event that says: there are new files in the inbox
OF_SOURCE = {"source": {"__prefect_kind": "jinja", "template": "{{ event.resource['whorl.source'] }}"}}


@dataclass(frozen=True)
class Reaction:
    """An event that starts a deployment. match: labels of its resource; parameters: of the run, None for its own."""

    name: str
    event: str
    deployment: str
    description: str
    match: Mapping[str, str]
    parameters: dict[str, Any] | None = None

    def automation(self, deployment_id: UUID) -> AutomationCore:
        """What the server takes; switched off, as schedules are, until an operator wants it."""
        within, run = timedelta(0), RunDeployment(deployment_id=deployment_id, parameters=self.parameters)
        trigger = EventTrigger(
            expect={self.event}, match=dict(self.match), posture=Posture.Reactive, threshold=1, within=within
        )
        about = {"name": self.name, "description": self.description, "tags": [TAG], "enabled": False}
        return AutomationCore(trigger=trigger, actions=[run], **about)


REACTIONS = (
    *(
        Reaction(
            f"whorl: read new files of {word}",
            FILES.format(word=word),
            f"{word}-ingest",
            f"Prefect watches no folder: who puts files into the inbox emits the event {FILES.format(word=word)}.",
            {"prefect.resource.id": "*"},
        )
        for word in ("jobs", "workloads", "nodes")
    ),
    Reaction(
        "whorl: learn a source anew whose job drifts",
        "whorl.jobs.alarm",
        "jobs-train",
        "An alarm of drift says that the model in use was learned from other runs than there are now.",
        {"whorl.kind": "drift"},
        OF_SOURCE,
    ),
)
"""A suspected node needs none: nodes-watch itself starts its deployment for a fresh benchmark, once an alarm."""

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
        raise NoPrefectServer("no Prefect server: start one with 'whorl serve', or name one with PREFECT_API_URL")
    if not is_healthy(url):
        raise NoPrefectServer(
            f"{url}: no Prefect server answers here; start one with 'whorl serve', or mend PREFECT_API_URL"
        )
    entries, fleet = read_deployments(), fleet_entries(settings)
    names = {entry.work_pool["name"] for entry in (*entries, *(entry for entry, _ in fleet))}
    key = key_for(settings.warehouse.home, url)
    server = {PREFECT_API_URL: url} | ({PREFECT_API_AUTH_STRING: key} if key else {})
    with temporary_settings(server), get_client(sync_client=True) as client:
        pools = [_pool(client, name) for name in sorted(names)]
        limit = Registered("concurrency limit", LIMIT, "created" if make_limit() else "unchanged")
        deployments = [_deployment(client, entry, settings, fleet_source(settings, entry.name)) for entry in entries]
        remote = [_deployment(client, entry, settings, decided) for entry, decided in fleet]
        ids = {
            reaction.deployment: client.read_deployment_by_name(f"{reaction.deployment}/{reaction.deployment}").id
            for reaction in REACTIONS
        }
        wanted = [dead_run_automation(), *(reaction.automation(ids[reaction.deployment]) for reaction in REACTIONS)]
        return [*pools, limit, *deployments, *remote, *(_automation(client, automation) for automation in wanted)]


def deploy_settings(settings: str) -> None:
    """Deploy with settings given as JSON, to the server of this process's environment; prints what was done."""
    for registered in deploy(Settings.model_validate_json(settings)):
        print(f"{registered.kind} {registered.name}: {registered.change}")


def _pool(client: SyncPrefectClient, name: str) -> Registered:
    try:
        client.read_work_pool(name)
    except ObjectNotFound:
        template = ProcessWorker.get_default_base_job_template()
        wanted = WorkPoolCreate(name=name, type="process", description=DESCRIPTION, base_job_template=template)
        client.create_work_pool(wanted)
        return Registered("work pool", name, "created")
    return Registered("work pool", name, "unchanged")


def _automation(client: SyncPrefectClient, wanted: AutomationCore) -> Registered:
    existing = client.read_automations_by_name(wanted.name)
    if not existing:
        client.create_automation(wanted)
        return Registered("automation", wanted.name, "created")
    ours = {"trigger", "actions", "description", "tags"}  # whether it is enabled is the operator's choice
    if all(getattr(existing[0], key) == getattr(wanted, key) for key in ours):
        return Registered("automation", wanted.name, "unchanged")
    client.update_automation(existing[0].id, wanted.model_copy(update={"enabled": existing[0].enabled}))
    return Registered("automation", wanted.name, "updated")


def _deployment(
    client: SyncPrefectClient, entry: DeploymentEntry, settings: Settings, decided: Mapping[str, Any] | None = None
) -> Registered:
    """Register one deployment. decided: parameters that settings decide for this deployment alone."""
    flow = entry.load_flow()
    resolved = resolved_parameters(settings, flow) | dict(decided or {})
    wanted: dict[str, Any] = {
        "description": entry.description,
        "tags": entry.tags,
        "entrypoint": entry.entrypoint,
        "work_pool_name": entry.work_pool["name"],
        "parameter_openapi_schema": form_of(flow, known_sources(settings.warehouse, flow.name.partition("-")[0])),
        "enforce_parameter_schema": True,
        "job_variables": {"env": FLOW_VARIABLES},
    }
    if queue := entry.work_pool.get("work_queue_name"):
        wanted["work_queue_name"] = queue
    try:
        deployment = client.read_deployment_by_name(f"{flow.name}/{entry.name}")
    except ObjectNotFound:
        limits: dict[str, Any] = {}
        if limit := entry.concurrency_limit:
            options = ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy(limit.collision_strategy))
            limits = {"concurrency_limit": limit.limit, "concurrency_options": options}
        client.create_deployment(
            flow_id=client.create_flow_from_name(flow.name),
            name=entry.name,
            parameters=first_parameters(settings, flow) | resolved,
            schedules=[schedule.request() for schedule in entry.schedules],
            **limits,
            **wanted,
        )
        return Registered("deployment", entry.name, "created")
    by_operator = forms.undecided(settings, flow, deployment.parameters)
    wanted["parameters"] = first_parameters(settings, flow) | by_operator | resolved
    if EXPERT in resolved:
        wanted["parameters"][EXPERT] = by_operator.get(EXPERT, {}) | resolved[EXPERT]
    changed = {key: value for key, value in wanted.items() if getattr(deployment, key) != value}
    if changed:
        client.update_deployment(deployment.id, DeploymentUpdate(**changed))
    known = {schedule.slug for schedule in deployment.schedules}  # those that it has stay, switched on or off
    missing = [schedule.request() for schedule in entry.schedules if schedule.slug not in known]
    if missing:
        client.create_deployment_schedules(deployment.id, missing)
    return Registered("deployment", entry.name, "updated" if changed or missing else "unchanged")
