"""The server that the commands of a home share: one for all, gone when idle, and never without its record."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from flows.engine import shared_server
from flows.engine.servers import NoPrefectServer
from flows.engine.serving import stop_serving
from flows.engine.shared_server import end, has_clients, join, taken_over
from tasks.machine import read_server_file, write_server_file

ROOT = Path(__file__).parents[3]
ENDS_WITHIN_S = 30.0
CLIENT = """
import sys, time
from pathlib import Path
from flows.engine.shared_server import join
print(join(Path(sys.argv[1]), idle_s=float(sys.argv[2])).url, flush=True)
sys.stdin.read()
"""
HOLDER = "import sys\nfrom pathlib import Path\nfrom flows.engine.shared_server import hold\n" + (
    "hold(Path(sys.argv[1]))\nprint('held', flush=True)\nsys.stdin.read()"
)
Started = "subprocess.Popen[str]"


def started(code: str, *arguments: str) -> Started:
    """A process of this checkout that runs until its stdin is closed."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = [sys.executable, "-c", code, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=variables, stdin=pipe, stdout=pipe, text=True)


def line_of(process: Started) -> str:
    """The first line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def eventually(is_so: Callable[[], bool], within_s: float = ENDS_WITHIN_S) -> bool:
    """Whether a question comes true in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose server, if one is left, is ended."""
    yield tmp_path
    if found := read_server_file(tmp_path):
        end(found)


def test_a_process_counts_as_a_client_until_it_ends_however_it_ends(home: Path) -> None:
    assert not has_clients(home)
    holder = started(HOLDER, str(home))
    assert line_of(holder) == "held"
    assert has_clients(home)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not has_clients(home)


def test_serving_takes_over_only_when_no_command_works_with_the_server(home: Path) -> None:
    holder = started(HOLDER, str(home))
    assert line_of(holder) == "held"
    said: list[str] = []
    entered = threading.Event()

    def serve() -> None:
        with taken_over(home, threading.Event(), said.append):
            entered.set()

    thread = threading.Thread(target=serve)
    thread.start()
    assert eventually(lambda: bool(said))
    assert not entered.is_set() and said == ["waiting for the commands that run flows in this home"]
    holder.communicate()
    assert entered.wait(ENDS_WITHIN_S)
    thread.join()


def test_a_command_that_comes_while_a_server_ends_waits_for_it(home: Path) -> None:
    lock = home / "prefect" / "clients.lock"
    lock.parent.mkdir()
    with lock.open("ab") as ending:
        fcntl.flock(ending, fcntl.LOCK_EX)
        holder = started(HOLDER, str(home))
        waiting = threading.Event()
        threading.Thread(target=lambda: (line_of(holder), waiting.set()), daemon=True).start()
        assert not waiting.wait(1.0)
    assert waiting.wait(ENDS_WITHIN_S)
    holder.communicate()


def test_a_server_that_does_not_answer_is_an_error_with_what_it_said_last(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_server_file(home, "http://127.0.0.1:9/api", os.getpid())
    log = home / "prefect" / "logs" / "command.log"
    log.parent.mkdir(parents=True)
    log.write_text("first\nno space left on device\n\n")
    monkeypatch.setattr(shared_server, "START_WAIT_S", 0.3)
    with pytest.raises(NoPrefectServer, match=r"does not answer .*no space left on device"):
        join(home, idle_s=0)
    (home / "server.json").unlink()


def test_without_a_server_there_is_nothing_to_stop(home: Path) -> None:
    with pytest.raises(NoPrefectServer, match="nothing to stop"):
        stop_serving(home)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends it")
def test_commands_that_start_at_once_make_one_server_which_goes_when_the_last_is_killed(home: Path) -> None:
    clients = [started(CLIENT, str(home), "0") for _ in range(5)]
    urls = {line_of(client) for client in clients}
    assert len(urls) == 1 and urls != {""}
    found = read_server_file(home)
    assert found and found.is_shared and found.url in urls
    family = [psutil.Process(found.pid), *psutil.Process(found.pid).children(recursive=True)]
    for client in clients:
        client.send_signal(signal.SIGKILL)
        client.wait()
    _, alive = psutil.wait_procs(family, timeout=ENDS_WITHIN_S)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]
    assert read_server_file(home) is None and not (home / "server.json").exists()


@pytest.mark.slow
def test_a_server_of_another_version_is_started_anew_and_stop_ends_it(home: Path) -> None:
    client = started(CLIENT, str(home), "60")
    line_of(client)
    first = read_server_file(home)
    assert first
    write_server_file(home, first.url, first.pid, is_shared=True, version="0.0.9 elsewhere")
    second = started(CLIENT, str(home), "60")
    assert line_of(second) == first.url, "somebody works with it"
    client.communicate()
    second.communicate()
    third = started(CLIENT, str(home), "60")
    line_of(third)
    found = read_server_file(home)
    assert found and found.pid != first.pid and not first.is_alive
    assert stop_serving(home) == found
    assert not found.is_alive and not (home / "server.json").exists()
    third.communicate()
