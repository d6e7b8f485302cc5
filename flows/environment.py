"""Prefect's environment: made from whorl's settings, and set before prefect is imported, since it reads it then."""

import os
from collections.abc import Mapping
from pathlib import Path

from flows.server_file import running_server
from tasks.storage import narrow

FLOW_VARIABLES = {
    "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",  # never pickle: nothing that executes code is loaded
    "PREFECT_LOGGING_EXTRA_LOGGERS": "tasks,flows",  # what the steps log appears in the run's log
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",  # the shortest that Prefect allows
    "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
    "DO_NOT_TRACK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
SERVER_VARIABLES = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",  # measured: 12 to 19 s on 2 cores
}
QUIET = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL"}  # the command line prints its own line


def prefect_variables(home: Path, *, api_url: str | None = None) -> dict[str, str]:
    """The variables that every Prefect process of this home runs with; without api_url flows start their own server."""
    place = {"PREFECT_HOME": str(home / "prefect")}
    return place | FLOW_VARIABLES | SERVER_VARIABLES | ({"PREFECT_API_URL": api_url} if api_url else {})


def prepare(home: Path, *, is_quiet: bool = True) -> str | None:
    """Set this process up for flows and return the API that they will use; None: a server of their own.

    The API is PREFECT_API_URL if it is set, else the running `whorl serve` of this home. Call it before anything
    that imports prefect: what prefect has read already stays as it is."""
    api_url = os.environ.get("PREFECT_API_URL") or running_server(home)
    (home / "prefect").mkdir(0o700, parents=True, exist_ok=True)  # prefect makes the last folder only
    narrow(home / "prefect")  # prefect.db holds what runs were asked and logged
    os.environ.update(prefect_variables(home, api_url=api_url))
    if is_quiet:
        os.environ.update(QUIET)
    return api_url


def child_environment(home: Path, *, api_url: str, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a server or worker of this home."""
    inherited = {key: value for key, value in (base or os.environ).items() if key not in QUIET}
    return inherited | prefect_variables(home, api_url=api_url) | {"WHORL_HOME": str(home)}
