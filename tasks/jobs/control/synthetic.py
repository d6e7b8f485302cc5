"""Simulated matched pairs with a known effect, for tests; every run is marked as simulated."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pydantic import Field

from tasks.params import Params

FIRST_AT = pd.Timestamp("2026-01-01")


class SimulatedChange(Params):
    """A change that multiplies the runtimes of each job by a factor of its own."""

    what_if: str = Field("no_spare", description="What the changed runs are called")
    n_groups: int = Field(40, ge=1, description="Number of jobs")
    n_pairs: int = Field(10, ge=1, description="Pairs of each job")
    log_effect: float = Field(0.3, description="Mean over jobs of the log of the factor")
    effect_sd: float = Field(0.3, ge=0, description="Standard deviation over jobs of the log of the factor")
    log_noise: float = Field(0.1, ge=0, description="Standard deviation of the log runtime of each run")
    noise_factor: float = Field(1, gt=0, description="The changed runs deviate by so many times as much")


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
            run_id = f"{key}-{place}"
            quiet, loud = change.log_noise, change.log_noise * change.noise_factor
            rows += [
                (run_id, key, None, None, medians[key] + quiet * rng.standard_normal()),
                (f"{run_id}-baseline", key, "baseline", run_id, medians[key] + quiet * rng.standard_normal()),
                (
                    f"{run_id}-{change.what_if}",
                    key,
                    change.what_if,
                    f"{run_id}-baseline",
                    medians[key] + effects[key] + loud * rng.standard_normal(),
                ),
            ]
    runs = pd.DataFrame(rows, columns=["run_id", "group_key", "what_if", "matched_run_id", "log_runtime"])
    runs["runtime_s"] = np.exp(runs.pop("log_runtime"))
    submitted_at = FIRST_AT + pd.to_timedelta(np.arange(len(runs)) * 60.0, unit="s")
    ended_at = submitted_at + pd.to_timedelta(runs["runtime_s"].to_numpy(), unit="s")
    runs = runs.assign(submitted_at=submitted_at, ended_at=ended_at, status="completed", is_simulated=True)
    return SimulatedPairs(runs, effects, medians)
