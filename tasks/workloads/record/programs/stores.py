"""Databases and stores (Redis, memcached, MariaDB, PostgreSQL), each with the client that loads it, and programs that
compute: Markov chains, a convolutional network, compilers and compressors."""

import random
import signal

from tasks.workloads.record.programs.program import (
    Client,
    Command,
    Need,
    Options,
    Program,
    ProgramPlace,
    inputs_of,
    spawn_client,
    spawn_loop,
)

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
MARIADB_SOCKET = "--socket={folder}/mariadb.sock"
INSTALL_FLAGS = (
    "--no-defaults --datadir={folder}/mariadb --auth-root-authentication-method=normal --skip-test-db "
    "--skip-name-resolve"
)
MARIADB_FLAGS = (
    f"--no-defaults --datadir={{folder}}/mariadb {MARIADB_SOCKET} --pid-file={{folder}}/mariadb.pid "
    f"--tmpdir={{folder}} --bind-address={{address}} --port={{port}} --innodb-buffer-pool-size={BUFFERS_MB}M "
    "--skip-name-resolve"
)
SYSBENCH_FLAGS = (
    f"oltp_read_write --db-driver=mysql --mysql-host={{address}} --mysql-port={{port}} --mysql-db={DATABASE} "
    f"--mysql-user={USER} --mysql-password={USER} --tables={{tables}} --table-size={ROWS} --rand-seed={{seed}}"
)
POSTGRES_FLAGS = (
    "-D {folder}/postgres -c listen_addresses={address} -c port={port} -c unix_socket_directories={folder} "
    f"-c shared_buffers={BUFFERS_MB}MB -c logging_collector=off"
)
PGBENCH_FLAGS = f"-h {{address}} -p {{port}} -U {USER}"


REDIS_PROGRAM = Command(  # the server keeps all in memory; redis-benchmark repeats its tests, and takes no seed
    "redis",
    REDIS_CLIENT,
    "-h {address} -p {port} -l --csv -c {clients} -P {pipeline} -d {value_bytes} -r {keys} -n {requests} -t {tests}",
    inputs_of(
        "clients pipeline value_bytes keys requests tests",
        single=(1, 1, 64, 100_000, 40_000, "set,get"),
        pipelined=(20, 16, 2_048, 20_000, 400_000, "set,get,incr,sadd,hset"),
        lists=(4, 1, 1_024, 50_000, 40_000, "lpush,rpop,lrange_100"),
        crowd=(50, 1, 256, 200_000, 100_000, "get,zadd"),
    ),
    server=REDIS,
    server_flags="--bind {address} --port {port} --dir {folder} --save '' --appendonly no --maxmemory 1gb",
    first=signal.SIGTERM,
)
MEMCACHED_PROGRAM = Command(  # two threads; the client of our own reads several keys at once, as web applications do
    "memcached",
    None,
    "",
    inputs_of(
        "keys value_bytes set_share keys_a_get connections pause_ms",
        reads=(100_000, 100, 0.05, 20, 4, 0),
        writes=(10_000, 4_000, 0.5, 2, 2, 3),
        mixed=(50_000, 1_000, 0.2, 5, 4, 1),
        large=(2_000, 20_000, 0.1, 1, 8, 5),
    ),
    server=MEMCACHED,
    server_flags=f"-l {{address}} -p {{port}} -U 0 -m {MEMCACHED_MB} -t 2",
)


class MariaDbServer(Program):
    """What a workload over a MariaDB server of its own can do: make it, start it, fill it."""

    mariadb_needs = (MARIADB, MARIADB_INSTALL, MARIADB_CLIENT)

    def make_mariadb(self, place: ProgramPlace, database: str) -> None:
        """Lay out the data, start the server, and make an empty database with a user that may do all in it."""
        self.finish(place, MARIADB_INSTALL, INSTALL_FLAGS)
        self.start_mariadb(place)
        users = [f"'{USER}'@'{host}'" for host in ("%", "localhost")]
        sql = f"CREATE DATABASE {database}; " + "; ".join(
            f"CREATE USER {user} IDENTIFIED BY '{USER}'; GRANT ALL ON {database}.* TO {user}" for user in users
        )
        self.finish(place, MARIADB_CLIENT, f"--no-defaults {MARIADB_SOCKET} --user=root --execute {{sql}}", sql=sql)

    def start_mariadb(self, place: ProgramPlace) -> None:
        """Start the server and wait until it listens."""
        self.serve(place, MARIADB, MARIADB_FLAGS, signal.SIGTERM)


