"""<home>/server.json and <home>/api.key: how the server of a home is found, and what it wants to be told first."""

import json
import re
import secrets
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tasks.errors import BadSetting, WhorlError
from tasks.http_server import is_same_server

OK = 200
HEALTH_TIMEOUT_S = 5.0
CLOCK_SLACK_S = 1.0  # a start time read twice may differ by rounding
USER, KEY_BYTES = "whorl", 32
KEY = re.compile(USER + r":[\w-]{40,}")
OTHERS = 0o077  # the rights of everybody but the owner


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


def key_file(home: Path) -> Path:
    """Where the key is: the line to log in with."""
    return home / "api.key"


def load_key(home: Path) -> str:
    """The key of this home's servers, `whorl:` and a secret; made on first use, readable by its owner only.

    Raises BadSetting if others may read it, or if the file holds no key."""
    from tasks.storage import make_private_file

    path = key_file(home)
    if not path.exists():
        make_private_file(path, f"{USER}:{secrets.token_urlsafe(KEY_BYTES)}\n".encode())
    if path.stat().st_mode & OTHERS:
        raise BadSetting(f"{path}: others may read the key; expected a file of its owner alone; run chmod 600 on it")
    key = path.read_text(encoding="utf-8", errors="replace").strip()
    if not KEY.fullmatch(key):
        raise BadSetting(f"{path}: holds no key of a server; expected {USER}:SECRET; delete it to get another one")
    return key


def key_for(home: Path, api_url: str) -> str | None:
    """The key of this home if its own server answers at this address; None for any other: nobody else gets it.

    Raises BadSetting as load_key."""
    found = read_server_file(home)
    return load_key(home) if found and is_same_server(found.url, api_url) else None


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
