"""memcached under a client of our own, which costs less than the server: its requests are made beforehand."""

import subprocess

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import LOOPBACK, Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.python_load import spawn_python
from tasks.workloads.record.programs.service import Service, wait_until_it_listens

SERVER = Need(("memcached",), "memcached")
MEMORY_MB = 512  # all keys fit: nothing is evicted


class Memcached(Service):
    """memcached with two threads; the client reads several keys with one request, as web applications do."""

    name = "memcached"
    title = "memcached: pipelined gets and sets over loopback"
    kin = "redis"
    needs = (SERVER,)
    inputs = (
        Input(
            "reads",
            {"keys": 100_000, "value_bytes": 100, "set_share": 0.05, "keys_a_get": 20, "connections": 4, "pause_ms": 0},
            "4 connections without a pause, 95 % gets of 20 keys each, values of 100 B",
        ),
        Input(
            "writes",
            {"keys": 10_000, "value_bytes": 4000, "set_share": 0.5, "keys_a_get": 2, "connections": 2, "pause_ms": 3},
            "2 connections that pause 3 ms after each batch, half sets, values of 4 kB",
        ),
    )

    other_inputs = (
        Input(
            "mixed",
            {"keys": 50_000, "value_bytes": 1000, "set_share": 0.2, "keys_a_get": 5, "connections": 4, "pause_ms": 1},
            "4 connections that pause 1 ms, a fifth sets, values of 1 kB",
        ),
        Input(
            "large",
            {"keys": 2_000, "value_bytes": 20_000, "set_share": 0.1, "keys_a_get": 1, "connections": 8, "pause_ms": 5},
            "8 connections that pause 5 ms, a tenth sets, values of 20 kB",
        ),
    )

    def start(self, place: Place) -> None:
        """Start an empty server."""
        port = place.free_port()
        command = [SERVER.path(), "-l", LOOPBACK, "-p", str(port), "-U", "0", "-m", str(MEMORY_MB), "-t", "2"]
        server = place.spawn(command, name="memcached")
        wait_until_it_listens(self.name, place, "memcached", server, port)
        place.remember("port", port)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the client: it fills the store, then asks."""
        return spawn_python(place, "memcached_load", {"port": place.recall("port"), **input.options})