class MariaDb(MariaDbServer):
    """Four tables of 25,000 rows; what an input does not use lies still."""

    name = "mariadb"
    needs = (*MariaDbServer.mariadb_needs, SYSBENCH)
    inputs = inputs_of("threads rate tables", paced=(2, 60, 1), full=(8, 0, 4), single=(1, 0, 2), busy=(4, 200, 4))

    def fill(self, place: ProgramPlace) -> None:
        """Make the server's data directory and the tables."""
        self.make_mariadb(place, DATABASE)
        self.finish(place, SYSBENCH, f"{SYSBENCH_FLAGS} prepare", tables=TABLES)

    start = MariaDbServer.start_mariadb

    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Start sysbench."""
        flags = f"{SYSBENCH_FLAGS} --threads={{threads}} --rate={{rate}} --time={{longest}} run"
        return spawn_client(place, SYSBENCH, flags, options)


class PostgreSql(Program):
    """pgbench's tables of bank accounts at scale 8, about 120 MB."""

    name = "postgresql"
    needs = (POSTGRES, INITDB, PGBENCH)
    inputs = inputs_of("clients rate reads", paced=(2, 150, 0), mixed=(8, 0, 4), reads=(4, 0, 50), writes=(4, 0, 0))

    def fill(self, place: ProgramPlace) -> None:
        """Make the server's data directory and the tables."""
        user = f"--username {USER} --auth trust --encoding UTF8 --locale C.UTF-8"
        self.finish(place, INITDB, f"--pgdata {{folder}}/postgres --no-sync {user}")
        self.start(place)
        self.finish(place, PGBENCH, f"{PGBENCH_FLAGS} --initialize --quiet --scale {SCALE} postgres")

    def start(self, place: ProgramPlace) -> None:
        """Start the server."""
        # SIGINT: end the sessions and stop in good order, without waiting for the clients
        self.serve(place, POSTGRES, POSTGRES_FLAGS, signal.SIGINT)

    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Start pgbench."""
        paced = f"--rate={options['rate']}" if options["rate"] else ""
        flags = (
            f"{PGBENCH_FLAGS} --client={{clients}} --jobs=1 --time={{longest}} --no-vacuum {paced} "
            "--builtin=tpcb-like@1 --builtin=select-only@{reads} --random-seed={seed} postgres"
        )
        return spawn_client(place, PGBENCH, flags, options)


BAYES = Command(  # Hamiltonian chains over a hierarchy, or Metropolis over a logistic regression, for ever
    "bayes",
    Need(("numpy",), "numpy", "module"),
    "",
    inputs_of(
        "model groups rows chains columns",
        hierarchy=("hierarchy", 2_000, 40_000, 1, 0),
        logistic=("logistic", 0, 60_000, 2, 24),
        small=("hierarchy", 200, 4_000, 2, 0),
        broad=("logistic", 0, 10_000, 1, 96),
    ),
)
CNN = Command(  # weights and pictures are random, from the seed: what is recorded is the work, not the answer
    "cnn",
    Need(("torch",), "torch", "module"),
    "",
    inputs_of(
        "batch side channels blocks rate threads",
        requests=(1, 64, 16, 3, 60, 1),
        batches=(32, 96, 32, 4, 0, 2),
        pictures=(1, 160, 16, 3, 15, 1),
        stream=(8, 64, 24, 3, 0, 1),
    ),
)


GCC = Need(("gcc",), "gcc")
HEADERS = Need(("/usr/include/stdio.h",), "libc6-dev", "file")
SOURCES_SEED, SOURCES = 5, 40
HEAD = "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
FUNCTION = """
struct record_{name} {{ double values[{size}]; int counts[{size}]; char text[{size}]; }};
double step_{name}(struct record_{name} *record, int rounds) {{
    double sum = {start}.0;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < {size}; i++) {{
            record->values[i] = record->values[i] * {factor} + (i % {modulus}) / (double)(round + 1);
            record->counts[i] += (record->values[i] > {start}.5) ? i : -round;
            if (record->counts[i] % {modulus} == 0) sum += record->values[i] - record->counts[(i * {modulus}) % {size}];
        }}
    switch (rounds % {modulus}) {{ case 0: return sum; case 1: return -sum; default: break; }}
    snprintf(record->text, {size}, "%f after %d", sum, rounds);
    return sum / (double)(1 + strlen(record->text));
}}
"""


class Compilation(Program):
    """Forty source files of some thousand lines in all; the objects are linked at the end of each pass."""

    name = "compile"
    needs = (GCC, HEADERS)
    inputs = inputs_of(
        "flags jobs sources",
        optimised=("-O2", 2, "large"),
        debug=("-O0 -g", 1, "small"),
        one=("-O1", 1, "large"),
        short=("-O2", 2, "small"),
    )

    def fill(self, place: ProgramPlace) -> None:
        """Write the sources."""
        dice = random.Random(SOURCES_SEED)
        for kind, functions in (("large", 60), ("small", 4)):
            folder = place.folder / kind
            folder.mkdir(exist_ok=True)
            for number in range(SOURCES):
                made = "".join(
                    FUNCTION.format(
                        name=f"{number}_{at}",
                        size=dice.randint(16, 256),
                        start=dice.randint(1, 99),
                        factor=round(dice.uniform(0.5, 1.5), 3),
                        modulus=dice.randint(3, 17),
                    )
                    for at in range(functions)
                )
                (folder / f"part_{number}.c").write_text(HEAD + made)
            place.give(folder)

    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Compile all sources and link them, again and again."""
        folder, flags, jobs = (options[key] for key in ("sources", "flags", "jobs"))
        compile_part = f"{GCC.path()} {flags} -w -fPIC -c {folder}/part_{{}}.c -o {folder}/part_{{}}.o"
        numbers = " ".join(map(str, range(SOURCES)))
        body = f"echo {numbers} | tr ' ' '\\n' | xargs -P {jobs} -I {{}} {compile_part}\n"
        return spawn_loop(place, body + f"{GCC.path()} -shared -o {folder}/all.so {folder}/part_*.o -lm")


