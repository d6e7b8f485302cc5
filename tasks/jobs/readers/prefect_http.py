"""Questions to a Prefect server's HTTP API."""

import base64
import os
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from tasks.errors import BadInput, quoted
from tasks.http_server import Answer, HttpServer, Patience, Words, is_same_server
from tasks.jobs.params import PrefectApiParams
from tasks.reading import json_of

if TYPE_CHECKING:
    import httpx

EXPECTED = "the API of a Prefect server"
FOR_OTHER_SERVERS = {
    "PREFECT_API_KEY": "OTHER_PREFECT_API_KEY",
    "PREFECT_API_AUTH_STRING": "OTHER_PREFECT_API_AUTH_STRING",
}
"""Where the user's keys are kept while this process shows the key of its own home to the server of that home."""
FORGOT_API = "did you forget /api? A local server's address is http://127.0.0.1:4200/api"
WORDS = Words(
    example="http://host:4200/api",
    expected=EXPECTED,
    fix="is the server running, and is the address right?",
    fix_failing="look at the server's log",
    shorter="a page of runs",
    fix_long="ask for less",
)


class PrefectApi(HttpServer):
    """One server's API, for as long as it is open."""

    def __init__(self, url: str, params: PrefectApiParams, transport: "httpx.BaseTransport | None" = None) -> None:
        """Raises BadInput for an address that is none."""
        patience = Patience(params.timeout_s, params.tries, params.backoff_s)
        super().__init__(url, WORDS, patience, headers=_authorization(url), transport=transport)

    def objects(self, route: str, question: dict[str, Any]) -> list[dict[str, Any]]:
        """The list of objects that the server answers with. Raises BadInput if there is none to be had."""
        found = self.ask("POST", route, json=question)
        self._refuse_no_answer(found)
        try:
            answer = json_of(found.body)
        except ValueError as error:
            problem = "a web page instead of JSON" if found.is_page else f"malformed JSON ({error})"
            raise BadInput(self.shown, problem, EXPECTED, FORGOT_API if found.is_page else "ask again") from error
        if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
            raise BadInput(self.shown, "an answer that is no list of objects", EXPECTED, FORGOT_API)
        return answer

    def _refuse_no_answer(self, found: Answer) -> None:
        status = found.status
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            there = found.headers.get("location", "another address")
            raise BadInput(self.shown, f"redirects to {there}", EXPECTED, "name that address instead")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            problem = f"the server refuses to answer ({found.status}) {quoted(found.excerpt)}".rstrip()
            fix = "set PREFECT_API_KEY (Prefect Cloud) or PREFECT_API_AUTH_STRING (own server)"
            raise BadInput(self.shown, problem, "a key that may read flow runs", fix)
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            raise BadInput(self.shown, f"no Prefect API at this address ({found.status})", EXPECTED, FORGOT_API)
        if status >= HTTPStatus.BAD_REQUEST:
            said = f"the server refuses the question ({found.status}) {quoted(found.excerpt)}".rstrip()
            raise BadInput(self.shown, said, "Prefect 3", "check its version")


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
