"""Prefect's own flow-run history, over its HTTP API: a job log that every Prefect user has already."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from uuid import UUID

import pandas as pd
from pydantic import AwareDatetime, BaseModel, ConfigDict, FiniteFloat, ValidationError

from tasks.http_server import HTTP
from tasks.jobs.params import ReadParams, Status
from tasks.jobs.readers.prefect_http import PrefectApi
from tasks.jobs.readers.prefect_pages import Names, Raw, read_pages
from tasks.jobs.statuses import status_of
from tasks.jobs.vetting import vet_runs
from tasks.reading import Chunk, all_refusals, refusals

if TYPE_CHECKING:
    import httpx

CHUNK_RUNS = 10_000
AUTOMATIC = ("SCHEDULE", "DEPLOYMENT", "AUTOMATION")  # creators of runs that are no people
TIMED_OUT = "TimedOut"  # the name of the FAILED state of a flow that ran into its timeout_seconds
StateType = Literal[
    "SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING", "COMPLETED", "FAILED", "CRASHED", "CANCELLED"
]
ROW_TIMES = ("submitted_at", "started_at", "ended_at")
ROW_COLUMNS = ("run_id", "name", "user_name", "queue", *ROW_TIMES, "runtime_s", "status")
NAME_OF_TWO = "{0}/{1}"  # flow and deployment, as Prefect writes them: many flows have a deployment `prod`


class Creator(BaseModel):
    """Who made a run."""

    type: str | None = None
    display_value: str | None = None


class FlowRun(BaseModel):
    """The part of a flow run that we use."""

    model_config = ConfigDict(frozen=True)

    id: UUID
    flow_id: UUID
    deployment_id: UUID | None = None
    state_type: StateType | None
    state_name: str | None = None
    expected_start_time: AwareDatetime
    start_time: AwareDatetime | None = None
    end_time: AwareDatetime | None = None
    total_run_time: FiniteFloat
    work_pool_name: str | None = None
    work_queue_name: str | None = None
    created_by: Creator | None = None


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


class PrefectApiReader:
    """Job rows from a Prefect server; the path is the address of its API, http://127.0.0.1:4200/api.

    runtime_s is Prefect's total_run_time: the seconds in state Running, summed over retries, without the waits
    between them. Runs that are only scheduled for later are not in the log."""

    name = "prefect-api"
    version = 1
    ids_hold_names: bool = False
    title = "Prefect: flow runs over the HTTP API"
    endings: tuple[str, ...] = ()

    def __init__(self, transport: "httpx.BaseTransport | None" = None, clock: Callable[[], datetime] = utc_now) -> None:
        self.transport, self.clock = transport, clock

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """Any http address whose last part is no file name (https://host/log.csv is a file)."""
        parts = urlsplit(path)
        return parts.scheme in HTTP and "." not in parts.path.rpartition("/")[2]

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """Chunks of some 10,000 runs by expected start. Raises BadInput if the API cannot be read."""
        now = self.clock()
        with PrefectApi(path, params.prefect_api, self.transport) as api:
            names, waiting, place = Names(api), list[Chunk](), 1
            for page in read_pages(api, params.prefect_api.page_runs, now):
                waiting.append(_chunk(page, place, names, params, now))
                place += len(page)
                if sum(len(chunk.rows) + len(chunk.refused) for chunk in waiting) >= CHUNK_RUNS:
                    yield _joined(waiting)
                    waiting = []
            if waiting:
                yield _joined(waiting)


def _chunk(page: list[Raw], first: int, names: Names, params: ReadParams, now: datetime) -> Chunk:
    good: list[tuple[int, FlowRun]] = []
    bad: list[tuple[int, str]] = []
    for place, raw in enumerate(page, first):
        try:
            good.append((place, FlowRun.model_validate(raw)))
        except ValidationError as error:
            first_error = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first_error["loc"]))
            bad.append((place, f"{where}: {first_error['msg']}"))
    runs = [(place, run) for place, run in good if not _is_only_planned(run, now)]
    flows = names.learn("flows", {str(run.flow_id) for _, run in runs})
    deployments = names.learn("deployments", {str(run.deployment_id) for _, run in runs if run.deployment_id})
    rows = [{"place": place, **_row(run, flows, deployments, params.statuses)} for place, run in runs]
    vetted = vet_runs(_frame(rows), params, now.replace(tzinfo=None))
    raws = [_shown(page[place - first]) for place in [*(place for place, _ in bad), *vetted.refused["place"]]]
    refused = pd.concat([refusals([p for p, _ in bad], [why for _, why in bad], [""] * len(bad)), vetted.refused])
    return Chunk(vetted.rows, refusals(refused["place"], refused["reason"].to_list(), raws), {})


def _is_only_planned(run: FlowRun, now: datetime) -> bool:
    return run.state_type == "SCHEDULED" and run.start_time is None and run.expected_start_time > now


def _row(
    run: FlowRun, flows: dict[str, str], deployments: dict[str, str], mapped: Mapping[str, Status]
) -> dict[str, object]:
    flow, deployment = flows[str(run.flow_id)], deployments.get(str(run.deployment_id), "")
    # Prefect sets the start of a run that never began to the time when it was cancelled
    never_began = run.state_type == "CANCELLED" and run.total_run_time == 0
    creator, started = run.created_by, None if never_began else run.start_time
    is_person = creator is not None and creator.type not in AUTOMATIC
    has_run = run.end_time is not None and not never_began
    return {
        "run_id": str(run.id),
        "name": NAME_OF_TWO.format(flow, deployment) if deployment else flow or None,
        "user_name": creator.display_value if creator and is_person else None,
        "queue": "/".join(filter(None, (run.work_pool_name, run.work_queue_name))) or None,
        # a run that is started by hand before its time was submitted then
        "submitted_at": min(run.expected_start_time, started) if started else run.expected_start_time,
        "started_at": started,
        "ended_at": run.end_time,
        "runtime_s": run.total_run_time if has_run else None,
        "status": status_of(TIMED_OUT if run.state_name == TIMED_OUT else run.state_type or "PENDING", mapped),
    }


def _frame(rows: list[dict[str, object]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["place", *ROW_COLUMNS])
    utc = {name: pd.to_datetime(frame[name], utc=True).dt.tz_localize(None) for name in ROW_TIMES}
    return frame.assign(**utc)


def _shown(raw: Raw) -> str:
    """The fields that we use, and no others: parameters of a flow run may hold secrets."""
    return json.dumps({name: raw[name] for name in FlowRun.model_fields if name in raw})


def _joined(chunks: list[Chunk]) -> Chunk:
    rows = pd.concat([chunk.rows for chunk in chunks], ignore_index=True)
    return Chunk(rows, all_refusals([chunk.refused for chunk in chunks]), {})
