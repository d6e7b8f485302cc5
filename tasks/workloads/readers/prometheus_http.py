"""Questions to a Prometheus server's HTTP API: bounded retries, bounded answers, one clear line when it fails."""

import json
import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from tasks.errors import BadInput
from tasks.workloads.reading_params import PrometheusParams

logger = logging.getLogger(__name__)

EXPECTED = "the HTTP API of a Prometheus server"
FIX = "is the address right? A local server's is http://127.0.0.1:9090"
MAX_ANSWER_BYTES = 512 * 2**20
SHOWN_CHARS = 200
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class PrometheusApi:
    """One server's API, for as long as it is open; the address as people see it is `shown`, without passwords."""

    def __init__(self, url: str, params: PrometheusParams, transport: httpx.BaseTransport | None = None) -> None:
        """Raises BadInput for an address that is none."""
        try:
            address = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise BadInput(url, f"no address ({error})", "http://host:9090", "check it") from error
        self.shown = str(address.copy_with(userinfo=None, query=None, fragment=None)).rstrip("/")
        if address.scheme not in ("http", "https") or not address.host:
            raise BadInput(self.shown, "no address of a server", "http://host:9090", "check it")
        self.matches = address.params.get_list("match[]")
        self.params = params
        self.client = httpx.Client(
            base_url=address.copy_with(query=None, fragment=None),
            timeout=params.timeout_s,
            transport=transport,
            trust_env=address.host not in LOOPBACK,  # no proxy between this machine and itself
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

    def ask(self, route: str, question: Mapping[str, Any]) -> Any:
        """The data that the server answers with. Raises BadInput if there is none to be had.

        Asks again, a bounded number of times, where the connection or the server failed, not where it refused."""
        for n_tried in range(1, self.params.tries + 1):
            try:
                status, body = self._post(route, question)
            except httpx.TransportError as error:
                problem = _told(error, self.params.timeout_s)
            else:
                if not _is_passing(status):
                    return self._data(status, body)
                problem = f"the server fails ({status}) {_excerpt(body)}".rstrip()
            if n_tried < self.params.tries:
                logger.info("%s: %s; trying again", self.shown, problem)
                time.sleep(self.params.backoff_s * 2 ** (n_tried - 1))
        raise BadInput(self.shown, f"{problem}, {self.params.tries} times", EXPECTED, FIX)

    def _post(self, route: str, question: Mapping[str, Any]) -> tuple[int, bytes]:
        method = "POST" if route.endswith(("query_range", "series")) else "GET"
        asked = {"data": dict(question)} if method == "POST" else {"params": dict(question)}
        with self.client.stream(method, f"api/v1/{route}", **asked) as response:  # type: ignore[arg-type]
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > MAX_ANSWER_BYTES:
                    raise BadInput(
                        self.shown,
                        f"an answer of more than {MAX_ANSWER_BYTES:,} bytes",
                        "a shorter one",
                        "lower read.prometheus.max_points",
                    )
            return response.status_code, bytes(body)

    def _data(self, status: int, body: bytes) -> Any:
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise BadInput(
                self.shown, f"the server refuses to answer ({status})", EXPECTED, "put user:password@ into the address"
            )
        try:
            answer = json.loads(body)
        except ValueError as error:
            is_page = body.lstrip()[:1] == b"<"
            problem = "a web page instead of JSON" if is_page else f"no JSON ({status}: {_excerpt(body)})"
            raise BadInput(self.shown, problem, EXPECTED, FIX) from error
        if not isinstance(answer, dict) or answer.get("status") != "success" or "data" not in answer:
            said = answer.get("error", status) if isinstance(answer, dict) else "no object"
            fix = "shorten the range or mend the selector"
            raise BadInput(self.shown, f"the server refuses the question ({str(said)[:SHOWN_CHARS]})", EXPECTED, fix)
        return answer["data"]


def _is_passing(status: int) -> bool:
    return status == httpx.codes.TOO_MANY_REQUESTS or httpx.codes.is_server_error(status)


def _told(error: httpx.TransportError, timeout_s: float) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {timeout_s:g} s"
    return f"no connection ({str(error) or type(error).__name__})"


def _excerpt(body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "replace").split())
    return "" if text.startswith("<") else text[:SHOWN_CHARS]
