"""The phases of one run as figures need them, from a fingerprint or from rows of the warehouse."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from tasks.workloads.identify.phases import STATISTICS, Bounds, Fingerprint
from tasks.workloads.telemetry import FloatArray

MEAN = STATISTICS.index("mean")


@dataclass(frozen=True)
class AboutRun:
    """What a run was of. interval_s: seconds between samples, None where nobody says."""

    run_id: str
    workload: str | None
    input: str | None
    interval_s: float | None


@dataclass(frozen=True)
class RunPhases:
    """One run. bounds, levels: of each counter where its phases begin (samples), and their means on the learned scale.

    workload_bounds, workload_levels: phases of the workload (V-D), and the level of every counter in each,
    (n_phases, n_counters). vectors: what distances between phases are computed of, (n_phases, d)."""

    run_id: str
    workload: str | None
    input: str | None
    interval_s: float
    counters: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    levels: tuple[FloatArray, ...]
    workload_bounds: Bounds
    workload_levels: FloatArray
    vectors: FloatArray

    @property
    def name(self) -> str:
        """What ran, on what input; the run itself where nobody says."""
        return " · ".join(part for part in (self.workload, self.input) if part) or self.run_id

    @property
    def n_samples(self) -> int:
        """Samples of the run."""
        return int(self.workload_bounds[-1])

    @property
    def duration_s(self) -> float:
        """Seconds that the samples span."""
        return self.n_samples * self.interval_s


def phases_of_fingerprint(
    found: Fingerprint, interval_s: float | None, *, input_name: str | None = None, workload: str | None = None
) -> RunPhases:
    """The phases of a fingerprint; workload: what to call it, where its label does not say."""
    table = found.workload_phases.reshape(len(found.workload_bounds) - 1, len(found.counters), len(STATISTICS))
    return RunPhases(
        found.run_id,
        found.workload or workload,
        input_name,
        interval_s or 1.0,
        found.counters,
        found.bounds,
        tuple(one[:, MEAN] for one in found.summaries),
        found.workload_bounds,
        table[:, :, MEAN],
        found.workload_phases,
    )


def phases_of_rows(about: AboutRun, rows: pd.DataFrame, of_workload: pd.DataFrame) -> RunPhases:
    """The phases of a run from its rows of workloads.phases (counter, start_sample, end_sample, mean), at least one,
    and of workloads.run_phases (start_sample, end_sample).

    A counter's level in a phase of the workload is the mean of its own phases there, each for the samples it covers."""
    ordered = rows.sort_values(["counter", "start_sample"], kind="stable")
    parts = {str(name): part for name, part in ordered.groupby("counter", sort=True)}
    bounds = tuple(_bounds(part) for part in parts.values())
    levels = tuple(part["mean"].to_numpy(dtype=float) for part in parts.values())
    shared = _bounds(of_workload.sort_values("start_sample", kind="stable"))
    over = np.column_stack([_means(edges, one, shared) for edges, one in zip(bounds, levels, strict=True)])
    interval_s = about.interval_s or 1.0
    return RunPhases(
        about.run_id, about.workload, about.input, interval_s, tuple(parts), bounds, levels, shared, over, over
    )


def _bounds(part: pd.DataFrame) -> Bounds:
    return np.append(part["start_sample"].to_numpy(), part["end_sample"].iloc[-1]).astype(np.int64)


def _means(edges: Bounds, levels: FloatArray, shared: Bounds) -> FloatArray:
    """Mean of a step function between the shared bounds: (n_phases,)."""
    samples = np.repeat(levels, np.diff(edges))
    return np.array([samples[start:end].mean() for start, end in pairwise(shared)])


def on_counters(run: RunPhases, names: Sequence[str]) -> RunPhases:
    """The run with these counters only, which it must have, in this order; phases of the workload stay."""
    places = [run.counters.index(name) for name in names]
    k = run.vectors.shape[1] // len(run.counters)
    table = run.vectors.reshape(len(run.vectors), len(run.counters), k)[:, places]
    return RunPhases(
        run.run_id,
        run.workload,
        run.input,
        run.interval_s,
        tuple(names),
        tuple(run.bounds[place] for place in places),
        tuple(run.levels[place] for place in places),
        run.workload_bounds,
        run.workload_levels[:, places],
        table.reshape(len(run.vectors), -1),
    )
