"""Small, odd logs of jobs with known truth, and how the predictor does on them beside the plain rules, as a Markdown
table: `python -m tests.studies.small_jobs`. CRPS in seconds, the mean over logs drawn with several seeds."""

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from tasks.jobs.params import EvaluateParams
from tasks.jobs.predict.mixture import LEVELS
from tasks.jobs.predict.predictor import empirical_of
from tasks.jobs.predict.preparation import prepare
from tasks.jobs.predict.runtime_evaluation import evaluate_runtimes

N_SEEDS, GAP_S = 4, 600.0
SHOWN = ("model", "history", "lightgbm", "all")


def drawn(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Runtimes in seconds and jobs of one log, in order of submission."""
    if kind == "60 runs of 3 jobs":
        jobs = rng.integers(0, 3, 60)
        return np.exp(3 + jobs + 0.3 * rng.normal(size=60)), jobs
    if kind == "one in twenty takes longer":
        jobs = rng.integers(0, 5, 150)
        return np.where(rng.random(150) < 0.05, 300.0, 30.0 * (1 + jobs)), jobs
    if kind == "no job runs twice":
        return 20 * (1 + rng.pareto(1.3, 200)), np.arange(200)
    if kind == "half of the jobs run once":
        jobs = np.where(rng.random(120) < 0.5, np.arange(120) + 10, rng.integers(0, 3, 120))
        return np.exp(3 + (jobs < 10) * jobs + 0.5 * rng.normal(size=120)), jobs
    if kind == "new jobs all the time":
        jobs = (np.arange(400) // 25) * 3 + rng.integers(0, 3, 400)
        return np.exp(3 + rng.normal(size=200)[jobs] + 0.2 * rng.normal(size=400)), jobs
    if kind == "a heavy tail":
        jobs = rng.integers(0, 12, 300)
        return np.minimum(10 * (1 + jobs) * (1 + rng.pareto(1.1, 300)), 3600), jobs
    if kind == "two modes":
        jobs = rng.integers(0, 8, 250)
        return np.where(rng.random(250) < 0.4, 5.0, 500.0) * (1 + 0.2 * jobs), jobs
    if kind == "all jobs drift together":
        jobs = rng.integers(0, 6, 400)
        return np.exp(4 + np.cumsum(0.08 * rng.normal(size=400)) + 0.1 * (jobs + rng.normal(size=400))), jobs
    jobs = rng.integers(0, 20, 400)  # a sudden change
    return np.exp(4 + 0.1 * jobs + 0.2 * rng.normal(size=400)) * np.where(np.arange(400) > 288, 5, 1), jobs


KINDS = (
    "60 runs of 3 jobs", "one in twenty takes longer", "no job runs twice", "half of the jobs run once",
    "new jobs all the time", "a heavy tail", "two modes", "all jobs drift together", "a sudden change",
)  # fmt: skip


def scores(kind: str, seed: int) -> dict[str, float]:
    """CRPS of each predictor on the last fifth of one drawn log; all: the quantiles of all runs before."""
    rng = np.random.default_rng(seed)
    runtime_s, jobs = drawn(kind, rng)
    at = pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(np.cumsum(rng.exponential(GAP_S, len(jobs))), unit="s"))
    at = at.astype("datetime64[us]")
    runs = pd.DataFrame(
        {
            "run_id": [f"r{i}" for i in range(len(jobs))], "group_key": jobs.astype(str).astype(object),
            "submitted_at": at, "started_at": at, "runtime_s": runtime_s, "wait_s": 0.0,
            "ended_at": (at + pd.to_timedelta(runtime_s, unit="s")).astype("datetime64[us]"),
        }
    )  # fmt: skip
    prepared = prepare(runs, EvaluateParams().predict.characterise)
    found = evaluate_runtimes(prepared, {}, EvaluateParams())
    before = np.quantile(np.log(runtime_s[~prepared.is_part("D3")]), LEVELS)
    everything = empirical_of(np.tile(before, (len(found.rows), 1))).crps(runtime_s[found.rows])
    return {name: one.measures["crps"] for name, one in found.scored.items()} | {"all": float(everything.mean())}


def main() -> None:
    print(f"| log | {' | '.join(SHOWN)} |\n|---|{'---|' * len(SHOWN)}")
    with threadpool_limits(1):
        for kind in KINDS:
            table = pd.DataFrame([scores(kind, seed) for seed in range(N_SEEDS)]).mean()
            print(f"| {kind} | {' | '.join(f'{table[name]:.4g}' for name in SHOWN)} |", flush=True)


if __name__ == "__main__":
    main()
