"""Databases and stores: Redis, memcached, MariaDB and PostgreSQL, each with the client that loads it."""

import signal
import subprocess

from tasks.workloads.record.programs.place import LOOPBACK, Place
from tasks.workloads.record.programs.program import LONGEST_S, Input, Need, Program, inputs_of, spawn_python

REDIS, REDIS_CLIENT = Need(("redis-server",), "redis-server"), Need(("redis-benchmark",), "redis-tools")
MEMCACHED, MEMCACHED_MB = Need(("memcached",), "memcached"), 512  # all keys fit: nothing is evicted
MARIADB = Need(("mariadbd", "mysqld"), "mariadb-server")
MARIADB_INSTALL = Need(("mariadb-install-db", "mysql_install_db"), "mariadb-server")
MARIADB_CLIENT = Need(("mariadb", "mysql"), "mariadb-client")
SYSBENCH, DATABASE, TABLES, ROWS = Need(("sysbench",), "sysbench"), "sbtest", 4, 25_000
POSTGRES, INITDB, PGBENCH = (Need((name,), "postgresql") for name in ("postgres", "initdb", "pgbench"))
SCALE = 8  # 800,000 accounts
USER = "whorl"  # also the password, of servers that only this machine reaches, and that are gone after the round
BUFFERS_MB = 64


class Redis(Program):
    """The server keeps all in memory; redis-benchmark repeats its tests until it is killed. It takes no seed."""

    name = "redis"
    title = "Redis: an in-memory key-value store under redis-benchmark"
    kin = "nginx"
    needs = (REDIS, REDIS_CLIENT)
    inputs = inputs_of(
        "clients pipeline value_bytes keys requests tests",
        ("single", 1, 1, 64, 100_000, 40_000, "set,get", "1 connection, 64 B, sets and gets by turns"),
        (
            "pipelined",
            20,
            16,
            2_048,
            20_000,
            400_000,
            "set,get,incr,sadd,hset",
            "20 connections, 16 at a time, 2 KiB, five commands",
        ),
    )
    other_inputs = inputs_of(
        "clients pipeline value_bytes keys requests tests",
        ("lists", 4, 1, 1_024, 50_000, 40_000, "lpush,rpop,lrange_100", "4 connections, 1 KiB, lists"),
        ("crowd", 50, 1, 256, 200_000, 100_000, "get,zadd", "50 connections, 256 B, gets and sorted sets"),
    )

    def start(self, place: Place) -> None:
        """Start an empty server."""
        port = place.free_port()
        where = ["--bind", LOOPBACK, "--port", str(port), "--dir", str(place.folder)]
        kept = ["--save", "", "--appendonly", "no", "--maxmemory", "1gb"]
        self.serve(place, "redis-server", [REDIS.path(), *where, *kept], port, signal.SIGTERM)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start redis-benchmark, in a loop."""
        names = {
            "-c": "clients", "-P": "pipeline", "-d": "value_bytes", "-r": "keys", "-n": "requests", "-t": "tests"
        }  # fmt: skip
        flags = [str(part) for flag, name in names.items() for part in (flag, input.options[name])]
        where = ["-h", LOOPBACK, "-p", str(place.facts["port"])]
        return place.spawn([REDIS_CLIENT.path(), *where, "-l", "--csv", *flags], name="load")


class Memcached(Program):
    """Two threads; the client of our own reads several keys with one request, as web applications do."""

    name = "memcached"
    title = "memcached: pipelined gets and sets over loopback"
    kin = "redis"
    needs = (MEMCACHED,)
    inputs = inputs_of(
        "keys value_bytes set_share keys_a_get connections pause_ms",
        ("reads", 100_000, 100, 0.05, 20, 4, 0, "4 connections without a pause, 95 % gets of 20 keys, 100 B"),
        ("writes", 10_000, 4_000, 0.5, 2, 2, 3, "2 connections that pause 3 ms, half sets, 4 kB"),
    )
    other_inputs = inputs_of(
        "keys value_bytes set_share keys_a_get connections pause_ms",
        ("mixed", 50_000, 1_000, 0.2, 5, 4, 1, "4 connections that pause 1 ms, a fifth sets, 1 kB"),
        ("large", 2_000, 20_000, 0.1, 1, 8, 5, "8 connections that pause 5 ms, a tenth sets, 20 kB"),
    )

    def start(self, place: Place) -> None:
        """Start an empty server."""
        port = place.free_port()
        flags = ["-l", LOOPBACK, "-p", str(port), "-U", "0", "-m", str(MEMCACHED_MB), "-t", "2"]
        self.serve(place, "memcached", [MEMCACHED.path(), *flags], port)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the client: it fills the store, then asks."""
        return spawn_python(place, "memcached", {"port": place.facts["port"], **input.options})


