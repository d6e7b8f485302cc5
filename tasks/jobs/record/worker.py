"""A worker process: takes one order a line on stdin, runs it in a child of its own, answers one line on stdout.

`python -m tasks.jobs.record.worker PARENT_PID FOLDER` serves orders; with `--build SCALE SEED` it writes the data
sets and ends. The engine is imported once and never started here, so that each child is a fresh engine for little.
"""

import json
import os
import resource
import selectors
import shutil
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from tasks.jobs.record import engine
from tasks.jobs.record.lifeline import die_with_parent
from tasks.jobs.record.orders import Order

BYTES_PER_KIB = 1024
BLOCK_BYTES = 512  # ru_inblock counts these


def _own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _child(order: Order, folder: Path, temp: Path, parent_pid: int, answer: int) -> None:
    """Run the order and write what it measured into `answer`; never returns."""
    try:
        die_with_parent(parent_pid)
        connection = engine.connect(order, temp)
        cpu_before_s, started_at = _own_cpu_s(), time.time()
        os.write(answer, f"{started_at!r}\n".encode())
        measured = engine.run_query(connection, order, folder, temp)
        told = {"cpu_s": _own_cpu_s() - cpu_before_s, "measured": asdict(measured)}
        os.write(answer, json.dumps(told).encode())
    finally:
        os._exit(0)


def _read_until(answer: int, limit_s: float) -> tuple[bytes, bool]:
    """Everything the child writes until it closes its end, and whether that took longer than the limit."""
    told, deadline = b"", time.monotonic() + limit_s
    with selectors.DefaultSelector() as selector:
        selector.register(answer, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if selector.select(left):
                chunk = os.read(answer, 65_536)
                if not chunk:
                    return told, False
                told += chunk
    return told, True


def _outcome(told: bytes, is_late: bool, status: int, usage: resource.struct_rusage) -> dict[str, Any]:
    start_line, _, result = told.partition(b"\n")
    outcome: dict[str, Any] = {
        "status": "completed",
        "started_at": float(start_line) if start_line else None,
        "ended_at": time.time(),
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_memory_bytes": usage.ru_maxrss * BYTES_PER_KIB,
        "disk_read_bytes": usage.ru_inblock * BLOCK_BYTES,
    }
    if is_late:
        return outcome | {"status": "timeout", "error": "killed at its time limit"}
    if os.WIFSIGNALED(status) or not result:
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "no answer"
        return outcome | {"status": "failed", "error": f"job process ended: {how}"}
    outcome |= json.loads(result)
    error = outcome["measured"]["error"]
    return outcome | ({"status": "failed", "error": error} if error else {})


def run_order(order: Order, folder: Path) -> dict[str, Any]:
    """Run one order in a child process, kill it at its time limit, and say how it went.

    Returns status (completed, failed, timeout), started_at and ended_at (Unix seconds; started_at is None for a
    job that never began), cpu_s, peak_memory_bytes, disk_read_bytes, error, and what the job itself measured.
    """
    temp = folder / "temp" / order.run_id
    temp.mkdir(parents=True, exist_ok=True)
    if order.is_cold:
        engine.drop_from_cache(engine.input_files(order, folder))
    parent_pid = os.getpid()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _child(order, folder, temp, parent_pid, write_end)
    os.close(write_end)
    told, is_late = _read_until(read_end, order.time_limit_s)
    os.close(read_end)
    if is_late:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    shutil.rmtree(temp, ignore_errors=True)
    return _outcome(told, is_late, status, usage)


def read_order(line: bytes) -> Order:
    """The order that a line of JSON holds; lists become tuples again."""
    fields: dict[str, Any] = json.loads(line)
    fields = {key: tuple(item) if isinstance(item, list) else item for key, item in fields.items()}
    return Order(**fields)


def serve(orders: BinaryIO, answers: BinaryIO, folder: Path) -> None:
    """Answer every order until stdin ends. The first answer says that the worker is ready."""
    answers.write(b'{"ready": true}\n')
    answers.flush()
    for line in iter(orders.readline, b""):
        order = read_order(line)
        answers.write(json.dumps(run_order(order, folder) | {"run_id": order.run_id}).encode() + b"\n")
        answers.flush()


def main(arguments: list[str]) -> None:
    """Entry point; see the module's text."""
    parent_pid, folder = int(arguments[0]), Path(arguments[1])
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C goes to everyone: the recorder decides
    if "--build" in arguments:
        scale, seed = arguments[arguments.index("--build") + 1 :]
        engine.build_data(folder, float(scale), int(seed))
    else:
        serve(sys.stdin.buffer, sys.stdout.buffer, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
