"""The whole story on the recording that whorl ships: read it, load it, summarise it, and look for slow runs."""

from pathlib import Path
from typing import TypedDict

from pydantic import Field

from flows.forms import call, flow
from flows.job_params import WAREHOUSE, IngestParams, WatchFlowParams
from flows.jobs import jobs_ingest, jobs_watch
from tasks.jobs.params import JobsParams
from tasks.params import Params
from tasks.warehouse.place import Warehouse

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "jobs"
SOURCE = "recorded"


class DemoParams(Params):
    """Where the demo works, and with which settings."""

    warehouse: Warehouse = Field(description=WAREHOUSE)
    jobs: JobsParams = Field(JobsParams(), description="Settings of the word jobs")


class Told(TypedDict):
    """What the demo found. report: path of the page; alarms: ids of the alarms that are new."""

    source: str
    n_rows: int
    n_quarantined: int
    data_version: str
    alarms: list[str]
    report: str


@flow(name="whorl-demo", run_name=lambda: "tell the story of the recorded jobs", tags=["demo"])
def whorl_demo(params: DemoParams) -> Told:
    """Read the recorded jobs that whorl ships, summarise them, and raise an alarm for each slow run."""
    jobs = params.jobs
    asked = IngestParams(
        paths=[str(RECORDED)],
        source=SOURCE,
        read=jobs.read,
        group=jobs.group,
        summary=jobs.summary,
        report=jobs.report,
        warehouse=params.warehouse,
    )
    found = call(jobs_ingest, asked)
    watched = call(jobs_watch, WatchFlowParams(source=SOURCE, watch=jobs.watch, warehouse=params.warehouse))
    return Told(
        source=SOURCE,
        n_rows=found["n_rows"],
        n_quarantined=found["n_quarantined"],
        data_version=found["data_version"],
        alarms=watched["alarms"],
        report=found["report"],
    )


def tell_demo(params: DemoParams) -> Told:
    """Run whorl-demo here and now. Raises WhorlError."""
    return call(whorl_demo, params)