class MariaDbServer(Program):
    """What a workload over a MariaDB server of its own can do: make it, start it, fill it."""

    mariadb_needs = (MARIADB, MARIADB_INSTALL, MARIADB_CLIENT)

    def make_mariadb(self, place: Place, database: str) -> None:
        """Lay out the data, start the server, and make an empty database with a user that may do all in it."""
        root = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        data = f"--datadir={place.folder}/mariadb"
        self.finish(place, "mariadb-install", [MARIADB_INSTALL.path(), "--no-defaults", data, *root])
        self.start_mariadb(place)
        users = [f"'{USER}'@'{host}'" for host in ("%", "localhost")]
        sql = f"CREATE DATABASE {database}; " + "; ".join(
            f"CREATE USER {user} IDENTIFIED BY '{USER}'; GRANT ALL ON {database}.* TO {user}" for user in users
        )
        socket = f"--socket={place.folder}/mariadb.sock"
        self.finish(place, "mariadb", [MARIADB_CLIENT.path(), "--no-defaults", socket, "--user=root", "--execute", sql])

    def start_mariadb(self, place: Place) -> None:
        """Start the server and wait until it listens."""
        port = place.free_port()
        command = [
            MARIADB.path(),
            "--no-defaults",
            f"--datadir={place.folder}/mariadb",
            f"--socket={place.folder}/mariadb.sock",
            f"--pid-file={place.folder}/mariadb.pid",
            f"--tmpdir={place.folder}",
            f"--bind-address={LOOPBACK}",
            f"--port={port}",
            f"--innodb-buffer-pool-size={BUFFERS_MB}M",
            "--skip-name-resolve",
        ]
        self.serve(place, "mariadbd", command, port, signal.SIGTERM)


class MariaDb(MariaDbServer):
    """Four tables of 25,000 rows; what an input does not use lies still."""

    name = "mariadb"
    title = "MariaDB: transactions of sysbench oltp_read_write"
    kin = "postgresql"
    needs = (*MariaDbServer.mariadb_needs, SYSBENCH)
    inputs = inputs_of(
        "threads rate tables",
        ("paced", 2, 60, 1, "2 connections, at most 60 transactions a second, one table"),
        ("full", 8, 0, 4, "8 connections as fast as they can, 4 tables"),
    )
    other_inputs = inputs_of(
        "threads rate tables",
        ("single", 1, 0, 2, "one connection as fast as it can, 2 tables"),
        ("busy", 4, 200, 4, "4 connections, at most 200 transactions a second"),
    )

    def fill(self, place: Place) -> None:
        """Make the server's data directory and the tables."""
        self.make_mariadb(place, DATABASE)
        self.finish(place, "sysbench", [*_sysbench(place, TABLES), "prepare"])

    def start(self, place: Place) -> None:
        """Start the server."""
        self.start_mariadb(place)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start sysbench."""
        paced = [f"--threads={input.options['threads']}", f"--rate={input.options['rate']}", f"--time={LONGEST_S}"]
        return place.spawn([*_sysbench(place, int(input.options["tables"])), *paced, "run"], name="load")


def _sysbench(place: Place, tables: int) -> list[str]:
    server = [f"--mysql-host={LOOPBACK}", f"--mysql-port={place.facts['port']}", f"--mysql-db={DATABASE}"]
    user = [f"--mysql-user={USER}", f"--mysql-password={USER}"]
    size = [f"--tables={tables}", f"--table-size={ROWS}", f"--rand-seed={place.seed}"]
    return [SYSBENCH.path(), "oltp_read_write", "--db-driver=mysql", *server, *user, *size]


class PostgreSql(Program):
    """pgbench's tables of bank accounts at scale 8, about 120 MB."""

    name = "postgresql"
    title = "PostgreSQL: transactions of pgbench"
    kin = "mariadb"
    needs = (POSTGRES, INITDB, PGBENCH)
    inputs = inputs_of(
        "clients rate reads",
        ("paced", 2, 150, 0, "2 connections, 150 transactions a second that read and write"),
        ("mixed", 8, 0, 4, "8 connections as fast as they can, 4 reads for each that writes"),
    )
    other_inputs = inputs_of(
        "clients rate reads",
        ("reads", 4, 0, 50, "4 connections, 50 reads for each that writes"),
        ("writes", 4, 0, 0, "4 connections, each transaction writes"),
    )

    def fill(self, place: Place) -> None:
        """Make the server's data directory and the tables."""
        user = ["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8"]
        self.finish(place, "initdb", [INITDB.path(), "--pgdata", f"{place.folder}/postgres", "--no-sync", *user])
        self.start(place)
        size = ["--initialize", "--quiet", "--scale", str(SCALE), "postgres"]
        self.finish(place, "pgbench", [*_pgbench(place), *size])

    def start(self, place: Place) -> None:
        """Start the server."""
        port = place.free_port()
        settings = {
            "listen_addresses": LOOPBACK,
            "port": port,
            "unix_socket_directories": place.folder,
            "shared_buffers": f"{BUFFERS_MB}MB",
            "logging_collector": "off",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        # SIGINT: end the sessions and stop in good order, without waiting for the clients
        self.serve(place, "postgres", [POSTGRES.path(), "-D", f"{place.folder}/postgres", *flags], port, signal.SIGINT)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start pgbench."""
        rate = [f"--rate={input.options['rate']}"] if input.options["rate"] else []
        size = [f"--client={input.options['clients']}", "--jobs=1", f"--time={LONGEST_S}", "--no-vacuum"]
        scripts = ["--builtin=tpcb-like@1", f"--builtin=select-only@{input.options['reads']}"]
        seed = f"--random-seed={place.seed}"
        return place.spawn([*_pgbench(place), *size, *rate, *scripts, seed, "postgres"], name="load")


def _pgbench(place: Place) -> list[str]:
    return [PGBENCH.path(), "-h", LOOPBACK, "-p", str(place.facts["port"]), "-U", USER]
