"""Prefect's own flow-run history, over its HTTP API: a job log that every Prefect user has already."""

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

import pandas as pd
from pydantic import AwareDatetime, BaseModel, ConfigDict, FiniteFloat, ValidationError

from tasks.errors import BadInput, quoted
from tasks.intake.files import Chunk, all_refusals, json_of, refusals
from tasks.intake.http_server import FOR_OTHER_SERVERS, HTTP, HttpResponse, HttpServer, Patience, Words, is_same_server
from tasks.jobs.columns import status_of, vet_runs
from tasks.jobs.params import ReadParams, Status

if TYPE_CHECKING:
    import httpx

CHUNK_RUNS = 10_000
MAX_PAGE_RUNS = 200  # more is refused by the server
PATIENCE = Patience(timeout_s=30, tries=3, backoff_s=1)
AUTOMATIC = ("SCHEDULE", "DEPLOYMENT", "AUTOMATION")  # creators of runs that are no people
TIMED_OUT = "TimedOut"  # the name of the FAILED state of a flow that ran into its timeout_seconds
StateType = Literal[
    "SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING", "COMPLETED", "FAILED", "CRASHED", "CANCELLED"
]
ROW_TIMES = ("submitted_at", "started_at", "ended_at")
ROW_COLUMNS = ("run_id", "name", "user_name", "queue", *ROW_TIMES, "runtime_s", "status")
NAME_OF_TWO = "{0}/{1}"  # flow and deployment, as Prefect writes them: many flows have a deployment `prod`
EXPECTED = "the API of a Prefect server"
FORGOT_API = "did you forget /api? A local server's address is http://127.0.0.1:4200/api"
WORDS = Words(
    example="http://host:4200/api",
    expected=EXPECTED,
    fix="is the server running, and is the address right?",
    fix_failing="look at the server's log",
    shorter="a page of runs",
    fix_long="ask for less",
)
Raw = dict[str, Any]


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


class PrefectApiReader:
    """Job rows from a Prefect server; the path is the address of its API, http://127.0.0.1:4200/api.

    runtime_s is Prefect's total_run_time: the seconds in state Running, summed over retries, without the waits
    between them. Runs that are only scheduled for later are not in the log."""

    def __init__(
        self,
        transport: "httpx.BaseTransport | None" = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        patience: Patience = PATIENCE,
        page_runs: int = MAX_PAGE_RUNS,
    ) -> None:
        """clock: the time, with its zone; page_runs: flow runs asked for at a time."""
        self.transport, self.clock, self.patience, self.page_runs = transport, clock, patience, page_runs

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """Any http address whose last part is no file name (https://host/log.csv is a file)."""
        parts = urlsplit(path)
        return parts.scheme in HTTP and "." not in parts.path.rpartition("/")[2]

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """Chunks of some 10,000 runs by expected start. Raises BadInput if the API cannot be read."""
        now = self.clock()
        with PrefectApi(path, self.patience, self.transport) as api:
            waiting, place = list[Chunk](), 1
            for page in read_pages(api, self.page_runs, now):
                waiting.append(_chunk(page, place, api, params, now))
                place += len(page)
                if sum(len(chunk.rows) + len(chunk.refused) for chunk in waiting) >= CHUNK_RUNS:
                    yield _joined(waiting)
                    waiting = []
            if waiting:
                yield _joined(waiting)


class PrefectApi(HttpServer):
    """One server's API, for as long as it is open."""

    def __init__(self, url: str, patience: Patience, transport: "httpx.BaseTransport | None" = None) -> None:
        """Raises BadInput for an address that is none."""
        super().__init__(url, WORDS, patience, headers=_authorization(url), transport=transport)
        self.known: dict[str, dict[str, str]] = {"flows": {}, "deployments": {}}

    def objects(self, route: str, question: dict[str, Any]) -> list[dict[str, Any]]:
        """The list of objects that the server answers with. Raises BadInput if there is none to be had."""
        response = self.ask("POST", route, json=question)
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise BadInput(self.shown, *_refusal(response))
        try:
            answer = json_of(response.body)
        except ValueError as error:
            problem = "a web page instead of JSON" if response.is_page else f"malformed JSON ({error})"
            raise BadInput(self.shown, problem, EXPECTED, FORGOT_API if response.is_page else "ask again") from error
        if not isinstance(answer, list) or not all(isinstance(entry, dict) for entry in answer):
            raise BadInput(self.shown, "an answer that is no list of objects", EXPECTED, FORGOT_API)
        return answer

    def names(self, kind: str, ids: set[str]) -> dict[str, str]:
        """All names known of this kind ("flows" or "deployments") by id, those with these ids among them, each asked
        for once. What has been deleted since stays without a name."""
        known = self.known[kind]
        unknown = sorted(ids - set(known))
        for start in range(0, len(unknown), MAX_PAGE_RUNS):
            some = unknown[start : start + MAX_PAGE_RUNS]
            entries = self.objects(f"{kind}/filter", {kind: {"id": {"any_": some}}, "limit": MAX_PAGE_RUNS})
            names = {str(entry.get("id")): str(entry.get("name") or "") for entry in entries}
            known.update({each: names.get(each, "") for each in some})
        return known


