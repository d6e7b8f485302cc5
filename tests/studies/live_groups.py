"""What runs in a control group, asked live of programs that nobody recorded:
python -m tests.studies.live_groups SECONDS ROUNDS [--choose] FOLDER…, as root where control groups can be made.

The model is learned from the recordings in the folders, without the workloads that they hold to be never learned. Each
program is started in a group of its own with commands, data and options that no recording had, and is asked about when
it has run for some seconds: on a quiet machine or a busy one, whichever this is meanwhile. Known programs should be
named, foreign ones called unknown. Beside the model stand, asked about the same recording: the model without programs
(counters); the nearest run by L1 on logarithms of means per core, unknown where it is farther than LIMIT of the learned
runs are from those of other rounds (plain); and what `ps` tells (programs): the workload whose programs overlap most,
unknown below LEAST_OVERLAP. Printed: a line a try, then one JSON object. --choose: other programs, by which all that is
chosen was chosen."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.errors import MissingTool
from tasks.machine import campaign_group
from tasks.workloads.evaluate.items import part_of
from tasks.workloads.identify.counters import OWN_BUSY, common_counters, condition_of, floors_of, means_of
from tasks.workloads.identify.identification import identify
from tasks.workloads.identify.model import fit_model
from tasks.workloads.identify.programs import shares_of_programs
from tasks.workloads.intake import read_telemetry
from tasks.workloads.params import IdentifyParams, ReadParams
from tasks.workloads.record.bench import record_live
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

# The programs that are asked about: of each what should be said, and its shell script; {data} is a file, {sources} a
# folder of C, {here} a free one, which holds FILES, a copy of some servers under other names, and databases
FOREIGN = "unknown"
SERVER = "redis-server --port 7777 --save '' >/dev/null & sleep 1;"
REDIS = SERVER + " while true; do redis-benchmark -p 7777 -q {} >/dev/null; done"
FFMPEG = "ffmpeg -loglevel quiet -y -f lavfi -i testsrc=size=640x480 -t 20 -c:v libx264 {here}/o.mp4"
PERL = "my %a; $a{{$_ % 9973}} .= $_ for 1..300000; print scalar %a"
REPORTED = {
    "zstd": ("compress", "while true; do zstd -6 -q -f {data} -o {here}/data.zst; done"),
    "xz": ("compress", "while true; do xz -6 -T2 -k -c {data} > {here}/data.xz; done"),
    "gzip": ("compress", "while true; do gzip -c {data} > {here}/data.gz; done"),
    "gcc, large": ("compile", "while true; do for f in {sources}/*.c; do gcc -O2 -c $f -o {here}/o.o; done; done"),
    "gcc, small": ("compile", "while true; do echo 'int f(int a){{return a;}}' | gcc -g -xc -c - -o {here}/o.o; done"),
    "redis, crowd": ("redis", REDIS.format("-c 30 -n 200000 -t set,get -d 100")),
    "redis, pipeline": ("redis", REDIS.format("-c 10 -n 400000 -P 8 -t lpush,incr,get -d 500")),
    "redis, single": ("redis", REDIS.format("-c 1 -n 50000 -t set,get -d 64")),
    "ffmpeg": (FOREIGN, f"while true; do {FFMPEG}; done"),
    "find": (FOREIGN, "while true; do find /usr -type f -name '*.h' -exec wc -l {{}} + >/dev/null 2>&1; done"),
    "sha256sum": (FOREIGN, "while true; do sha256sum {data} >/dev/null; done"),
    "awk": (
        FOREIGN,
        "while true; do head -c 20000000 {data} | base64 | awk '{{n+=length($0)}}END{{print n}}' >/dev/null; done",
    ),
    "perl": (FOREIGN, f"while true; do perl -e '{PERL}' >/dev/null; done"),
}

FILES = {
    "memcached.py": """import random, socket
s = socket.create_connection(("127.0.0.1", 7611)); f = s.makefile("rb")
for k in range(5000): s.sendall(b"set k%d 0 0 400 noreply\\r\\n" % k + b"x" * 400 + b"\\r\\n")
while True:
    for _ in range(50): s.sendall(b"".join(b"get k%d\\r\\n" % random.randrange(5000) for _ in range(20)))
    n = 0
    while n < 1000: n += f.readline() == b"END\\r\\n"
""",
    "chains.py": """import numpy as np
