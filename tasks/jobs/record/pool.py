"""The pool of workers: gives orders to idle ones, collects answers, replaces those that die."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import tasks
from tasks.errors import WhorlError
from tasks.jobs.record.orders import Order

STOP_S = 5.0
LOG_TAIL = 300
READ_BYTES = 65_536


class RecorderFailed(WhorlError):
    """The recorder's own processes cannot do their work."""


@dataclass
class Worker:
    """One worker process with its pipes and what it is doing; `order` is None while it is idle."""

    process: subprocess.Popen[bytes]
    orders: IO[bytes]
    answers: IO[bytes]
    is_ready: bool = False
    order: Order | None = None
    given_at: float = 0.0
    heard: bytes = b""


def worker_command(folder: Path, *more: str) -> list[str]:
    """The command line of a worker that ends with this process."""
    return [sys.executable, "-m", "tasks.jobs.record.worker", str(os.getpid()), str(folder), *more]


def worker_environment() -> dict[str, str]:
    """This environment, with the folder of `tasks` first among the import paths."""
    root = str(Path(tasks.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


class WorkerPool:
    """`size` worker processes over one folder of data sets; a context manager that leaves none behind."""

    def __init__(self, size: int, folder: Path) -> None:
        self.folder, self.size = folder, size
        self.log_path = folder / "workers.log"
        self.workers: list[Worker] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> "WorkerPool":
        self.log_path.write_bytes(b"")
        for _ in range(self.size):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self.workers):
            self._end(worker)
        self._selector.close()

    def _start(self) -> None:
        with self.log_path.open("ab") as log:
            process = subprocess.Popen(
                worker_command(self.folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=worker_environment(),
            )
        if process.stdin is None or process.stdout is None:
            raise RecorderFailed("a worker was started without pipes")
        worker = Worker(process, process.stdin, process.stdout)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        self.workers.append(worker)

    def _end(self, worker: Worker) -> int:
        """Kill the worker, and with it its job; returns how the process ended."""
        self._selector.unregister(worker.answers)
        self.workers.remove(worker)
        with contextlib.suppress(ProcessLookupError):
            worker.process.kill()
        status = worker.process.wait(STOP_S)
        for pipe in (worker.orders, worker.answers):
            with contextlib.suppress(OSError):
                pipe.close()
        return status

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self.workers]

    def idle(self) -> Worker | None:
        """A worker that could take an order now."""
        return next((worker for worker in self.workers if worker.is_ready and worker.order is None), None)

    def running(self) -> list[Order]:
        """The orders that are being worked on."""
        return [worker.order for worker in self.workers if worker.order is not None]

    def give(self, worker: Worker, order: Order) -> None:
        """Send an order to an idle worker; a worker that has just died is noticed by the next `collect`."""
        worker.order, worker.given_at = order, time.time()
        with contextlib.suppress(BrokenPipeError):
            worker.orders.write(json.dumps(asdict(order)).encode() + b"\n")
            worker.orders.flush()

    def collect(self, timeout_s: float) -> Iterator[dict[str, Any]]:
        """Answers that arrive within the time; a worker's death is the answer `failed` for the job it had.

        Raises RecorderFailed if a worker dies before it was ready, which a new one would do as well.
        """
        for key, _ in self._selector.select(timeout_s):
            worker: Worker = key.data
            chunk = os.read(worker.answers.fileno(), READ_BYTES)
            if chunk:
                yield from self._hear(worker, chunk)
            else:
                yield from self._bury(worker)

    def _hear(self, worker: Worker, chunk: bytes) -> Iterator[dict[str, Any]]:
        *lines, worker.heard = (worker.heard + chunk).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            if answer.pop("ready", False):
                worker.is_ready = True
            else:
                worker.order = None
                yield answer

    def _bury(self, worker: Worker) -> Iterator[dict[str, Any]]:
        status = self._end(worker)
        if not worker.is_ready:
            told = self.log_path.read_text(errors="replace").strip()[-LOG_TAIL:].splitlines()
            raise RecorderFailed(f"a worker ended with status {status} before it was ready: {(told or ['?'])[-1]}")
        self._start()
        if worker.order is not None:
            yield {
                "run_id": worker.order.run_id,
                "status": "failed",
                "error": f"worker process ended with status {status}",
                "started_at": worker.given_at,
                "ended_at": time.time(),
            }


def build_data(folder: Path, scale: float, seed: int) -> None:
    """Write the data sets in a process of its own, so that the recorder never loads the engine."""
    folder.mkdir(parents=True, exist_ok=True)
    command = worker_command(folder, "--build", str(scale), str(seed))
    ended = subprocess.run(command, capture_output=True, text=True, env=worker_environment(), check=False)
    if ended.returncode:
        told = (ended.stderr.strip() or "no message").splitlines()[-1]
        raise RecorderFailed(f"{folder}: the data sets could not be written: {told}; check free space and rights")
