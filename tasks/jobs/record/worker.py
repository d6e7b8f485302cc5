"""A worker process: takes one order a line on stdin, runs it in its engine, answers one line on stdout.

`python -m tasks.jobs.record.worker PARENT_PID FOLDER TEMP` serves orders; with `--build SCALE SEED` in the place of
TEMP it writes the data sets and ends. The engine is started once, before any quota is set: under one token that
alone would take a third of a second.
"""

import json
import shutil
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from tasks.jobs.record import engine
from tasks.jobs.record.orders import Order
from tasks.lifeline import die_with_parent


def read_order(line: bytes) -> Order:
    """The order that a line of JSON holds; lists become tuples again."""
    fields: dict[str, Any] = json.loads(line)
    fields = {key: tuple(item) if isinstance(item, list) else item for key, item in fields.items()}
    return Order(**fields)


def serve(orders: BinaryIO, answers: BinaryIO, folder: Path, temp: Path) -> None:
    """Answer every order until stdin ends. The first answer says that the worker is ready."""
    connection = engine.connect(temp)

    def tell(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    tell({"ready": True})
    for line in iter(orders.readline, b""):
        order, started_at = read_order(line), time.time()
        run = engine.explain if order.is_explain else engine.run_vertex
        told = asdict(run(connection, order, folder))
        tell({"vertex_id": order.vertex_id, "started_at": started_at, "ended_at": time.time(), "told": told})


def main(arguments: list[str]) -> None:
    """Entry point; see the module's text."""
    parent_pid, folder, what = int(arguments[0]), Path(arguments[1]), arguments[2]
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C goes to everyone: the recorder decides
    if what == "--build":
        engine.build_data(folder, float(arguments[3]), int(arguments[4]))
        return
    temp = Path(what)
    shutil.rmtree(temp, ignore_errors=True)
    serve(sys.stdin.buffer, sys.stdout.buffer, folder, temp)


if __name__ == "__main__":
    main(sys.argv[1:])
