"""Questions to a server over HTTP: bounded retries, bounded answers, and one clear line when it fails.

httpx takes most of a second to import: only those who ask a server wait for it."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from tasks.errors import BadInput

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

HTTP = ("http", "https")
FOR_OTHER_SERVERS = {
    "PREFECT_API_KEY": "OTHER_PREFECT_API_KEY",
    "PREFECT_API_AUTH_STRING": "OTHER_PREFECT_API_AUTH_STRING",
}
"""Where the user's keys are kept while this process shows the key of its own home to the server of that home."""
MAX_ANSWER_BYTES = 512 * 2**20
SHOWN_CHARS = 200  # of what a server says


@dataclass(frozen=True)
class Patience:
    """How long one answer may take, how often is asked, and the rest after the first try, which doubles each time."""

    timeout_s: float
    tries: int
    backoff_s: float


@dataclass(frozen=True)
class Words:
    """What error messages say. example: an address; expected: what answers there; fix: what to do if nothing does;
    fix_failing: if it fails; shorter, fix_long: what to ask for instead of too long an answer, and how."""

    example: str
    expected: str
    fix: str
    fix_failing: str
    shorter: str
    fix_long: str


@dataclass(frozen=True)
class HttpResponse:
    """What a server said. headers: names in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def excerpt(self) -> str:
        """The beginning of what it says in words; empty for a web page."""
        text = " ".join(self.body.decode("utf-8", "replace").split())
        return "" if text.startswith("<") else text[:SHOWN_CHARS]

    @property
    def is_page(self) -> bool:
        """Whether it is a web page."""
        return self.body.lstrip()[:1] == b"<"


class HttpServer:
    """A server, for as long as it is open. shown: its address as people see it, without passwords; asked_for: the
    values of each name in the address's query."""

    def __init__(
        self,
        url: str,
        words: Words,
        patience: Patience,
        *,
        headers: Mapping[str, str] | None = None,
        transport: "httpx.BaseTransport | None" = None,
    ) -> None:
        """Raises BadInput for an address that is none. transport: for tests."""
        import httpx

        try:
            address = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise BadInput(url, f"no address ({error})", words.example, "check it") from error
        self.shown = str(address.copy_with(userinfo=None, query=None, fragment=None)).rstrip("/")
        if address.scheme not in HTTP or not address.host:
            raise BadInput(self.shown, "no address of a server", words.example, "check it")
        self.asked_for = {name: address.params.get_list(name) for name in address.params}
        self.words, self.patience = words, patience
        self._client = httpx.Client(
            base_url=address.copy_with(query=None, fragment=None),
            headers=dict(headers or {}),
            timeout=patience.timeout_s,
            transport=transport,
            trust_env=not _is_loopback(address.host),  # no proxy between this machine and itself
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def ask(self, method: str, route: str, **question: Any) -> HttpResponse:
        """The answer to a question, whatever it is; question: as httpx takes it (json, data, params).

        Asks again where the connection or the server failed. Raises BadInput if it fails each time."""
        import httpx

        for n_tried in range(1, self.patience.tries + 1):
            try:
                answer = self._ask_once(method, route, question)
            except httpx.TransportError as error:
                problem, fix = _fault_text(error, self.patience.timeout_s), self.words.fix
            else:
                if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR and answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                    return answer
                problem, fix = f"the server fails ({answer.status}) {answer.excerpt}".rstrip(), self.words.fix_failing
            if n_tried < self.patience.tries:
                logger.info("%s: %s; trying again", self.shown, problem)
                time.sleep(self.patience.backoff_s * 2 ** (n_tried - 1))
        raise BadInput(self.shown, f"{problem}, {self.patience.tries} times", self.words.expected, fix)

    def _ask_once(self, method: str, route: str, question: Mapping[str, Any]) -> HttpResponse:
        with self._client.stream(method, route, **question) as response:
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > MAX_ANSWER_BYTES:
                    problem = f"an answer of more than {MAX_ANSWER_BYTES:,} bytes"
                    raise BadInput(self.shown, problem, self.words.shorter, self.words.fix_long)
            return HttpResponse(response.status_code, bytes(body), dict(response.headers))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_same_server(address: str, other: str) -> bool:
    """Whether two addresses name the same host and port; all names of loopback are one host."""
    place = _place(address)
    return place is not None and place == _place(other)


def _place(url: str) -> tuple[str, int | None] | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return ("loopback" if _is_loopback(host) else host, port) if host else None


def _fault_text(error: "httpx.TransportError", timeout_s: float) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {timeout_s:g} s"
    return f"no connection ({str(error) or type(error).__name__})"
