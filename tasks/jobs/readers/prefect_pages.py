"""A Prefect server's flow runs page by page, each run once, and the names of their flows and deployments."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tasks.errors import BadInput
from tasks.jobs.readers.prefect_http import PrefectApi

Raw = dict[str, Any]
MAX_PAGE_RUNS = 200  # more is refused by the server


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


class Names:
    """The names of flows and deployments by id, asked for once each."""

    def __init__(self, api: PrefectApi) -> None:
        self.api = api
        self.known: dict[str, dict[str, str]] = {"flows": {}, "deployments": {}}

    def learn(self, kind: str, ids: set[str]) -> dict[str, str]:
        """All names known of this kind ("flows" or "deployments"), those with these ids among them.

        What has been deleted since stays without a name."""
        known = self.known[kind]
        unknown = sorted(ids - set(known))
        for start in range(0, len(unknown), MAX_PAGE_RUNS):
            some = unknown[start : start + MAX_PAGE_RUNS]
            question: Raw = {kind: {"id": {"any_": some}}, "limit": MAX_PAGE_RUNS}
            found = {
                str(one.get("id")): str(one.get("name") or "") for one in self.api.objects(f"{kind}/filter", question)
            }
            known.update({each: found.get(each, "") for each in some})
        return known
