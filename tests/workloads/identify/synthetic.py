"""Runs of workloads with known truth: levels and phases of counters, kin, and workloads nobody has seen.

A workload has a level for each counter, log-uniform over several orders of magnitude, and a pattern of phases: places
where some of its counters are multiplied. A run repeats it with noise. Kin share all but a few levels and the phases.
Nothing here is measured, and nothing drawn here belongs beside measurements."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

LEVELS = (0.0, 5.0)  # powers of ten of a counter's level
FACTORS = (1.0, 2.5)  # natural logarithm of how much a phase changes a counter, up or down
MOVING_SHARE = 0.5  # of the counters that follow the phases of the workload
KIN_SHARE = 0.15  # of the counters whose level differs between kin
KIN_FACTOR = 1.2  # natural logarithm of that difference


@dataclass(frozen=True)
class DrawnWorkload:
    """levels: (n_counters,), natural logarithm. changes: where phases begin, as shares of a run. factors: (n_phases,
    n_counters), natural logarithm of what each phase multiplies."""

    name: str
    levels: FloatArray
    changes: FloatArray
    factors: FloatArray

    def expected(self, n_samples: int) -> FloatArray:
        """Logarithm of each counter without noise: (n_samples, n_counters)."""
        phase = np.searchsorted(self.changes, np.arange(n_samples) / n_samples, side="right")
        return np.asarray(self.levels + self.factors[phase])


def counters_of(n_counters: int) -> tuple[Counter, ...]:
    """Counters that are alternately rates of the machine, gauges, and rates of the workload's own group."""
    kinds = (
        Counter("disk.ops_{:02d}", "requests", "software", is_rate=True),
        Counter("cpu.tasks_{:02d}", "tasks", "software", is_rate=False),
        Counter("own.net.packets_{:02d}", "packets", "software", is_rate=True, scope="workload"),
    )
    drawn = [kinds[at % len(kinds)] for at in range(n_counters)]
    return tuple(replace(one, name=one.name.format(at)) for at, one in enumerate(drawn))


def draw_workload(name: str, n_counters: int, n_phases: int, rng: np.random.Generator) -> DrawnWorkload:
    """A workload like no other."""
    levels = rng.uniform(*LEVELS, n_counters) * np.log(10)
    changes = (np.arange(1, n_phases) + rng.uniform(-0.2, 0.2, n_phases - 1)) / n_phases
    factors = rng.uniform(*FACTORS, (n_phases, n_counters)) * rng.choice([-1, 1], (n_phases, n_counters))
    factors = factors * (rng.random(n_counters) < MOVING_SHARE)
    factors[0] = 0
    return DrawnWorkload(name, levels, changes, factors)


def draw_kin(of: DrawnWorkload, name: str, rng: np.random.Generator) -> DrawnWorkload:
    """A workload that differs from another in the level of a few counters."""
    n_counters = len(of.levels)
    chosen = rng.permutation(n_counters)[: max(1, round(KIN_SHARE * n_counters))]
    levels = of.levels.copy()
    levels[chosen] += KIN_FACTOR * rng.choice([-1, 1], len(chosen))
    return replace(of, name=name, levels=levels)


def draw_run(
    workload: DrawnWorkload, run_id: str, rng: np.random.Generator, *, n_samples: int = 30, noise: float = 0.1
) -> Telemetry:
    """One run, a sample a second. noise: deviation of the logarithm of a sample; a run's levels vary by half of it."""
    counters = counters_of(len(workload.levels))
    drift = rng.normal(0, noise / 2, len(counters))
    values = np.exp(workload.expected(n_samples) + drift + rng.normal(0, noise, (n_samples, len(counters))))
    at_s = np.arange(1.0, n_samples + 1)
    return Telemetry(run_id, counters, at_s, values, workload=workload.name, interval_s=1.0)


def draw_runs(
    workloads: Sequence[DrawnWorkload],
    n_runs: int,
    rng: np.random.Generator,
    *,
    rounds: int = 3,
    n_samples: int = 30,
    noise: float = 0.1,
) -> list[Telemetry]:
    """n_runs of each workload, dealt over rounds."""
    found = []
    for workload in workloads:
        for at in range(n_runs):
            run = draw_run(workload, f"{workload.name}-{at:02d}", rng, n_samples=n_samples, noise=noise)
            found.append(replace(run, round=str(at % rounds + 1)))
    return found


def shuffled(runs: Sequence[Telemetry], rng: np.random.Generator) -> list[Telemetry]:
    """The same runs in another order, the counters of each in another order."""
    order: NDArray[np.int64] = rng.permutation(len(runs))
    found = []
    for run in (runs[at] for at in order):
        columns = rng.permutation(len(run.counters))
        counters = tuple(run.counters[at] for at in columns)
        found.append(replace(run, counters=counters, values=run.values[:, columns]))
    return found
