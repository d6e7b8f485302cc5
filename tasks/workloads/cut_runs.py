"""Runs that are cut into phases, as they are compared: their bounds and levels, and the counters that moved most
(Hossain et al., V-D)."""

import re
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tasks.warehouse.connection import Connection
from tasks.workloads.identify.phases import Bounds
from tasks.workloads.telemetry import OWN_PREFIX, FloatArray

FAMILY = re.compile(r"[._]")
ABOUT = """
SELECT run_id, workload, input, interval_s, at_s,
    (SELECT count(*) FROM workloads.counters WHERE source = $source AND counters.run_id = runs.run_id) AS n_counters
FROM workloads.runs WHERE source = $source AND list_contains($run_ids, run_id)
"""
PHASES = """
SELECT run_id, counter, start_sample, end_sample, mean, probability FROM workloads.phases
WHERE source = $source AND list_contains($run_ids, run_id) ORDER BY run_id, counter, start_sample
"""
RUN_PHASES = """
SELECT run_id, start_sample, end_sample FROM workloads.run_phases
WHERE source = $source AND list_contains($run_ids, run_id) ORDER BY run_id, start_sample
"""


@dataclass(frozen=True)
class RunPhases:
    """One run. about: its row of workloads.runs; rows: of workloads.phases, of this run. bounds, levels: of each
    counter where its phases begin (samples), and their means on the learned scale.

    shared: where phases of the workload begin (V-D); over: the level of every counter in each, (n_phases, n_counters).
    """

    about: Mapping[str, Any]
    rows: pd.DataFrame
    counters: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    levels: tuple[FloatArray, ...]
    shared: Bounds
    over: FloatArray

    @property
    def run_id(self) -> str:
        """The name of the run."""
        return str(self.about["run_id"])

    @property
    def title(self) -> str:
        """What ran, on what input, and the run; the run alone where nobody says."""
        known = [self.about[key] for key in ("workload", "input") if isinstance(self.about[key], str)]
        return f"{' · '.join(known)} ({self.run_id})" if known else self.run_id

    @property
    def interval_s(self) -> float:
        """Seconds between samples; 1 where nobody says."""
        interval_s = self.about["interval_s"]
        return 1.0 if pd.isna(interval_s) else float(interval_s) or 1.0

    def on(self, names: Sequence[str]) -> "RunPhases":
        """The run with these counters only, which it must have, in this order; phases of the workload stay."""
        at = [self.counters.index(name) for name in names]
        bounds, levels = tuple(self.bounds[place] for place in at), tuple(self.levels[place] for place in at)
        return replace(self, counters=tuple(names), bounds=bounds, levels=levels, over=self.over[:, at])


def phases_of_rows(about: Mapping[str, Any], rows: pd.DataFrame, of_workload: pd.DataFrame) -> RunPhases:
    """The phases of a run from its rows of workloads.phases (counter, start_sample, end_sample, mean), at least one,
    and of workloads.run_phases (start_sample, end_sample).

    A counter's level in a phase of the workload is the mean of its own phases there, each for the samples it covers."""
    ordered = rows.sort_values(["counter", "start_sample"], kind="stable")
    parts = {str(name): part for name, part in ordered.groupby("counter", sort=True)}
    bounds = tuple(_bounds(part) for part in parts.values())
    levels = tuple(part["mean"].to_numpy(dtype=float) for part in parts.values())
    shared = _bounds(of_workload.sort_values("start_sample", kind="stable"))
    samples = [np.repeat(of_counter, np.diff(edges)) for edges, of_counter in zip(bounds, levels, strict=True)]
    over = np.array([[of_counter[start:end].mean() for of_counter in samples] for start, end in pairwise(shared)])
    return RunPhases(about, rows, tuple(parts), bounds, levels, shared, over)


def _bounds(part: pd.DataFrame) -> Bounds:
    return np.append(part["start_sample"].to_numpy(), part["end_sample"].iloc[-1]).astype(np.int64)


def fetch_cut_runs(connection: Connection, source: str, run_ids: Sequence[str]) -> list[RunPhases]:
    """The named runs that have phases, in the order of the names."""
    parameters = {"source": source, "run_ids": list(run_ids)}
    about: dict[Any, Any] = connection.execute(ABOUT, parameters).df().set_index("run_id", drop=False).to_dict("index")
    of_run, of_workload = (
        dict(list(connection.execute(sql, parameters).df().groupby("run_id"))) for sql in (PHASES, RUN_PHASES)
    )
    there = [run_id for run_id in run_ids if run_id in of_run and run_id in of_workload]
    return [phases_of_rows(about[run_id], of_run[run_id], of_workload[run_id]) for run_id in there]


def family_of(name: str) -> str:
    """What a counter is about: cpu, disk, net; that of the workload's own group is of the same family."""
    return FAMILY.split(name.removeprefix(OWN_PREFIX), maxsplit=1)[0]


def movement(levels: Sequence[FloatArray], bounds: Sequence[Bounds]) -> FloatArray:
    """How far the phases of each counter lie apart: the deviation of their levels, weighed by samples: (n_counters,).

    levels: of each counter (n_phases,), all on one scale; bounds: where its phases begin, and the end."""
    return np.array([_deviation(of_counter, np.diff(edges)) for of_counter, edges in zip(levels, bounds, strict=True)])


def _deviation(levels: FloatArray, weights: FloatArray) -> float:
    there = np.isfinite(levels)
    if not there.any():
        return 0.0
    mean = np.average(levels[there], weights=weights[there])
    return float(np.sqrt(np.average((levels[there] - mean) ** 2, weights=weights[there])))


def pick_counters(names: Sequence[str], moved: FloatArray, n: int, *, per_family: int = 1) -> list[str]:
    """The n counters that moved most, at most so many of a family; then the rest of those that moved.

    Ties go to the name. Returns them with the most moved first; fewer than n where fewer moved."""
    size = dict(zip(names, moved, strict=True))
    order = sorted((name for name in names if size[name] > 0), key=lambda name: (-size[name], name))
    taken: Tally[str] = Tally()
    first: list[str] = []
    others: list[str] = []
    for name in order:
        taken[family_of(name)] += 1
        (first if taken[family_of(name)] <= per_family else others).append(name)
    return sorted((first + others)[:n], key=order.index)
