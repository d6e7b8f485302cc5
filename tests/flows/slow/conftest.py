"""A real `whorl serve` for the slow tests, spoken to over its HTTP API as any other program would."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from flows.engine.servers import load_key
from tasks.machine import read_server_file
from tasks.warehouse.place import Warehouse

START_S = 240.0
STOP_S = 90.0
LOOK_EVERY_S = 0.5
BUSY, TRIES = 503, 20
SERVE = (
    "import sys; from pathlib import Path; from flows.engine.serving import serve; "
    "from tasks.settings import load_settings; "
    "serve(load_settings({'whorl': {'home': sys.argv[1]}}).settings, port=0, say=lambda line: print(line, flush=True))"
)


def until(what: str, found: Callable[[], Any], timeout_s: float) -> Any:
    """Wait until `found` gives something true; fails with `what` when the time is over."""
    deadline = time.monotonic() + timeout_s
    while not (result := found()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s"
        time.sleep(LOOK_EVERY_S)
    return result


@dataclass
class Served:
    """A running `whorl serve` in a home of its own."""

    home: Path
    process: "subprocess.Popen[bytes]"
    output: Path
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        user, _, secret = load_key(self.home).partition(":")
        self.http = httpx.Client(timeout=60, trust_env=False, auth=(user, secret))

    until = staticmethod(until)

    @property
    def url(self) -> str:
        """The API."""
        found = read_server_file(self.home)
        assert found
        return found.url

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which Prefect's own commands reach it, as the runbook says."""
        place = {"PREFECT_API_URL": self.url, "PREFECT_HOME": str(self.home / "prefect")}
        return os.environ | place | {"PREFECT_API_AUTH_STRING": load_key(self.home)}

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse of its home."""
        return Warehouse(home=self.home)

    def get(self, path: str) -> Any:
        """Ask the API."""
        return self.ask("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Ask the API, with a body."""
        return self.ask("POST", path, body)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the API; a server whose SQLite is busy says 503 and is asked again, as Prefect's client does."""
        for _ in range(TRIES):
            answer = self.http.request(method, f"{self.url}{path}", json=body)
            if answer.status_code != BUSY:
                break
            time.sleep(LOOK_EVERY_S)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def deployment(self, name: str) -> dict[str, Any]:
        """One deployment as the server has it."""
        found: dict[str, Any] = self.get(f"/deployments/name/{name}/{name}")
        return found

    def start(self, name: str, parameters: dict[str, Any]) -> str:
        """Start a run as the form does; returns its id."""
        run = self.post(f"/deployments/{self.deployment(name)['id']}/create_flow_run", {"parameters": parameters})
        return str(run["id"])

    def run(self, run_id: str) -> dict[str, Any]:
        """One flow run as the server has it."""
        found: dict[str, Any] = self.get(f"/flow_runs/{run_id}")
        return found

    def wait(self, run_id: str, *states: str, timeout_s: float = 180) -> dict[str, Any]:
        """Wait until the run is in one of these states."""
        until(f"run in {states}", lambda: self.run(run_id)["state_type"] in states, timeout_s)
        return self.run(run_id)

    def retry(self, run_id: str) -> None:
        """What the button of the UI does."""
        state = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": "Retry from the UI"}
        answer = self.post(f"/flow_runs/{run_id}/set_state", {"state": state, "force": False})
        assert answer["status"] == "ACCEPT", answer

    def steps(self, run_id: str) -> list[tuple[str, str]]:
        """Name and last state of each step of a run, in the order of their starts."""
        body = {"flow_runs": {"id": {"any_": [run_id]}}, "sort": "EXPECTED_START_TIME_ASC", "limit": 200}
        found = self.post("/task_runs/filter", body)
        return [(run["name"].rsplit("-", 1)[0], run["state_name"]) for run in found]

    def processes_of(self, run_id: str) -> list[psutil.Process]:
        """The processes that execute a flow run."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in family if process.environ().get("PREFECT__FLOW_RUN_ID") == run_id]

    def worker(self) -> psutil.Process:
        """The worker of this server, once it runs."""
        server = psutil.Process(self.process.pid)
        [worker] = until("a worker", lambda: [one for one in server.children() if "worker" in one.cmdline()], 60)
        return worker

    def stop(self) -> int:
        """Ask it to stop; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)


@contextmanager
def serving(home: Path) -> Iterator[Served]:
    """Start `whorl serve` on a free port, ready for work; whatever happens, nothing of it is left running."""
    home.mkdir(parents=True, exist_ok=True)
    output = home / "serve.log"
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "WHORL_"))}
    with output.open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", SERVE, str(home)], env=inherited, stdout=log, stderr=log)
    family: set[psutil.Process] = {psutil.Process(process.pid)}
    try:
        until("whorl serve is ready", lambda: b"Prefect:" in output.read_bytes() or process.poll() is not None, START_S)
        assert process.poll() is None, output.read_text()
        served = Served(home, process, output)
        until("the worker is there", lambda: served.post("/work_pools/whorl/workers/filter", {}), START_S)
        yield served
    finally:
        if process.poll() is None:
            family |= set(psutil.Process(process.pid).children(recursive=True))
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
        for left in [one for one in family if one.is_running()]:
            left.kill()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all slow tests that leave it as they found it."""
    with serving(tmp_path_factory.mktemp("served") / "home") as found:
        yield found


@pytest.fixture
def serving_in() -> Callable[[Path], AbstractContextManager[Served]]:
    """For a test that needs a server of its own: `with serving_in(home) as served`."""
    return serving


@pytest.fixture
def csv_in(tmp_path: Path) -> Callable[..., Path]:
    """Writes a job log: ten daily runs of one job, the last of them as slow as asked."""

    def write(name: str, last_s: float = 60) -> Path:
        rows = [f"{name}-{day},{name}_load,2026-01-{day:02d}T01:00:00,{60 + day}" for day in range(1, 10)]
        rows.append(f"{name}-10,{name}_load,2026-01-10T01:00:00,{last_s}")
        file = tmp_path / f"{name}.csv"
        file.write_text("\n".join(["run_id,name,started_at,runtime_s", *rows]) + "\n")
        return file

    return write
