"""What the job's own runs add to trees in how a run ends: Brier scores of running into 95 % of the limit on the last
fifth of the first 80 % of a log, and of stretches of it, as a Markdown table:
`python -m tests.studies.run_endings PATH [TIME_ZONE]`. Without a path: of drawn logs of eight jobs, of which three run
into their limits in 5, 3 and 1 of ten runs. The last fifth of the log is reported, so nothing is chosen by it."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from tasks.jobs.params import ReadParams
from tasks.jobs.predict.outcomes import ENDED, REACHES, evaluate_outcomes, outcome_features
from tests.studies.left_out import first_runs

TEST_SHARE = 0.2
STRETCHES = ((0.1, 250), (0.4, 250), (0.7, 250), (0.1, 1000), (0.4, 1000))  # where one begins, and its runs
CHANCES = (0.5, 0.3, 0.1, 0, 0, 0, 0, 0)  # of drawn jobs to run into their limit
LIMIT_S, EVERY_S = 3600.0, 7200.0


def drawn(n_each: int, rng: np.random.Generator) -> pd.DataFrame:
    """Runs of eight jobs, in order of time."""
    n = n_each * len(CHANCES)
    job = np.tile(np.arange(len(CHANCES)), n_each)
    is_stopped = rng.random(n) < np.array(CHANCES)[job]
    runtime_s = np.where(is_stopped, LIMIT_S, LIMIT_S * np.exp(rng.normal(-1.2, 0.25, n)).clip(max=0.9))
    submitted_at = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) * EVERY_S / len(CHANCES), unit="s")
    runs = pd.DataFrame(
        {"group_key": [f"job{number}" for number in job], "user_name": [f"user{number % 3}" for number in job]}
    )
    return runs.assign(
        submitted_at=submitted_at,
        started_at=submitted_at,
        ended_at=submitted_at + pd.to_timedelta(runtime_s, unit="s"),
        runtime_s=runtime_s,
        requested_runtime_s=LIMIT_S,
        requested_cpus=4.0,
        status=np.where(is_stopped, "timeout", "completed"),
    )


def logs_of(arguments: list[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Names and runs."""
    if not arguments:
        for n_each in (60, 160, 400):
            yield f"drawn, {n_each} runs a job", drawn(n_each, np.random.default_rng(n_each))
        return
    path, *time_zone = arguments
    runs = first_runs(path, ReadParams(time_zone="".join(time_zone)), ENDED)
    yield "all", runs
    for share, n in STRETCHES:
        first = int(share * len(runs))
        if first + n <= len(runs):
            yield f"{n} runs from {share:g} on", runs.iloc[first : first + n].reset_index(drop=True)


def main(*arguments: str) -> None:
    print("| runs | model | trees alone | the job's rate | LightGBM |\n|---|---|---|---|---|")
    with threadpool_limits(1):
        for name, runs in logs_of(list(arguments)):
            figures, outcomes = evaluate_outcomes(runs)
            if outcomes is None:
                continue
            new = runs.index >= int((1 - TEST_SHARE) * len(runs))
            features = outcome_features(runs, runs)[new]
            limits_s = runs["requested_runtime_s"].to_numpy(dtype=float)[new]
            reached = runs["runtime_s"].to_numpy()[new] >= 0.95 * limits_s
            chance = replace(outcomes.chances[REACHES], trees_count=1e9).predict(features)
            alone = float(((chance - reached)[limits_s > 0] ** 2).mean())
            others = [figures[f"outcome.brier.limit95.{each}"] for each in ("model", "history", "lightgbm")]
            print(f"| {name} | {others[0]:.4f} | {alone:.4f} | {others[1]:.4f} | {others[2]:.4f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
