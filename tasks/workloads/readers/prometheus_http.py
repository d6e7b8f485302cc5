"""Questions to a Prometheus server's HTTP API."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from tasks.errors import BadInput, quoted
from tasks.http_server import HttpServer, Patience, Words
from tasks.reading import json_of
from tasks.workloads.reading_params import PrometheusParams

if TYPE_CHECKING:
    import httpx

EXPECTED = "the HTTP API of a Prometheus server"
FIX = "is the address right? A local server's is http://127.0.0.1:9090"
WORDS = Words("http://host:9090", EXPECTED, FIX, FIX, "a shorter one", "lower read.prometheus.max_points")
POSTED = ("query_range", "series")  # their questions may be longer than an address


class PrometheusApi(HttpServer):
    """One server's API, for as long as it is open. matches: the selectors in its address."""

    def __init__(self, url: str, params: PrometheusParams, transport: "httpx.BaseTransport | None" = None) -> None:
        """Raises BadInput for an address that is none."""
        patience = Patience(params.timeout_s, params.tries, params.backoff_s)
        super().__init__(url, WORDS, patience, transport=transport)
        self.matches = self.asked_for.get("match[]", [])

    def data(self, route: str, question: Mapping[str, Any]) -> Any:
        """The data that the server answers with. Raises BadInput if there is none to be had."""
        is_posted = route.endswith(POSTED)
        asked = {"data": dict(question)} if is_posted else {"params": dict(question)}
        found = self.ask("POST" if is_posted else "GET", f"api/v1/{route}", **asked)
        if found.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            problem = f"the server refuses to answer ({found.status})"
            raise BadInput(self.shown, problem, EXPECTED, "put user:password@ into the address")
        try:
            answer = json_of(found.body)
        except ValueError as error:
            no_json = f"no JSON ({found.status}: {found.excerpt})"
            problem = "a web page instead of JSON" if found.is_page else no_json
            raise BadInput(self.shown, problem, EXPECTED, FIX) from error
        if not isinstance(answer, dict) or answer.get("status") != "success" or "data" not in answer:
            said = answer.get("error", found.status) if isinstance(answer, dict) else "no object"
            fix = "shorten the range or mend the selector"
            raise BadInput(self.shown, f"the server refuses the question ({quoted(str(said))})", EXPECTED, fix)
        return answer["data"]
