"""Loads of our own: each runs as a process until it is killed, told its name and its options on the command line.

What one of them needs is imported by it alone: the others are recorded without it."""

from __future__ import annotations

import json
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

    Vector = NDArray[np.float64]
Options = dict[str, Any]
LEAPFROG_STEPS, HMC_STEP = 12, 0.004
WALK_STEP = 0.01
CLASSES = 10
POOL = 64  # pictures that are at hand
BATCHES = 32
REQUESTS_A_BATCH = 50
FILL_CHUNK = 1_000
END, STORED = b"END\r\n", b"STORED\r\n"
Batch = tuple[bytes, int]  # what is sent, and how many bytes answer it
CHUNK = 20_000
CUSTOMERS = 2_000
REPORTS = (
    "SELECT customer, count(*), sum(amount), avg(amount) FROM orders GROUP BY customer ORDER BY 3 DESC LIMIT 20",
    "SELECT a.customer, max(a.amount - b.amount) FROM orders a JOIN orders b ON b.id = a.id + 7 GROUP BY a.customer",
    "SELECT amount / 100, count(DISTINCT customer) FROM orders WHERE text LIKE '%7%' GROUP BY 1",
)


def hierarchy(groups: int, rows: int, rng: np.random.Generator) -> Callable[[Vector], tuple[float, Vector]]:
    """A hierarchical normal model: log posterior and gradient of (group effects, overall mean, log spread)."""
    import numpy as np

    group = rng.integers(0, groups, rows)
    seen = rng.normal(2.0, 1.0, groups)[group] + rng.normal(0.0, 1.0, rows)

    def posterior(at: Vector) -> tuple[float, Vector]:
        effects, mean, log_spread = at[:groups], at[groups], at[groups + 1]
        spread = np.exp(log_spread)
        misses = seen - effects[group]  # (rows,)
        apart = (effects - mean) / spread  # (groups,)
        log_density = -0.5 * (misses @ misses + apart @ apart + mean**2 + log_spread**2) - groups * log_spread
        slope = np.empty_like(at)
        slope[:groups] = np.bincount(group, misses, groups) - apart / spread
        slope[groups] = apart.sum() / spread - mean
        slope[groups + 1] = apart @ apart - groups - log_spread
        return float(log_density), slope

    return posterior


def hamiltonian(options: Options, rng: np.random.Generator) -> None:
    """One chain of Hamiltonian Monte Carlo."""
    import numpy as np

    groups = int(options["groups"])
    posterior = hierarchy(groups, int(options["rows"]), rng)
    at = np.zeros(groups + 2)
    log_density, slope = posterior(at)
    while True:
        momentum = rng.normal(size=at.size)
        energy = log_density - 0.5 * momentum @ momentum
        to, to_density, to_slope = at, log_density, slope
        for _ in range(LEAPFROG_STEPS):
            momentum = momentum + 0.5 * HMC_STEP * to_slope
            to = to + HMC_STEP * momentum
            to_density, to_slope = posterior(to)
            momentum = momentum + 0.5 * HMC_STEP * to_slope
        if np.log(rng.random()) < to_density - 0.5 * momentum @ momentum - energy:
            at, log_density, slope = to, to_density, to_slope


def metropolis(options: Options, rng: np.random.Generator) -> None:
    """One chain of random-walk Metropolis on a logistic regression."""
    import numpy as np

    rows, columns = int(options["rows"]), int(options["columns"])
    design = rng.normal(size=(rows, columns))
    seen = rng.random(rows) < 1 / (1 + np.exp(-design @ rng.normal(size=columns)))
    sign = np.where(seen, -1.0, 1.0)
    at, log_density = np.zeros(columns), -np.inf
    while True:
        to = at + WALK_STEP * rng.normal(size=columns)
        to_density = float(-np.logaddexp(0.0, sign * (design @ to)).sum() - 0.5 * to @ to)
        if np.log(rng.random()) < to_density - log_density:
            at, log_density = to, to_density


def bayes(options: Options) -> None:
    """Run the chains side by side until killed."""
    import numpy as np

    chain = hamiltonian if options["model"] == "hierarchy" else metropolis
    seeds = np.random.SeedSequence(int(options["seed"])).spawn(int(options["chains"]))
    chains = [threading.Thread(target=chain, args=(options, np.random.default_rng(seed))) for seed in seeds]
    for thread in chains:
        thread.start()
    for thread in chains:
        thread.join()


def network(channels: int, blocks: int) -> nn.Module:
    """A small network over colour pictures: each block has two convolutions, then half the size and twice the width."""
    from torch import nn

    layers: list[nn.Module] = []
    inside = 3
    for block in range(blocks):
        out = channels * 2**block
        for width in (inside, out):
            layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
        inside = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, CLASSES)).eval()


def cnn(options: Options) -> None:
    """Infer batch after batch, at most `rate` a second where that is not 0."""
    import torch

    torch.manual_seed(int(options["seed"]))
    torch.set_num_threads(int(options["threads"]))
    model = network(int(options["channels"]), int(options["blocks"]))
    batch, side, rate = int(options["batch"]), int(options["side"]), options["rate"]
    pictures = torch.rand(POOL, 3, side, side)
    due = time.monotonic()
    with torch.inference_mode():
        while True:
            model(pictures[torch.randint(POOL, (batch,))]).argmax(1)
            if rate:
                due = max(due + 1 / rate, time.monotonic() - 1)
                time.sleep(max(due - time.monotonic(), 0.0))


