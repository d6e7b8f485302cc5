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
from tests.studies.live_programs import CHOSEN_BY, FOREIGN, REPORTED, prepare

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
