"""The client of the workload `memcached`: a few batches are made once, and sent over and over."""

import json
import random
import socket
import sys
import time

BATCHES = 32
REQUESTS_A_BATCH = 50
FILL_CHUNK = 1_000
END, STORED = b"END\r\n", b"STORED\r\n"
Batch = tuple[bytes, int]  # what is sent, and how many bytes answer it


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


def make_batch(options: dict[str, float], rng: random.Random) -> Batch:
    """Requests that are sent together."""
    n_keys, value_bytes = int(options["keys"]), int(options["value_bytes"])
    requests: list[Batch] = []
    for _ in range(REQUESTS_A_BATCH):
        if rng.random() < options["set_share"]:
            requests.append((store_request(rng.randrange(n_keys), rng.randbytes(value_bytes)), len(STORED)))
        else:
            chosen = [rng.randrange(n_keys) for _ in range(int(options["keys_a_get"]))]
            requests.append(get_request(chosen, value_bytes))
    return b"".join(sent for sent, _ in requests), sum(answer for _, answer in requests)


def receive(connection: socket.socket, n_bytes: int, buffer: memoryview) -> None:
    """Read an answer of known length and throw it away."""
    while n_bytes > 0:
        got = connection.recv_into(buffer, min(n_bytes, len(buffer)))
        if got == 0:
            raise SystemExit("memcached closed the connection")
        n_bytes -= got


def main(options: dict[str, float]) -> None:
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
        asked = [rng.choice(batches) for _ in connections]
        for connection, (sent, _) in zip(connections, asked, strict=True):
            connection.sendall(sent)
        for connection, (_, answer) in zip(connections, asked, strict=True):
            receive(connection, answer, buffer)
        if options["pause_ms"]:
            time.sleep(options["pause_ms"] / 1000)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
