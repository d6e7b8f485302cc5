"""Redis under redis-benchmark."""

import signal
import subprocess

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import LOOPBACK, Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.service import Service, wait_until_it_listens

SERVER = Need(("redis-server",), "redis-server")
CLIENT = Need(("redis-benchmark",), "redis-tools")


class Redis(Service):
    """The server keeps all in memory; redis-benchmark repeats its tests until it is killed. It takes no seed."""

    name = "redis"
    title = "Redis: an in-memory key-value store under redis-benchmark"
    kin = "nginx"
    needs = (SERVER, CLIENT)
    inputs = (
        Input(
            "single",
            {"clients": 1, "pipeline": 1, "value_bytes": 64, "keys": 100_000, "requests": 40_000, "tests": "set,get"},
            "one connection, one request at a time, values of 64 B, sets and gets by turns",
        ),
        Input(
            "pipelined",
            {
                "clients": 20,
                "pipeline": 16,
                "value_bytes": 2048,
                "keys": 20_000,
                "requests": 400_000,
                "tests": "set,get,incr,sadd,hset",
            },
            "20 connections, 16 requests at a time, values of 2 KiB, five kinds of command by turns",
        ),
    )

    other_inputs = (
        Input(
            "lists",
            {
                "clients": 4,
                "pipeline": 1,
                "value_bytes": 1024,
                "keys": 50_000,
                "requests": 40_000,
                "tests": "lpush,rpop,lrange_100",
            },
            "4 connections, one request at a time, values of 1 KiB, lists",
        ),
        Input(
            "crowd",
            {
                "clients": 50,
                "pipeline": 1,
                "value_bytes": 256,
                "keys": 200_000,
                "requests": 100_000,
                "tests": "get,zadd",
            },
            "50 connections, one request at a time, values of 256 B, gets and sorted sets",
        ),
    )

    def start(self, place: Place) -> None:
        """Start an empty server."""
        port = place.free_port()
        command = [SERVER.path(), "--bind", LOOPBACK, "--port", str(port), "--dir", str(place.folder)]
        server = place.spawn(
            [*command, "--save", "", "--appendonly", "no", "--maxmemory", "1gb"],
            name="redis-server",
            first_signal=signal.SIGTERM,
        )
        wait_until_it_listens(self.name, place, "redis-server", server, port)
        place.remember("port", port)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start redis-benchmark, in a loop."""
        options = {
            "-p": place.recall("port"),
            "-c": input.options["clients"],
            "-P": input.options["pipeline"],
            "-d": input.options["value_bytes"],
            "-r": input.options["keys"],
            "-n": input.options["requests"],
            "-t": input.options["tests"],
        }
        flags = [str(part) for option in options.items() for part in option]
        return place.spawn([CLIENT.path(), "-h", LOOPBACK, "-l", "--csv", *flags], name="load")
