"""Worker processes: give orders to idle ones, collect answers, replace those that die."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import tasks
from tasks.errors import WhorlError
from tasks.jobs.params import PERIOD_US
from tasks.jobs.record.templates import MeasuredVertex, Order
from tasks.machine import UNLIMITED, ControlGroup
from tasks.record.processes import last_words, tree_cpu_s

STOP_S = 5.0
READ_BYTES = 65_536
MOST_UNREADY = 3  # workers one after the other that died before they were ready


class RecorderFailed(WhorlError):
    """The recorder's own processes cannot do their work."""


@dataclass
class Worker:
    """One worker process in its place; `order` is None while it is idle."""

    slot: str
    process: subprocess.Popen[bytes]
    orders: IO[bytes]
    answers: IO[bytes]
    is_ready: bool = False
    is_killed: bool = False
    order: Order | None = None
    given_at: float = 0.0
    heard: bytes = b""


@dataclass(frozen=True)
class OrderResult:
    """What became of an order. measured: by the worker, None if it died on it. Times as Unix seconds."""

    order: Order
    slot: str
    started_at: float
    ended_at: float
    measured: dict[str, Any] | None
    error: str = ""

    @property
    def vertex(self) -> MeasuredVertex | None:
        """What a vertex saw; None if its worker died on it."""
        return None if self.measured is None else MeasuredVertex(**self.measured)


def worker_command(folder: Path, *more: str) -> list[str]:
    """The command line of a worker that ends with this process."""
    return [sys.executable, "-m", "tasks.jobs.record.engine", str(os.getpid()), str(folder), *more]


def worker_environment() -> dict[str, str]:
    """This environment, with the folder of `tasks` first among the import paths."""
    root = str(Path(tasks.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


class WorkerPool:
    """One worker in each slot over one folder of data sets; a context manager that leaves none behind.

    slots: name -> the control group that holds the worker, or None."""

    def __init__(self, slots: Mapping[str, ControlGroup | None], folder: Path) -> None:
        self.slots, self.folder = slots, folder
        self.log_path = folder / "workers.log"
        self.workers: dict[str, Worker] = {}
        self._selector = selectors.DefaultSelector()
        self._n_unready, self._have_started = 0, False

    def __enter__(self) -> "WorkerPool":
        self.log_path.write_bytes(b"")
        try:
            for slot in self.slots:
                self._start(slot)
            while not all(worker.is_ready for worker in self.workers.values()):
                list(self.collect(STOP_S))
            self._have_started = True
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self.workers.values()):
            self._end(worker)
        self._selector.close()

    def _start(self, slot: str) -> None:
        group = self.slots[slot]
        if group is not None:
            group.set_quota(UNLIMITED, PERIOD_US)  # it connects first
        with self.log_path.open("ab") as log:
            process = subprocess.Popen(
                worker_command(self.folder, str(self.folder / "temp" / slot)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=worker_environment(),
            )
        if process.stdin is None or process.stdout is None:
            raise RecorderFailed("a worker was started without pipes")
        worker = Worker(slot, process, process.stdin, process.stdout)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        self.workers[slot] = worker
        if group is not None:
            with contextlib.suppress(ProcessLookupError):  # it died at once: collect tells
                group.add(process.pid)

    def _end(self, worker: Worker) -> int:
        """Kill the worker, and with it its vertex; returns how the process ended."""
        self._selector.unregister(worker.answers)
        del self.workers[worker.slot]
        with contextlib.suppress(ProcessLookupError):
            worker.process.kill()
        try:
            status = worker.process.wait(STOP_S)
        except subprocess.TimeoutExpired:  # it waits for a disk that does not answer; the others end all the same
            status = -signal.SIGKILL
        for pipe in (worker.orders, worker.answers):
            with contextlib.suppress(OSError):
                pipe.close()
        return status

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self.workers.values()]

    def cpu_s(self, slot: str) -> float:
        """CPU seconds that the worker of a slot has used."""
        return tree_cpu_s(self.workers[slot].process.pid)

    def is_idle(self, slot: str) -> bool:
        """Whether the worker of a slot could take an order now."""
        worker = self.workers[slot]
        return worker.is_ready and worker.order is None and not worker.is_killed

    def give(self, slot: str, order: Order) -> None:
        """Send an order to an idle worker; one that has just died is noticed by the next `collect`."""
        worker = self.workers[slot]
        worker.order, worker.given_at = order, time.time()
        with contextlib.suppress(BrokenPipeError):
            worker.orders.write(json.dumps(asdict(order)).encode() + b"\n")
            worker.orders.flush()

    def kill(self, slot: str) -> None:
        """End what the slot's worker is doing; the next `collect` answers for it and starts another worker."""
        worker = self.workers[slot]
        worker.is_killed = True
        with contextlib.suppress(ProcessLookupError):
            worker.process.kill()

    def collect(self, timeout_s: float) -> Iterator[OrderResult]:
        """Answers that arrive within the time; a worker's death is the answer to the order it had.

        Raises RecorderFailed if a worker dies before it was ready, which a new one would do as well.
        """
        for key, _ in self._selector.select(timeout_s):
            worker: Worker = key.data
            chunk = os.read(worker.answers.fileno(), READ_BYTES)
            yield from self._hear(worker, chunk) if chunk else self._bury(worker)

    def _hear(self, worker: Worker, chunk: bytes) -> Iterator[OrderResult]:
        *lines, worker.heard = (worker.heard + chunk).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            order, worker.order = worker.order, None
            if answer.get("ready"):
                worker.is_ready = True
            elif order is not None:
                yield OrderResult(order, worker.slot, answer["started_at"], answer["ended_at"], answer["measured"])

    def _bury(self, worker: Worker) -> Iterator[OrderResult]:
        status = self._end(worker)
        self._n_unready = 0 if worker.is_ready else self._n_unready + 1
        if self._n_unready > MOST_UNREADY or not (worker.is_ready or self._have_started):
            raise RecorderFailed(
                f"a worker ended with status {status} before it was ready: {last_words(self.log_path)}"
            )
        self._start(worker.slot)
        if worker.order is not None:
            error = f"worker process ended with status {status}"
            yield OrderResult(worker.order, worker.slot, worker.given_at, time.time(), None, error)


def build_data(folder: Path, scale: float, seed: int) -> None:
    """Write the data sets in a process of its own, so that the recorder never loads the engine."""
    folder.mkdir(parents=True, exist_ok=True)
    command = worker_command(folder, "--build", str(scale), str(seed))
    ended = subprocess.run(command, capture_output=True, text=True, env=worker_environment(), check=False)
    if ended.returncode:
        message = (ended.stderr.strip() or "no message").splitlines()[-1]
        raise RecorderFailed(f"{folder}: the data sets could not be written: {message}; check free space and rights")
