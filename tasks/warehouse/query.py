"""Questions in SQL from people: read-only for real, over the tables of the warehouse and nothing else.

DuckDB looks for no limit inside a function call: a question is answered by a process of its own (query_child.py), which
takes the lock itself. Killing it ends the call, gives back the memory and lets go of the lock."""

import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

import tasks
from tasks import errors
from tasks.errors import BadInput
from tasks.warehouse.place import Warehouse

CHILD = "tasks.warehouse.query_child"
MS = 1000


@dataclass(frozen=True)
class Answer:
    """The rows of a query. is_cut: there are more than were asked for."""

    rows: pa.Table
    is_cut: bool


def ask(warehouse: Warehouse, sql: str, *, limit: int | None = None, limit_s: float = 0) -> Answer:
    """Run one query on a connection that can neither write nor reach files, extensions or other databases.

    limit: rows to return at most. limit_s: seconds that it may take once it has the warehouse; 0: any time. Raises
    BadInput with one line for what is no query, takes longer, needs too much memory, or what DuckDB refuses."""
    question = {"warehouse": warehouse.model_dump(mode="json"), "sql": sql, "limit": limit}
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(question).encode())
        asked.seek(0)
        with _process(asked, said) as child:
            try:
                return _answer(child, said, limit_s)
            finally:
                child.kill()


def _process(asked: IO[bytes], said: IO[bytes]) -> "subprocess.Popen[bytes]":
    """The child, in this working folder, but with no import from there."""
    root = str(Path(tasks.__file__).parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", CHILD, str(os.getpid())]
    return subprocess.Popen(
        command, stdin=asked, stdout=subprocess.PIPE, stderr=said, env=os.environ | {"PYTHONPATH": path}, bufsize=0
    )  # no buffer: what it holds no poll sees


def _answer(child: "subprocess.Popen[bytes]", said: IO[bytes], limit_s: float) -> Answer:
    pipe = cast(io.RawIOBase, child.stdout)
    _next(child, pipe, said)  # it has the warehouse
    if not _is_readable(pipe, limit_s):
        raise _too_slow(limit_s)
    is_cut = _next(child, pipe, said)["is_cut"]
    try:
        return Answer(pa.ipc.open_stream(io.BufferedReader(pipe)).read_all(), is_cut)
    except (OSError, pa.ArrowException) as error:
        raise _ended(child, said) from error


def _next(child: "subprocess.Popen[bytes]", pipe: io.RawIOBase, said: IO[bytes]) -> dict[str, Any]:
    """What the child says next; an error that it met is raised here."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise _ended(child, said)
    told: dict[str, Any] = json.loads(line)
    if "error" in told:
        raise getattr(errors, told["error"])(*told["values"])
    return told


def _is_readable(pipe: io.RawIOBase, limit_s: float) -> bool:
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(limit_s * MS or None))


def _too_slow(limit_s: float) -> BadInput:
    problem = f"stopped after {limit_s:g} s, its time limit: whoever wants to write waits for it"
    fix = "ask for less, or allow more with --limit-s or whorl.query_limit_s (0: no limit)"
    return BadInput("query", problem, "an answer within that time", fix)


def _ended(child: "subprocess.Popen[bytes]", said: IO[bytes]) -> Exception:
    """Why the child ended before it had answered: a signal is the query's fault, a status one of ours."""
    status = child.wait()
    if status < 0:
        problem = f"its process was ended by {signal.Signals(-status).name}; often that means too little memory"
        return BadInput("query", problem, "a query that fits", "ask for less")
    said.seek(0)
    return RuntimeError(f"{CHILD} ended with status {status}\n{said.read().decode(errors='replace')}")
