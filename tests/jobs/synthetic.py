"""Simulated job logs with known truth, for tests. Every row is marked as simulated; no report mixes them in."""

from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from tasks.params import Params

FIRST_AT = pd.Timestamp("2026-01-01")


class SimulatedJob(Params):
    """A recurring job: log-normal runtimes around a median, with rare slow runs at a multiple of it."""

    name: str = Field("job", description="Group key of the job")
    n_runs: int = Field(100, ge=1, description="Number of runs")
    median_s: float = Field(60, gt=0, description="Median of the ordinary runs, in seconds")
    log_deviation: float = Field(0.1, ge=0, description="Standard deviation of the logarithm of the runtime")
    slow_share: float = Field(0, ge=0, le=1, description="Probability that a run is slow")
    slow_factor: float = Field(20, ge=1, description="A slow run takes so many times as long")
    every_s: float = Field(3600, gt=0, description="Time from one submission to the next, in seconds")


def simulate_runs(jobs: list[SimulatedJob], rng: np.random.Generator) -> pd.DataFrame:
    """Runs of the jobs in the columns of jobs.runs, one frame; rows by job, then by time."""
    return pd.concat([_runs_of(job, rng) for job in jobs], ignore_index=True)


def _runs_of(job: SimulatedJob, rng: np.random.Generator) -> pd.DataFrame:
    is_slow = rng.random(job.n_runs) < job.slow_share
    runtimes_s = job.median_s * np.exp(rng.normal(0, job.log_deviation, job.n_runs))
    runtimes_s = np.where(is_slow, job.slow_factor * runtimes_s, runtimes_s)
    submitted_at = FIRST_AT + pd.to_timedelta(np.arange(job.n_runs) * job.every_s, unit="s")
    columns: dict[str, Any] = {
        "run_id": [f"{job.name}-{i:06}" for i in range(job.n_runs)],
        "group_key": job.name,
        "submitted_at": submitted_at,
        "started_at": submitted_at,
        "ended_at": submitted_at + pd.to_timedelta(runtimes_s, unit="s"),
        "wait_s": 0.0,
        "runtime_s": runtimes_s,
        "status": "completed",
        "is_simulated": True,
    }
    return pd.DataFrame(columns)
