"""What becomes of running flows when `whorl serve` stops: each is ended and becomes Crashed, so it can be retried.

Prefect's worker, told to stop, kills its runs and leaves without a word: they would stay Running for ever."""

import base64
import json
import time
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any

import psutil

RUN_ID = "PREFECT__FLOW_RUN_ID"  # the worker sets it in the environment of a run's process
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}
REQUEST_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.2
MESSAGE = "Stopped together with 'whorl serve'; retry it to continue after its last finished step"


def end_runs(worker_pid: int, api_url: str, key: str, *, patience_s: float) -> list[str]:
    """End every flow run that this worker runs now; returns their ids. key: that of the server.

    The run or its worker gets patience_s to write down the end; after that it is written from here."""
    found = _runs_of(worker_pid)
    processes = [process for family in found.values() for process in family]
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=patience_s)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    deadline = time.monotonic() + patience_s
    open_ids = list(found)
    while open_ids := [run_id for run_id in open_ids if not _has_ended(api_url, key, run_id)]:
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_EVERY_S)
    for run_id in open_ids:
        state = {"type": "CRASHED", "name": "Crashed", "message": MESSAGE}
        _ask(f"{api_url}/flow_runs/{run_id}/set_state", key, {"state": state, "force": True})
    return list(found)


def _runs_of(worker_pid: int) -> dict[str, list[psutil.Process]]:
    runs: dict[str, list[psutil.Process]] = {}
    with suppress(psutil.Error):
        for process in psutil.Process(worker_pid).children(recursive=True):
            with suppress(psutil.Error):
                run_id = process.environ().get(RUN_ID)
                runs.setdefault(run_id or "", []).append(process)
    runs.pop("", None)
    return runs


def _has_ended(api_url: str, key: str, run_id: str) -> bool:
    run = _ask(f"{api_url}/flow_runs/{run_id}", key)
    return run is None or run.get("state_type") in FINAL


def _ask(url: str, key: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The answer of the API; None if it gives none (the server is going, too)."""
    data = None if body is None else json.dumps(body).encode()
    told = {"Content-Type": "application/json", "Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}
    request = urllib.request.Request(url, data=data, headers=told)
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (urllib.error.URLError, OSError, ValueError):
        return None
