"""Questions to a Prefect server's HTTP API: bounded retries, bounded answers, and one clear line when it fails."""

import base64
import json
import logging
import os
import time
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Self

import httpx

from tasks.errors import BadInput
from tasks.jobs.params import PrefectApiParams

logger = logging.getLogger(__name__)

HTTP = ("http", "https")
MAX_ANSWER_BYTES = 512 * 2**20  # 200 runs with parameters of at most 512 kB each stay far below
SHOWN_CHARS = 200  # of what the server says
FORGOT_API = "did you forget /api? A local server's address is http://127.0.0.1:4200/api"


class PrefectApi:
    """One server's API, for as long as it is open; the address as people see it is `shown`, without passwords."""

    def __init__(self, url: str, params: PrefectApiParams, transport: httpx.BaseTransport | None = None) -> None:
        """Raises BadInput for an address that is none."""
        try:
            address = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise BadInput(url, f"no address ({error})", "http://host:4200/api", "check it") from error
        self.shown = str(address.copy_with(userinfo=None, query=None, fragment=None)).rstrip("/")
        if address.scheme not in HTTP or not address.host:
            raise BadInput(self.shown, "no address of a server", "http://host:4200/api", "check it")
        self.params = params
        self.client = httpx.Client(
            base_url=address.copy_with(query=None, fragment=None),
            headers=_authorization(),
            timeout=params.timeout_s,
            transport=transport,
            trust_env=not _is_loopback(address.host),  # no proxy between this machine and itself
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

    def ask(self, route: str, question: dict[str, Any]) -> list[dict[str, Any]]:
        """The list of objects that the server answers with. Raises BadInput if there is none to be had.

        Asks again, a bounded number of times, where the connection or the server failed, not where it refused."""
        for n_tried in range(1, self.params.tries + 1):
            try:
                status, body, headers = self._post(route, question)
            except httpx.TransportError as error:
                problem, fix = _told(error, self.params.timeout_s), "is the server running, and is the address right?"
            else:
                if not _is_passing(status):
                    return self._parsed(status, body, headers)
                problem, fix = f"the server fails ({status}) {_excerpt(body)}".rstrip(), "look at the server's log"
            if n_tried < self.params.tries:
                logger.info("%s: %s; trying again", self.shown, problem)
                time.sleep(self.params.backoff_s * 2 ** (n_tried - 1))
        raise BadInput(self.shown, f"{problem}, {self.params.tries} times", "the API of a Prefect server", fix)

    def _post(self, route: str, question: dict[str, Any]) -> tuple[int, bytes, httpx.Headers]:
        with self.client.stream("POST", route, json=question) as response:
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > MAX_ANSWER_BYTES:
                    raise BadInput(
                        self.shown,
                        f"an answer of more than {MAX_ANSWER_BYTES:,} bytes",
                        "a page of runs",
                        "ask for less",
                    )
            return response.status_code, bytes(body), response.headers

    def _parsed(self, status: int, body: bytes, headers: httpx.Headers) -> list[dict[str, Any]]:
        expected = "the API of a Prefect server"
        if httpx.codes.is_redirect(status):
            there = headers.get("location", "another address")
            raise BadInput(self.shown, f"redirects to {there}", expected, "name that address instead")
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise BadInput(
                self.shown,
                f"the server refuses to answer ({status}) {_excerpt(body)}".rstrip(),
                "a key that may read flow runs",
                "set PREFECT_API_KEY (Prefect Cloud) or PREFECT_API_AUTH_STRING (own server)",
            )
        if status in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED):
            raise BadInput(self.shown, f"no Prefect API at this address ({status})", expected, FORGOT_API)
        if httpx.codes.is_error(status):
            said = f"the server refuses the question ({status}) {_excerpt(body)}".rstrip()
            raise BadInput(self.shown, said, "Prefect 3", "check its version")
        try:
            answer = json.loads(body)
        except ValueError as error:
            is_page = body.lstrip()[:1] == b"<"
            problem = "a web page instead of JSON" if is_page else f"malformed JSON ({error})"
            raise BadInput(self.shown, problem, expected, FORGOT_API if is_page else "ask again") from error
        if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
            raise BadInput(self.shown, "an answer that is no list of objects", expected, FORGOT_API)
        return answer


def _authorization() -> dict[str, str]:
    key, pair = os.environ.get("PREFECT_API_KEY"), os.environ.get("PREFECT_API_AUTH_STRING")
    if key:
        return {"Authorization": f"Bearer {key}"}
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"} if pair else {}


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_passing(status: int) -> bool:
    return httpx.codes.is_server_error(status) or status == httpx.codes.TOO_MANY_REQUESTS


def _told(error: httpx.TransportError, timeout_s: float) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {timeout_s:g} s"
    return f"no connection ({str(error) or type(error).__name__})"


def _excerpt(body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "replace").split())
    return "" if text.startswith("<") else text[:SHOWN_CHARS]
