"""<home>/server.json: how a running `whorl serve` is found by the commands of the same home."""

import json
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tasks.errors import WhorlError

OK = 200
HEALTH_TIMEOUT_S = 5.0
CLOCK_SLACK_S = 1.0  # a start time read twice may differ by rounding


class NoServer(WhorlError):
    """There is no Prefect server to talk to, or it could not be started."""

    exit_code = 9


@dataclass(frozen=True)
class ServerFile:
    """One running server: its API, the process that keeps it, and when that process began (a pid is used again)."""

    url: str
    pid: int
    process_started_s: float

    @property
    def is_alive(self) -> bool:
        """Whether the process that wrote the file still runs."""
        try:
            started_s = psutil.Process(self.pid).create_time()
        except psutil.Error:
            return False
        return bool(abs(started_s - self.process_started_s) < CLOCK_SLACK_S)


def server_file(home: Path) -> Path:
    """Where the file is."""
    return home / "server.json"


def write_server_file(home: Path, url: str, pid: int) -> None:
    """Say that process `pid` serves the API `url`; whole or not at all."""
    content = ServerFile(url, pid, psutil.Process(pid).create_time())
    unfinished = server_file(home).with_suffix(f".{pid}")
    unfinished.write_text(json.dumps(asdict(content)), encoding="utf-8")
    unfinished.replace(server_file(home))


def read_server_file(home: Path) -> ServerFile | None:
    """What the file says; None if there is none, if it is damaged, or if its process is gone."""
    with suppress(OSError, ValueError, TypeError):
        found = ServerFile(**json.loads(server_file(home).read_text(encoding="utf-8")))
        return found if found.is_alive else None
    return None


def remove_server_file(home: Path) -> None:
    """Forget the server."""
    server_file(home).unlink(missing_ok=True)


def running_server(home: Path) -> str | None:
    """The API of the `whorl serve` of this home, if it runs and answers."""
    found = read_server_file(home)
    return found.url if found and is_healthy(found.url) else None


def is_healthy(api_url: str, timeout_s: float = HEALTH_TIMEOUT_S) -> bool:
    """Whether a Prefect server answers at this address."""
    try:
        with urllib.request.urlopen(f"{api_url}/health", timeout=timeout_s) as answer:
            return bool(answer.status == OK and answer.read().strip() == b"true")
    except (urllib.error.URLError, OSError, ValueError):
        return False
