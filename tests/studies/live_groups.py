"""What runs in a control group, asked live of programs that nobody recorded:
python -m tests.studies.live_groups SECONDS ROUNDS FOLDER…, as root where control groups can be made.

The model is learned from the recordings in the folders, without the workloads that they hold to be never learned. Each
program is started in a group of its own with commands, data and options that no recording had, and is asked about when
it has run for some seconds: on a quiet machine or a busy one, whichever this is meanwhile. Known programs should be
named, foreign ones called unknown. Printed: a line a try, then one JSON object."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tasks.errors import MissingTool
from tasks.machine import campaign_group
from tasks.workloads.evaluate.items import read_labelled
from tasks.workloads.identify.counters import condition_of
from tasks.workloads.identify.identification import Identification, identify
from tasks.workloads.identify.model import Model, fit_model
from tasks.workloads.params import IdentifyParams, ReadParams
from tasks.workloads.record.bench import record_live

FOREIGN = "unknown"
WARM_UP_S = 4.0
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio", "pids")
DATA_MB, N_SOURCES, N_FUNCTIONS = 200, 6, 300
SERVER = "redis-server --port 7777 --save '' >/dev/null & sleep 1;"
REDIS = SERVER + " while true; do redis-benchmark -p 7777 -q {} >/dev/null; done"
FFMPEG = "ffmpeg -loglevel quiet -y -f lavfi -i testsrc=size=640x480 -t 20 -c:v libx264 {here}/o.mp4"
PERL = "my %a; $a{{$_ % 9973}} .= $_ for 1..300000; print scalar %a"
# What should be said, and a program by its shell script; {data} is a file, {sources} a folder of C, {here} a free one.
PROGRAMS = {
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


def learned(folders: Sequence[str]) -> Model:
    """A model of the labelled runs below the folders."""
    runs = read_labelled(folders, ReadParams()).runs
    unlearned = {run.workload for run in runs if condition_of(run) == "unlearned"}
    return fit_model([run for run in runs if run.workload not in unlearned], IdentifyParams(), ["own"])


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


def asked(script: str, name: str, seconds: float, model: Model) -> Identification:
    """What is said of a group in which the script is at work. Raises MissingTool without control groups."""
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
            return identify(record_live(str(folder.relative_to(folder.parents[1])), seconds), model)
        finally:
            while procs := (group.folders["cpu"] / "cgroup.procs").read_text().split():
                subprocess.run(["/bin/kill", "-9", *procs], check=False, capture_output=True)
            process.wait()


def main(seconds: float, n_rounds: int, folders: Sequence[str]) -> dict[str, float]:
    """Shares of right answers: known programs that are named, those called unknown, foreign ones called unknown."""
    model = learned(folders)
    right: dict[str, list[bool]] = {"known_named": [], "known_called_unknown": [], "foreign_called_unknown": []}
    with inputs() as places:
        for n in range(n_rounds):
            for at, (name, (expected, script)) in enumerate(PROGRAMS.items()):
                if shutil.which(name.split(",")[0].replace("redis", "redis-server")) is None:
                    continue
                answer = asked(script.format(**places), f"{n}-{at}", seconds, model)
                said = answer.workload if answer.is_known else FOREIGN
                took = f"{answer.foreign_share or 0:.0%} of the machine was taken by others"
                told = f"{said} ({answer.statement}, {answer.confidence:.2f})"
                print(f"{name}: {told}, expected {expected}; {took}", flush=True)
                if expected == FOREIGN:
                    right["foreign_called_unknown"].append(said == FOREIGN)
                else:
                    right["known_named"].append(said == expected)
                    right["known_called_unknown"].append(said == FOREIGN)
    return {key: float(np.mean(each)) for key, each in right.items()} | {
        "n_known": len(right["known_named"]), "n_foreign": len(right["foreign_called_unknown"]),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])))
