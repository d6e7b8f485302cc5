"""PostgreSQL under pgbench."""

import signal
import subprocess

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import LOOPBACK, Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.service import LONGEST_S, Service, finish, wait_until_it_listens

SERVER = Need(("postgres",), "postgresql")
INITDB = Need(("initdb",), "postgresql")
PGBENCH = Need(("pgbench",), "postgresql")
SCALE = 8  # 800,000 accounts
USER = "whorl"


class PostgreSql(Service):
    """pgbench's tables of bank accounts at scale 8, about 120 MB."""

    name = "postgresql"
    title = "PostgreSQL: transactions of pgbench"
    kin = "mariadb"
    needs = (SERVER, INITDB, PGBENCH)
    inputs = (
        Input(
            "paced",
            {"clients": 2, "rate": 150, "reads": 0},
            "2 connections, 150 transactions a second that read and write",
        ),
        Input(
            "mixed",
            {"clients": 8, "rate": 0, "reads": 4},
            "8 connections as fast as they can, 4 transactions that only read for each that writes",
        ),
    )

    other_inputs = (
        Input("reads", {"clients": 4, "rate": 0, "reads": 50}, "4 connections, 50 reads for each that writes"),
        Input("writes", {"clients": 4, "rate": 0, "reads": 0}, "4 connections, each transaction writes"),
    )

    def fill(self, place: Place) -> None:
        """Make the server's data directory and the tables."""
        user = ["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8"]
        finish(self.name, place, "initdb", [INITDB.path(), "--pgdata", _data(place), "--no-sync", *user])
        self._serve(place)
        finish(
            self.name,
            place,
            "pgbench",
            [*_pgbench(place), "--initialize", "--quiet", "--scale", str(SCALE), "postgres"],
        )

    def start(self, place: Place) -> None:
        """Start the server."""
        self._serve(place)

    def _serve(self, place: Place) -> None:
        port = place.free_port()
        settings = {
            "listen_addresses": LOOPBACK,
            "port": port,
            "unix_socket_directories": place.folder,
            "shared_buffers": "64MB",
            "logging_collector": "off",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        # SIGINT: end the sessions and stop in good order, without waiting for the clients
        server = place.spawn([SERVER.path(), "-D", _data(place), *flags], name="postgres", first_signal=signal.SIGINT)
        wait_until_it_listens(self.name, place, "postgres", server, port)
        place.remember("port", port)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start pgbench."""
        rate = [f"--rate={input.options['rate']}"] if input.options["rate"] else []
        size = [f"--client={input.options['clients']}", "--jobs=1", f"--time={LONGEST_S}", "--no-vacuum"]
        scripts = ["--builtin=tpcb-like@1", f"--builtin=select-only@{input.options['reads']}"]
        seed = f"--random-seed={place.seed}"
        return place.spawn([*_pgbench(place), *size, *rate, *scripts, seed, "postgres"], name="load")


def _data(place: Place) -> str:
    return str(place.folder / "postgres")


def _pgbench(place: Place) -> list[str]:
    return [PGBENCH.path(), "-h", LOOPBACK, "-p", str(place.recall("port")), "-U", USER]
