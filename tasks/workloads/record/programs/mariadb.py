"""MariaDB under sysbench's transactions that read and write."""

import subprocess

from tasks.workloads.record.programs import mariadb_server
from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import LOOPBACK, Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.service import LONGEST_S, Service, finish

SYSBENCH = Need(("sysbench",), "sysbench")
DATABASE = "sbtest"
TABLES, ROWS = 4, 25_000


class MariaDb(Service):
    """Four tables of 25,000 rows; what an input does not use lies still."""

    name = "mariadb"
    title = "MariaDB: transactions of sysbench oltp_read_write"
    kin = "postgresql"
    needs = (*mariadb_server.NEEDS, SYSBENCH)
    inputs = (
        Input(
            "paced",
            {"threads": 2, "rate": 60, "tables": 1},
            "2 connections, at most 60 transactions a second, one table of 25,000 rows",
        ),
        Input("full", {"threads": 8, "rate": 0, "tables": 4}, "8 connections as fast as they can, 4 tables"),
    )

    other_inputs = (
        Input("single", {"threads": 1, "rate": 0, "tables": 2}, "one connection as fast as it can, 2 tables"),
        Input("busy", {"threads": 4, "rate": 200, "tables": 4}, "4 connections, at most 200 transactions a second"),
    )

    def fill(self, place: Place) -> None:
        """Make the server's data directory and the tables."""
        mariadb_server.make_server(self.name, place)
        place.remember("port", mariadb_server.start_server(self.name, place))
        mariadb_server.make_database(self.name, place, DATABASE)
        finish(self.name, place, "sysbench", [*_sysbench(place, tables=TABLES), "prepare"])

    def start(self, place: Place) -> None:
        """Start the server."""
        place.remember("port", mariadb_server.start_server(self.name, place))

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start sysbench."""
        threads, rate = input.options["threads"], input.options["rate"]
        more = [f"--threads={threads}", f"--rate={rate}", f"--time={LONGEST_S}", "run"]
        return place.spawn([*_sysbench(place, tables=int(input.options["tables"])), *more], name="load")


def _sysbench(place: Place, *, tables: int) -> list[str]:
    server = [f"--mysql-host={LOOPBACK}", f"--mysql-port={place.recall('port')}", f"--mysql-db={DATABASE}"]
    user = [f"--mysql-user={mariadb_server.USER}", f"--mysql-password={mariadb_server.PASSWORD}"]
    size = [f"--tables={tables}", f"--table-size={ROWS}", f"--rand-seed={place.seed}"]
    return [SYSBENCH.path(), "oltp_read_write", "--db-driver=mysql", *server, *user, *size]