def key_of(number: int) -> str:
    """The key of a number: all are of one length, so that answers are."""
    return f"key:{number:010d}"


def store_request(number: int, value: bytes) -> bytes:
    """The request that stores a value."""
    return b"set %s 0 0 %d\r\n%s\r\n" % (key_of(number).encode(), len(value), value)


def get_request(numbers: list[int], value_bytes: int) -> Batch:
    """The request for several keys, and the length of its answer: every key is there."""
    keys = [key_of(number) for number in numbers]
    answer = sum(len(f"VALUE {key} 0 {value_bytes}\r\n") + value_bytes + len("\r\n") for key in keys)
    return f"get {' '.join(keys)}\r\n".encode(), answer + len(END)


def make_batch(options: Options, rng: random.Random) -> Batch:
    """Requests that are sent together."""
    n_keys, value_bytes = int(options["keys"]), int(options["value_bytes"])
    requests: list[Batch] = []
    for _ in range(REQUESTS_A_BATCH):
        if rng.random() < options["set_share"]:
            requests.append((store_request(rng.randrange(n_keys), rng.randbytes(value_bytes)), len(STORED)))
        else:
            keys = [rng.randrange(n_keys) for _ in range(int(options["keys_a_get"]))]
            requests.append(get_request(keys, value_bytes))
    return b"".join(sent for sent, _ in requests), sum(answer for _, answer in requests)


def receive(connection: socket.socket, n_bytes: int, buffer: memoryview) -> None:
    """Read an answer of known length and throw it away."""
    while n_bytes > 0:
        got = connection.recv_into(buffer, min(n_bytes, len(buffer)))
        if got == 0:
            raise SystemExit("memcached closed the connection")
        n_bytes -= got


def memcached(options: Options) -> None:
    """Fill the store, then ask until killed."""
    rng = random.Random(options["seed"])
    address = ("127.0.0.1", int(options["port"]))
    connections = [socket.create_connection(address) for _ in range(int(options["connections"]))]
    buffer = memoryview(bytearray(1 << 20))
    value_bytes = int(options["value_bytes"])
    for first in range(0, int(options["keys"]), FILL_CHUNK):
        connection = connections[first // FILL_CHUNK % len(connections)]
        numbers = range(first, min(first + FILL_CHUNK, int(options["keys"])))
        connection.sendall(b"".join(store_request(number, rng.randbytes(value_bytes)) for number in numbers))
        receive(connection, len(STORED) * len(numbers), buffer)
    batches = [make_batch(options, rng) for _ in range(BATCHES)]
    while True:
        requests = [rng.choice(batches) for _ in connections]
        for connection, (sent, _) in zip(connections, requests, strict=True):
            connection.sendall(sent)
        for connection, (_, answer) in zip(connections, requests, strict=True):
            receive(connection, answer, buffer)
        if options["pause_ms"]:
            time.sleep(options["pause_ms"] / 1000)


def sqlite(options: Options) -> None:
    """Fill the table, then write or ask for ever."""
    import sqlite3

    dice = random.Random(options["seed"])
    database = sqlite3.connect("orders.sqlite", isolation_level=None)
    database.execute("DROP TABLE IF EXISTS orders")
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, text TEXT)")
    for _ in range(0, int(options["rows"]), CHUNK):
        database.execute("BEGIN")
        database.executemany("INSERT INTO orders (customer, amount, text) VALUES (?, ?, ?)", rows(dice, CHUNK))
        database.execute("COMMIT")
    while True:
        if options["mode"] == "reports":
            database.execute(dice.choice(REPORTS)).fetchall()
            continue
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO orders (customer, amount, text) VALUES (?, ?, ?)", rows(dice, 3))
        database.execute("UPDATE orders SET amount = amount + 1 WHERE id = ?", (dice.randrange(int(options["rows"])),))
        database.execute("COMMIT")


def rows(dice: random.Random, n_rows: int) -> list[tuple[int, int, str]]:
    """Orders of random customers."""
    return [(dice.randrange(CUSTOMERS), dice.randrange(10_000), f"{dice.random():.9f}" * 4) for _ in range(n_rows)]


def matrices(options: Options) -> None:
    """Compute for ever."""
    import numpy as np

    dice = np.random.default_rng(int(options["seed"]))
    size = int(options["size"])
    matrix = dice.normal(size=(size, size))
    while True:
        if options["mode"] == "products":
            matrix = matrix @ dice.normal(size=(size, size))
            matrix /= np.abs(matrix).max()
        else:
            np.linalg.svd(matrix + dice.normal(size=(size, size)))


if __name__ == "__main__":
    {"bayes": bayes, "cnn": cnn, "memcached": memcached, "sqlite": sqlite, "matrices": matrices}[sys.argv[1]](
        json.loads(sys.argv[2])
    )
