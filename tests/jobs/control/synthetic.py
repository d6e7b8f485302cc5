"""Simulated matched pairs with a known effect; every run is marked as simulated."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

FIRST_AT = pd.Timestamp("2026-01-01")


@dataclass(frozen=True)
class SimulatedChange:
    """A change that multiplies the runtimes of each job by a factor of its own, mean and deviation over jobs given as
    logarithms; log_noise: deviation of each run's log runtime, noise_factor times as much in the changed runs."""

    what_if: str = "no_spare"
    n_groups: int = 40
    n_pairs: int = 10
    log_effect: float = 0.3
    effect_sd: float = 0.3
    log_noise: float = 0.1
    noise_factor: float = 1


@dataclass(frozen=True)
class SimulatedPairs:
    """runs: originals, baselines and changed runs, by submission, in columns of read_runs; log_effects: true log factor
    by group_key; log_medians: true log median of the unchanged runs, by group_key."""

    runs: pd.DataFrame
    log_effects: pd.Series
    log_medians: pd.Series


def simulate_pairs(change: SimulatedChange, rng: np.random.Generator) -> SimulatedPairs:
    """Each job has n_pairs original runs, each repeated unchanged and changed, all with independent noise."""
    keys = [f"job-{number:03}" for number in range(change.n_groups)]
    effects = pd.Series(change.log_effect + change.effect_sd * rng.standard_normal(len(keys)), index=keys)
    medians = pd.Series(rng.normal(2.0, 1.0, len(keys)), index=keys)
    rows = []
    for place in range(change.n_pairs):
        for key in keys:
            run_id, again = f"{key}-{place}", f"{key}-{place}-baseline"
            changed, louder = f"{run_id}-{change.what_if}", change.log_noise * change.noise_factor
            for name, what_if, partner, level, noise in (
                (run_id, None, None, 0.0, change.log_noise),
                (again, "baseline", run_id, 0.0, change.log_noise),
                (changed, change.what_if, again, effects[key], louder),
            ):
                rows.append((name, key, what_if, partner, np.exp(medians[key] + level + noise * rng.standard_normal())))
    runs = pd.DataFrame(rows, columns=["run_id", "group_key", "what_if", "matched_run_id", "runtime_s"])
    submitted_at = FIRST_AT + pd.to_timedelta(np.arange(len(runs)) * 60.0, unit="s")
    ended_at = submitted_at + pd.to_timedelta(runs["runtime_s"].to_numpy(), unit="s")
    runs = runs.assign(submitted_at=submitted_at, ended_at=ended_at, status="completed", is_simulated=True)
    return SimulatedPairs(runs, effects, medians)
