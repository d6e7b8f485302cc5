"""deployments/prefect.yaml as whorl reads it: the same file that `prefect deploy --all` takes."""

import importlib
from pathlib import Path
from typing import Any, Literal

import yaml
from prefect import Flow
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.schedules import CronSchedule
from pydantic import Field

from tasks.params import Params

FILE = Path(__file__).parents[1] / "deployments" / "prefect.yaml"


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


class PoolEntry(Params):
    """The work pool of a deployment, and its queue there; None: the default one."""

    name: str
    work_queue_name: str | None = None


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
    work_pool: PoolEntry
    schedules: list[ScheduleEntry] = Field([])
    concurrency_limit: LimitEntry | None = None

    def load_flow(self) -> Flow[..., Any]:
        """Import the flow in the plain way: Prefect's own loader hides a failed import."""
        module, name = self.entrypoint.rsplit(".", 1)
        found = getattr(importlib.import_module(module), name)
        if not isinstance(found, Flow):
            raise TypeError(f"{self.entrypoint}: a {type(found).__name__}; expected a flow")
        return found


def read_deployments(file: Path = FILE) -> list[DeploymentEntry]:
    """All deployments of the file."""
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [DeploymentEntry(**entry) for entry in content["deployments"]]
