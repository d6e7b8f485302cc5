"""Whether a Ray answers where it is said to be, before anything waits for it, and a connection to it.

Errors name the setting that holds the address, and what to do without Ray: `setting` and `otherwise` of each call."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from tasks.errors import BadSetting, MissingTool

LOCAL = "local"  # in place of an address: a Ray on this machine, for as long as the work takes
CLIENT_SCHEME, CLIENT_PORT = "ray://", 10001
ANSWER_S = 5.0
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
OBJECT_STORE_BYTES = 200 * 2**20  # what is handed over is small, and once


def check_ray(address: str, *, setting: str, otherwise: str) -> None:
    """Return if something listens at the address, or it is `local`. Raises BadSetting if not, within ANSWER_S."""
    if address == LOCAL:
        return
    is_client = address.startswith(CLIENT_SCHEME)
    try:
        parts = urlsplit(address if is_client else f"//{address}")
        host, port = parts.hostname, parts.port or (CLIENT_PORT if is_client else None)
    except ValueError:
        host, port = None, None
    if not host or port is None:
        raise _unusable(address, "not an address", setting, otherwise)
    try:
        socket.create_connection((host, port), timeout=ANSWER_S).close()
    except OSError as error:
        problem = f"nothing answers at {host}:{port} ({error.strerror or error})"
        raise _unusable(address, problem, setting, otherwise) from error


@contextmanager
def connected(address: str, most_at_once: int | None = None, *, setting: str, otherwise: str) -> Iterator[int]:
    """A connection to Ray for as long as this lasts, and how many pieces of work it is to run at a time.

    most_at_once: None, as many as this machine has processors, as on `local` at most. A connection that this process
    has already is used and left as it is. Raises BadSetting if the address does not answer, MissingTool if Ray is not
    installed."""
    check_ray(address, setting=setting, otherwise=otherwise)
    try:
        import ray
    except ImportError as error:
        raise MissingTool(
            f"{setting} is {address!r}, and the Python package ray is not installed; install it in the checkout "
            f"(pip install -c constraints.txt '.[ray]'), or {otherwise}"
        ) from error
    n_processors = os.cpu_count() or 1
    n_elsewhere = most_at_once or n_processors
    n_here = min(n_elsewhere, n_processors)
    if ray.is_initialized():
        yield n_elsewhere
        return
    try:
        if address == LOCAL:
            # an address, so that RAY_ADDRESS of the environment does not stand in for it
            ray.init(
                address=LOCAL, num_cpus=n_here, object_store_memory=OBJECT_STORE_BYTES, include_dashboard=False, **QUIET
            )
        else:
            ray.init(address=address, **QUIET)
    except Exception as error:  # Ray and gRPC raise whatever they meet
        first_line = next(iter(str(error).splitlines()), type(error).__name__)
        raise _unusable(address, f"Ray does not start there ({first_line})", setting, otherwise) from error
    try:
        yield n_here if address == LOCAL else n_elsewhere
    finally:
        ray.shutdown()


def _unusable(address: str, problem: str, setting: str, otherwise: str) -> BadSetting:
    return BadSetting(
        f"{setting} {address!r}: {problem}; expected a running Ray, such as ray://head:10001 or head:6379, "
        f"or {LOCAL!r}; start it with `ray start --head`, or {otherwise}"
    )