def _refusal(response: HttpResponse) -> tuple[str, str, str]:
    """The problem, what was expected and what to do."""
    status, excerpt = response.status, quoted(response.excerpt)
    if status < HTTPStatus.BAD_REQUEST:
        there = response.headers.get("location", "another address")
        return f"redirects to {there}", EXPECTED, "name that address instead"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        problem = f"the server refuses to answer ({status}) {excerpt}".rstrip()
        fix = "set PREFECT_API_KEY (Prefect Cloud) or PREFECT_API_AUTH_STRING (own server)"
        return problem, "a key that may read flow runs", fix
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        return f"no Prefect API at this address ({status})", EXPECTED, FORGOT_API
    return f"the server refuses the question ({status}) {excerpt}".rstrip(), "Prefect 3", "check its version"


def _chunk(page: list[Raw], first: int, api: PrefectApi, params: ReadParams, now: datetime) -> Chunk:
    runs: list[tuple[int, FlowRun]] = []
    bad: list[tuple[int, str]] = []
    for place, raw in enumerate(page, first):
        try:
            run = FlowRun.model_validate(raw)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            bad.append((place, f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"))
            continue
        is_only_planned = run.state_type == "SCHEDULED" and run.start_time is None and run.expected_start_time > now
        runs += [] if is_only_planned else [(place, run)]
    flows = api.names("flows", {str(run.flow_id) for _, run in runs})
    deployments = api.names("deployments", {str(run.deployment_id) for _, run in runs if run.deployment_id})
    rows = [_row(run, flows, deployments, params.statuses) | {"place": place} for place, run in runs]
    frame = pd.DataFrame(rows, columns=["place", *ROW_COLUMNS]).astype({"place": "int64"})
    utc = {name: pd.to_datetime(frame[name], utc=True).dt.tz_localize(None) for name in ROW_TIMES}
    shown = [_shown(page[place - first]) for place in frame["place"]]
    vetted = vet_runs(frame.assign(**utc, raw=shown), params, now.replace(tzinfo=None))
    places, why = [place for place, _ in bad], [reason for _, reason in bad]
    refused = refusals(places, why, [_shown(page[place - first]) for place in places])
    return Chunk(vetted.rows, all_refusals([refused, vetted.refused]), {})


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


def _shown(raw: Raw) -> str:
    """The fields that we use, and no others: parameters of a flow run may hold secrets."""
    return json.dumps({name: raw[name] for name in FlowRun.model_fields if name in raw})


def _joined(chunks: list[Chunk]) -> Chunk:
    rows = pd.concat([chunk.rows for chunk in chunks], ignore_index=True)
    return Chunk(rows, all_refusals([chunk.refused for chunk in chunks]), {})


def _authorization(url: str) -> dict[str, str]:
    """The key of this process for the server that it works with, that of the user for any other."""
    is_ours = is_same_server(url, os.environ.get("PREFECT_API_URL", ""))
    key, pair = (
        os.environ.get(name) if is_ours else os.environ.get(aside, os.environ.get(name))
        for name, aside in FOR_OTHER_SERVERS.items()
    )
    if key:
        return {"Authorization": f"Bearer {key}"}
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"} if pair else {}


def read_pages(api: PrefectApi, page_runs: int, until: datetime) -> Iterator[list[Raw]]:
    """Flow runs by expected start, up to `until`; runs that are added or deleted meanwhile shift nothing.

    The next page begins at the expected start at which the last one ended (a time that Prefect never changes),
    without the runs of that very time which were there. Raises BadInput if a server does not honour that."""
    after, there = None, list[str]()
    while True:
        expected = {"before_": until.isoformat()} | ({"after_": after} if after else {})
        question: Raw = {"sort": "EXPECTED_START_TIME_ASC", "limit": page_runs}
        question["flow_runs"] = {"expected_start_time": expected} | ({"id": {"not_any_": there}} if there else {})
        page = api.objects("flow_runs/filter", question)
        if page:
            yield page
        if len(page) < page_runs:
            return
        last = next((run["expected_start_time"] for run in reversed(page) if run.get("expected_start_time")), after)
        tied = [str(run["id"]) for run in page if run.get("expected_start_time") == last and run.get("id")]
        if last == after and set(tied) <= set(there):
            raise BadInput(api.shown, "the same page of flow runs again and again", "Prefect 3", "check its version")
        after, there = last, (there + tied if last == after else tied)