ZSTD, XZ = Need(("zstd",), "zstd"), Need(("xz",), "xz-utils")
TEXT_SEED, VOCABULARY, WORDS_A_LINE, LINES = 11, 8_000, 12, 200_000


class Compress(Program):
    """One text of about 15 MB, drawn from a vocabulary whose word frequencies fall as in a language (Zipf)."""

    name = "compress"
    needs = (ZSTD, XZ)
    inputs = inputs_of(
        "program level", zstd=("zstd", 6), xz=("xz", 6), **{"zstd-fast": ("zstd", 1), "xz-fast": ("xz", 1)}
    )

    def fill(self, place: ProgramPlace) -> None:
        """Write the text."""
        rng = random.Random(TEXT_SEED)
        words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(VOCABULARY)]
        drawn = rng.choices(words, weights=[1 / rank for rank in range(1, VOCABULARY + 1)], k=LINES * WORDS_A_LINE)
        lines = (" ".join(drawn[first : first + WORDS_A_LINE]) for first in range(0, len(drawn), WORDS_A_LINE))
        place.write("text", "\n".join(lines))

    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Compress the text again and again."""
        level = options["level"]
        if options["program"] == "zstd":
            body = f"{ZSTD.path()} -q -f -{level} -T1 text -o text.zst\n{ZSTD.path()} -q -d -c text.zst > /dev/null"
        else:
            body = f"{XZ.path()} -{level} -T2 --block-size=2MiB -k -c text > text.xz"
        return spawn_loop(place, body)