r = np.random.default_rng(1); x = r.normal(size=(20000, 12)); y = r.random(20000) < 0.5
at, b, old = 0, np.zeros(12), -np.inf
while True:
    n = b + 0.01 * r.normal(size=12); new = np.sum(np.where(y, x @ n, 0) - np.logaddexp(0, x @ n))
    if np.log(r.random()) < new - old: b, old = n, new
""",
    "net.py": """import torch
from torch.nn import AdaptiveAvgPool2d, Conv2d, ReLU, Sequential
torch.set_num_threads(1)
net = Sequential(Conv2d(3, 24, 3), ReLU(), Conv2d(24, 24, 3), ReLU(), AdaptiveAvgPool2d(1))
with torch.no_grad():
    while True: net(torch.rand(4, 3, 96, 96))
""",
    "primes.py": "n = 2\nwhile True: all(n % d for d in range(2, int(n**0.5) + 1)); n += 1\n",
    "words.py": """import json, re
d = {str(i): [i, i * 1.5, "w%d" % i] for i in range(3000)}
while True: re.findall(r"w(\\d+)5", json.dumps(json.loads(json.dumps(d))))
""",
    "frames.py": """import numpy as np, pandas as pd
r = np.random.default_rng(0)
while True:
    f = pd.DataFrame({"k": r.integers(0, 500, 200000), "v": r.random(200000)})
    f.groupby("k").v.agg(["mean", "std"]).sort_values("mean").to_csv("/dev/null")
""",
    "M.java": """import java.util.*; public class M { public static void main(String[] a) { while (true) {
Map<Integer, String> m = new HashMap<>(); for (int i = 0; i < 200000; i++) m.put(i * 7919 % 100003, "v" + i); } } }
""",
    "n.js": "while (true) { let a = {}; for (let i = 0; i < 1e5; i++) a['k' + i % 9973] = i; JSON.stringify(a) }",
    "w.php": "<?php while (true) { $a = []; for ($i = 0; $i < 100000; $i++) $a['k' . $i] = md5((string)$i); }",
    "t.sql": """CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
INSERT INTO t SELECT i, hex(randomblob(8)) FROM n;
CREATE INDEX x ON t(b); SELECT count(*) FROM t GROUP BY substr(b, 1, 2);
""",
    "a.cpp": """#include <map>
