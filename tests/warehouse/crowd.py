"""Many readers beside a busy writer, each a process of its own. A program, run by tests; prints one JSON object.

    python crowd.py HOME N_READERS N_WRITERS SECONDS

A writer writes again and again without a pause, a reader asks again and again without a pause. The answer holds, for
readers and for writers, how often each of them was served, and every fault."""

import json
import os
import sys
import time
import traceback
from pathlib import Path

from tasks.warehouse.connection import reading, transaction, writing
from tasks.warehouse.place import Warehouse


def read(warehouse: Warehouse) -> None:
    """Two rows are written together: nobody may see one of them."""
    with reading(warehouse) as connection:
        n_rows, n_pairs = connection.execute("SELECT count(*), count(DISTINCT source) FROM ops.machines").fetchone()
        assert n_rows == 2 * n_pairs


def write(warehouse: Warehouse) -> None:
    with writing(warehouse) as connection, transaction(connection):
        connection.execute(
            "INSERT INTO ops.machines SELECT $id, unnest(['a', 'b']), 'big'", {"id": os.urandom(8).hex()}
        )


def keep_on(act, warehouse, seconds):
    """How often it was served, and its fault."""
    deadline, n = time.monotonic() + seconds, 0
    try:
        while time.monotonic() < deadline:
            act(warehouse)
            n += 1
    except BaseException:
        return {"n": n, "fault": traceback.format_exc()}
    return {"n": n, "fault": ""}


def start(act, warehouse, seconds):
    """A forked process that keeps on; returns its id and where its answer comes."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, json.dumps(keep_on(act, warehouse, seconds)).encode())
        os._exit(0)
    os.close(write_end)
    return child, read_end


def main(home: str, n_readers: str, n_writers: str, seconds: str) -> None:
    warehouse = Warehouse(home=Path(home), memory_mb=128, threads=1, lock_wait_s=60)
    acts = {"readers": (read, int(n_readers)), "writers": (write, int(n_writers))}
    started = {name: [start(act, warehouse, float(seconds)) for _ in range(n)] for name, (act, n) in acts.items()}
    found = {}
    for name, children in started.items():
        answers = []
        for child, pipe in children:
            with os.fdopen(pipe) as answer:
                answers.append(json.loads(answer.read()))
            os.waitpid(child, 0)
        found[name] = {
            "served": [one["n"] for one in answers],
            "faults": [one["fault"] for one in answers if one["fault"]],
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
