"""Prefect's environment: made from whorl's settings, and set before prefect is imported, since it reads it then."""

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from flows.server_file import key_for, running_server
from tasks.http_server import FOR_OTHER_SERVERS

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
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",  # Prefect would start one without a key that outlives a kill
}
QUIET = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL"}  # the command line prints its own line


def prefect_variables(home: Path, *, api_url: str | None = None) -> dict[str, str]:
    """The variables that every Prefect process of this home runs with."""
    place = {"PREFECT_HOME": str(home / "prefect")}
    return place | FLOW_VARIABLES | SERVER_VARIABLES | ({"PREFECT_API_URL": api_url} if api_url else {})


def prepare(home: Path, *, is_quiet: bool = True, api_url: str | None = None) -> str | None:
    """Set this process up for flows and return the API that they will use; None: there is no server yet.

    The API is api_url, else PREFECT_API_URL if it is set, else the running `whorl serve` of this home, which gets its
    key; another server gets what the user has set. Call it before anything that imports prefect: what prefect has read
    already stays as it is. Raises BadSetting for a key that cannot be used."""
    url = api_url or os.environ.get("PREFECT_API_URL") or running_server(home)
    os.environ.update(prefect_variables(home, api_url=url))
    if is_quiet:
        os.environ.update(QUIET)
    if url and (key := key_for(home, url)):
        use_key(os.environ, key)
    return url


def use_key(variables: MutableMapping[str, str], key: str) -> None:
    """Let Prefect show this key to the server that the variables name; what the user has set is for other servers."""
    for theirs, ours in FOR_OTHER_SERVERS.items():
        variables.setdefault(ours, variables.get(theirs, ""))
    variables.pop("PREFECT_API_KEY", None)
    variables["PREFECT_API_AUTH_STRING"] = key


def child_environment(home: Path, *, api_url: str, key: str, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a server or worker of this home. key: that of the server at api_url."""
    inherited = {name: value for name, value in (base or os.environ).items() if name not in QUIET}
    use_key(inherited, key)
    return inherited | prefect_variables(home, api_url=api_url) | {"WHORL_HOME": str(home)}