#include <regex>
int main() { std::map<int, std::regex> m; m[1] = std::regex("a+b"); return std::regex_match("aab", m[1]); }
""",
    "nginx.conf": """daemon off; user nobody nogroup; worker_processes 2; error_log /dev/null; events {} http {
access_log off; server { listen 127.0.0.1:7614; root .; } }
""",
    "small": "hello" * 40,
    "large": "x" * 300_000,
}
NOBODY = "setpriv --reuid=nobody --regid=nogroup --clear-groups"
PYTHON = sys.executable
POSTGRES = (
    f"rm -f {{here}}/pg/postmaster.pid {{here}}/.s.*; {NOBODY} postgres -D {{here}}/pg -p 7613 -k {{here}} "
    ">/dev/null 2>&1 & sleep 2;"
)
MARIADB = (
    "mariadbd --no-defaults --user=nobody --datadir={here}/my --socket={here}/my.sock --port=7612 "
    "--skip-grant-tables >/dev/null 2>&1 & sleep 2;"
)
NGINX = "nginx -c {here}/nginx.conf -p {here} & sleep 1;"
MEMCACHED = f" -u nobody -l 127.0.0.1 -p 7611 -t 1 & sleep 1; {PYTHON} {{here}}/memcached.py"
SYSBENCH = "sysbench oltp_read_only --mysql-socket={here}/my.sock --mysql-user=root --mysql-db=sb --threads=3"
SLAP = (
    "mariadb-slap --no-defaults -S {here}/my.sock -a --auto-generate-sql-load-type=mixed -c 4 --number-of-queries=4000"
)
JOIN = "select count(*) from pgbench_accounts a join pgbench_branches using (bid) group by abalance"
LUA = 'for i=1,200000 do redis.call("zadd","z",i%997,i%4999) end return 1'


def _again(command: str) -> str:
    return f"while true; do {command} >/dev/null 2>&1; done"


CHOSEN_BY = {
    "mariadb, slap": ("mariadb", f"{MARIADB} {_again(SLAP)}"),
    "mariadb, reads": (
        "mariadb",
        f"{MARIADB} mariadb --no-defaults -S {{here}}/my.sock -e 'create database if not exists sb'; "
        f"{SYSBENCH} prepare >/dev/null; {SYSBENCH} --time=600 run >/dev/null",
    ),
    "postgresql, reads": (
        "postgresql",
        POSTGRES + " " + _again("pgbench -h {here} -p 7613 -U postgres -S -c 6 -T 600 -M prepared postgres"),
    ),
    "postgresql, join": ("postgresql", POSTGRES + " " + _again(f"psql -h {{here}} -p 7613 -U postgres -qc '{JOIN}'")),
    "memcached": ("memcached", "memcached" + MEMCACHED),
    "memcached, renamed": ("memcached", "{here}/cacheserver" + MEMCACHED),
    "nginx, wrk": ("nginx", NGINX + " wrk -c 40 -t 1 -d 600 http://127.0.0.1:7614/small"),
    "nginx, ab": ("nginx", NGINX + " " + _again("ab -q -n 20000 -c 8 http://127.0.0.1:7614/large")),
    "redis, scripts": ("redis", SERVER + " " + _again(f"redis-cli -p 7777 eval '{LUA}' 0")),
    "redis, persistent": (
        "redis",
        "redis-server --port 7777 --dir {here} --appendonly yes --appendfsync always >/dev/null & sleep 1; "
        + _again("redis-benchmark -p 7777 -q -c 20 -n 50000 -t lpush,hset -d 2000"),
    ),
    "redis, renamed": (
        "redis",
        "{here}/kvstore --port 7777 --save '' >/dev/null & sleep 1; "
        + _again("{here}/kvload -p 7777 -q -c 20 -n 100000 -t set,get -d 100"),
    ),
    "g++": ("compile", _again("g++ -O2 -std=c++17 -c {here}/a.cpp -o {here}/a.o")),
    "make": ("compile", _again("make -s -j2 -C {sources} -B all")),
    "zstd": ("compress", _again("zstd -15 -q -f {data} -o {here}/data.zst")),
    "xz": ("compress", "while true; do xz -2 -k -c {data} > {here}/data.xz; done"),
    "bzip2": ("compress", "while true; do bzip2 -k -c {data} > {here}/data.bz2; done"),
    "lz4": ("compress", _again("lz4 -9 -q -f {data} {here}/data.lz4")),
    "chains": ("bayes", PYTHON + " {here}/chains.py"),
    "net": ("cnn", PYTHON + " {here}/net.py"),
    "php": (FOREIGN, "timeout 600 php {here}/w.php"),
    "sqlite3": (FOREIGN, _again("rm -f {here}/t.db; sqlite3 {here}/t.db < {here}/t.sql")),
    "java": (FOREIGN, "java -Xmx400m -cp {here} M"),
    "openssl": (FOREIGN, _again("openssl speed -seconds 2 sha512 rsa2048")),
    "python, primes": (FOREIGN, PYTHON + " {here}/primes.py"),
    "python, words": (FOREIGN, PYTHON + " {here}/words.py"),
    "python, frames": (FOREIGN, PYTHON + " {here}/frames.py"),
    "stress-ng, matrix": (FOREIGN, "stress-ng --matrix 1 -q"),
    "stress-ng, vm": (FOREIGN, "stress-ng --vm 1 --vm-bytes 256m -q"),
    "fio": (
        FOREIGN,
        "fio --name=r --rw=randrw --bs=16k --size=256m --directory={here} --time_based --runtime=600 >/dev/null",
    ),
    "tar": (FOREIGN, "while true; do tar cf - /usr/include /usr/share/doc 2>/dev/null | cat >/dev/null; done"),
    "rsync": (FOREIGN, _again("rm -rf {here}/copy; rsync -a /usr/include {here}/copy")),
    "sort": (FOREIGN, "while true; do base64 {data} | sort -S 100M -T {here} >/dev/null; done"),
    "grep": (FOREIGN, _again("grep -rEc '[a-z]+_[0-9]+t' /usr/include")),
    "convert": (FOREIGN, _again("/usr/bin/convert -size 800x600 plasma: -blur 0x4 -resize 50% {here}/o.png")),
    "node": (FOREIGN, "node {here}/n.js"),
    "iperf3": (
        FOREIGN,
        "iperf3 -s -p 7618 >/dev/null & sleep 1; iperf3 -c 127.0.0.1 -p 7618 -t 600 >/dev/null",
    ),
    "sysbench, cpu": (FOREIGN, "sysbench cpu --threads=2 --time=600 run >/dev/null"),
    "python, server": (
        FOREIGN,
        f"cd {{here}}; {PYTHON} -m http.server 7619 >/dev/null 2>&1 & sleep 1; "
        "wrk -c 4 -t 1 -d 600 http://127.0.0.1:7619/a.cpp",
    ),
    "md5sum": (FOREIGN, _again("md5sum {data}")),
    "git": (
        FOREIGN,
        "cd {here}; " + _again("rm -rf g; cp -r /usr/include/linux g; git init -q g; git -C g add .; git -C g gc -q"),
    ),
    "dd": (FOREIGN, _again("dd if=/dev/urandom of={here}/dd bs=64k count=2000")),
    "bc": (FOREIGN, _again("echo 'scale=2000; a(1)*4' | bc -l")),
}


def prepare(here: Path, sources: Path) -> None:
    """Write what CHOSEN_BY needs into a folder that exists, and a Makefile beside the sources."""
    here.chmod(0o777)
    for name, text in FILES.items():
        (here / name).write_text(text)
    for name, other in (("memcached", "cacheserver"), ("redis-server", "kvstore"), ("redis-benchmark", "kvload")):
        shutil.copy(str(shutil.which(name)), here / other)
    (sources / "Makefile").write_text("all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\t$(CC) -O3 -c $< -o $@\n")
    for name in ("my", "pg"):
        (here / name).mkdir(mode=0o700)
        shutil.chown(here / name, "nobody")
    at = {"cwd": here, "check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["javac", "M.java"], **at)
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={here}/my", "--user=nobody"]
    subprocess.run(install, **at)
    subprocess.run([*NOBODY.split(), "initdb", "-D", f"{here}/pg", "-U", "postgres", "-A", "trust", "--no-sync"], **at)
    server = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {NOBODY} postgres -D {here}/pg -p 7613 -k {here}"], stderr=subprocess.DEVNULL
    )
    time.sleep(3)
    subprocess.run(["pgbench", "-h", here, "-p", "7613", "-U", "postgres", "-i", "-q", "-s", "3", "postgres"], **at)
    server.terminate()
    server.wait()


LIMIT = 0.95  # share of the learned runs
LEAST_OVERLAP = 0.5  # of the shares of programs
LEAST_CORES = 1e-3
WARM_UP_S = 4.0
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio", "pids")
DATA_MB, N_SOURCES, N_FUNCTIONS = 200, 6, 300


def learnable(folders: Sequence[str]) -> list[Telemetry]:
    """The labelled runs below the folders, without the workloads that they hold to be never learned."""
    runs = [run for run in read_telemetry(folders, ReadParams()).runs if run.workload]
    unlearned = {run.workload for run in runs if condition_of(run) in ("unlearned", "idle")}
    return [run for run in runs if run.workload not in unlearned]


@dataclass(frozen=True)
class PlainWay:
    """counters of the group. logs: (n, c), of means per core of the learned runs. limit: of a distance."""

    counters: tuple[Counter, ...]
    workloads: tuple[str, ...]
    floor: FloatArray
    logs: FloatArray
    limit: float

    def named(self, run: Telemetry) -> str:
        """The workload of the nearest run, or FOREIGN. What was not measured is no difference."""
        [seen] = per_core([run], self.counters)
        apart = np.nansum(np.abs(np.log(seen + self.floor) - self.logs), axis=1)
        return self.workloads[int(apart.argmin())] if apart.min() <= self.limit else FOREIGN


def per_core(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> FloatArray:
    """Means, rates over the cores that the group used: (n_runs, n_counters)."""
    means = np.abs(means_of(runs, counters))
    busy = [at for at, counter in enumerate(counters) if counter.name in OWN_BUSY]
    cores = np.maximum(means[:, busy].sum(axis=1, keepdims=True), LEAST_CORES)
    return np.where([counter.is_rate for counter in counters], means / cores, means)


def plain_way(runs: Sequence[Telemetry]) -> PlainWay:
    """Learn the plain way from labelled runs that say their rounds, and from their later halves, as the model does."""
    counters = common_counters(runs, "own")
    runs = [*runs, *(part_of(run, run.n_samples // 2, run.n_samples) for run in runs)]
    means = per_core(runs, counters)
    floor = floors_of(means)
    logs, rounds = np.log(means + floor), np.array([str(run.round) for run in runs])
    apart = np.array([np.abs(logs - one).sum(axis=1) for one in logs])
    apart[rounds[:, None] == rounds[None, :]] = np.inf
    return PlainWay(counters, tuple(str(run.workload) for run in runs), floor, logs,
                    float(np.quantile(apart.min(axis=1), LIMIT)))  # fmt: skip


@contextmanager
def inputs() -> Iterator[dict[str, Path]]:
    """A folder for programs to work in, a file of half random bytes, and a folder of C sources; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="whorl-live-") as name:
        here = Path(name)
        rng = np.random.default_rng(1)
        words = rng.integers(0, 256, (4096, 64), dtype=np.uint8)
        with (here / "data").open("wb") as file:
            for _ in range(DATA_MB):
                file.write(words[rng.zipf(1.3, 1_000_000 // 64) % len(words)].tobytes())
        (here / "sources").mkdir()
        for at in range(N_SOURCES):
            factors = rng.random(N_FUNCTIONS)
            text = "".join(
                f"double f{n}(double*a,int n){{double s=0;for(int i=0;i<n;i++)s+=a[(i*{n + 2})%n]*{one};return s;}}\n"
                for n, one in enumerate(factors)
            )
            (here / "sources" / f"{at}.c").write_text(text)
        yield {"here": here, "data": here / "data", "sources": here / "sources"}


def recorded(script: str, name: str, seconds: float) -> Telemetry:
    """A group in which the script is at work. Raises MissingTool without control groups."""
    with campaign_group(weight=100, prefix="whorl-live-", controllers=CONTROLLERS) as campaign:
        if campaign is None:
            raise MissingTool("control groups cannot be made here; start as root where /sys/fs/cgroup can be written")
        group = campaign.child(name)
        process = subprocess.Popen(
            group.command_inside(["/bin/sh", "-c", script]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            time.sleep(WARM_UP_S)
            folder = group.folders["cpu"]
            return record_live(str(folder.relative_to(folder.parents[1])), seconds)
        finally:
            while procs := (group.folders["cpu"] / "cgroup.procs").read_text().split():
                subprocess.run(["/bin/kill", "-9", *procs], check=False, capture_output=True)
            process.wait()


def by_programs(run: Telemetry, learned: Mapping[str, Mapping[str, float]]) -> str:
    """The workload whose programs took what those of the run took, or FOREIGN."""
    shares = shares_of_programs(run.processes)
    overlap = {
        workload: sum(min(share, theirs.get(name, 0.0)) for name, share in shares.items())
        for workload, theirs in learned.items()
    }
    nearest = max(overlap, key=overlap.__getitem__, default=FOREIGN)
    return nearest if overlap.get(nearest, 0.0) >= LEAST_OVERLAP else FOREIGN


def main(seconds: float, n_rounds: int, folders: Sequence[str]) -> dict[str, dict[str, float]]:
    """By way, what `shares` gives."""
    is_choosing = "--choose" in folders
    runs = learnable([one for one in folders if one != "--choose"])
    model, plain = fit_model(runs, IdentifyParams(), ["own"]), plain_way(runs)
    told: dict[str, list[tuple[str, str]]] = {}  # by way, what should be said, and what is
    with inputs() as places:
        if is_choosing:
            prepare(places["here"], places["sources"])
        for n in range(n_rounds):
            for at, (name, (expected, script)) in enumerate((CHOSEN_BY if is_choosing else REPORTED).items()):
                if not is_choosing and shutil.which(name.split(",")[0].replace("redis", "redis-server")) is None:
                    continue
                run = recorded(script.format(**places), f"{n}-{at}", seconds)
                answers = [identify(one, model) for one in (run, replace(run, processes={}))]
                both, counters = (str(one.workload) if one.is_known else FOREIGN for one in answers)
                said = {"model": both, "counters": counters, "plain": plain.named(run)}
                said["programs"], answer = by_programs(run, model.programs), answers[0]
                took = f"{answer.foreign_share or 0:.0%} of the machine was taken by others"
                others = ", ".join(f"{way} {one}" for way, one in said.items() if way != "model")
                print(f"{name}: {both} ({answer.confidence:.2f}), {others}, expected {expected}; {took}", flush=True)
                for way, one in said.items():
                    told.setdefault(way, []).append((expected, one))
    return {way: shares(pairs) for way, pairs in told.items()}


def shares(told: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Of known programs the shares that are named rightly and by another name, of foreign ones called unknown."""
    known, foreign = ([pair for pair in told if (pair[0] == FOREIGN) == kind] for kind in (False, True))
    return {
        "known_named": float(np.mean([one == other for one, other in known])),
        "known_misnamed": float(np.mean([other not in (one, FOREIGN) for one, other in known])),
        "foreign_called_unknown": float(np.mean([other == FOREIGN for _, other in foreign])),
        "n_known": len(known),
        "n_foreign": len(foreign),
    }


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])))
