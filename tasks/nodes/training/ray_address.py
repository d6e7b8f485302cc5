"""Whether a Ray answers where it is said to be, before anything waits for it."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from tasks.errors import BadSetting, MissingTool
from tasks.nodes.training.search_params import LOCAL, SearchParams

CLIENT_SCHEME, CLIENT_PORT = "ray://", 10001
ANSWER_S = 5.0
QUIET: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
OBJECT_STORE_BYTES = 200 * 2**20  # graphs are handed over once


def check_ray(address: str) -> None:
    """Return if something listens at the address, or it is `local`. Raises BadSetting if not, within ANSWER_S."""
    if address == LOCAL:
        return
    host, port = _host_and_port(address)
    try:
        socket.create_connection((host, port), timeout=ANSWER_S).close()
    except OSError as error:
        raise _silent(address, f"nothing answers at {host}:{port} ({error.strerror or error})") from error


@contextmanager
def connected(search: SearchParams) -> Iterator[int]:
    """A connection to Ray for as long as this lasts, and how many trials it is to run at a time.

    One that this process has already is used and left as it is. Raises BadSetting if the address does not answer,
    MissingTool if Ray is not installed."""
    check_ray(search.ray_address)
    ray = _ray()
    n_here = min(search.concurrency, os.cpu_count() or 1)
    if ray.is_initialized():
        yield search.concurrency
        return
    try:
        if search.ray_address == LOCAL:
            # an address, so that RAY_ADDRESS of the environment does not stand in for it
            ray.init(address=LOCAL, num_cpus=n_here, object_store_memory=OBJECT_STORE_BYTES, **QUIET)
        else:
            ray.init(address=search.ray_address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # Ray and gRPC raise whatever they meet
        first_line = next(iter(str(error).splitlines()), type(error).__name__)
        raise _silent(search.ray_address, f"Ray does not start there ({first_line})") from error
    try:
        yield n_here if search.ray_address == LOCAL else search.concurrency
    finally:
        ray.shutdown()


def _host_and_port(address: str) -> tuple[str, int]:
    is_client = address.startswith(CLIENT_SCHEME)
    try:
        parts = urlsplit(address if is_client else f"//{address}")
        port = parts.port or (CLIENT_PORT if is_client else None)
    except ValueError:
        parts, port = urlsplit(""), None
    if not parts.hostname or port is None:
        raise _silent(address, "not an address")
    return parts.hostname, port


def _silent(address: str, problem: str) -> BadSetting:
    return BadSetting(
        f"search.ray_address {address!r}: {problem}; expected a running Ray, such as ray://head:10001 or head:6379, "
        f"or {LOCAL!r}; start it with `ray start --head`, or set search.runner to `here`"
    )


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingTool(
            "search.runner is 'ray', and the Python package ray is not installed; install it in the checkout "
            "(pip install -c constraints.txt '.[ray]'), or set search.runner to `here`"
        ) from error
    return ray
