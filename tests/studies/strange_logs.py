"""How the predictor does on logs of other shapes, made of one log, beside the best of the plain predictions, as a
Markdown table: `python -m tests.studies.strange_logs PATH [TIME_ZONE [ours=theirs …]]`, then on N_SHORT short parts of
it. They are made of the first 80 % of its runs: the last fifth of the log is reported, so nothing is learnt from it."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats
from tasks.jobs.grouping import group_keys
from tasks.jobs.job_keys import choose_key
from tasks.jobs.params import EvaluateParams, GroupParams, ReadParams
from tasks.jobs.predict.preparation import prepare
from tasks.jobs.predict.runtime_evaluation import RuntimeEvaluation, evaluate_runtimes
from tests.studies.left_out import first_runs

MOST_RUNS, LEAST_RUNS = 4_000, 100
OFTEN, RARELY = 50, 20  # runs of a job
PARAMS = EvaluateParams()
LENGTHS, USUAL_LENGTH, LONGEST_SHARE = (110, 160, 240, 330, 500, 700, 1_000, 1_500, 1_900), 300, 0.9  # of short logs
N_SHORT, SEED = 18, 21


def part(runs: pd.DataFrame, share: float, n: int) -> pd.DataFrame:
    """The n runs from a share of the log on."""
    return runs.iloc[int(share * len(runs)) :][:n]


def without(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    runs = runs.assign(**{column: None if runs[column].dtype == object else np.nan})
    return runs.assign(group_key=group_keys(runs.drop(columns="group_key"), GroupParams()))


def times(runs: pd.DataFrame, factor: Callable[[Floats], Floats]) -> pd.DataFrame:
    """The last runs, each so many times as long; factor: of the share of them that came before."""
    runs = runs[-MOST_RUNS:]
    return runs.assign(runtime_s=runs["runtime_s"] * factor(np.linspace(0, 1, len(runs))))


def busiest(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["user_name"].isin(runs["user_name"].value_counts().index[:5])]


def with_absurd(runs: pd.DataFrame) -> pd.DataFrame:
    draw = np.random.default_rng(0).random(len(runs))
    return runs.assign(runtime_s=np.where(draw < 0.015, 0.0, np.where(draw < 0.03, 1e7, runs["runtime_s"])))


def twice(runs: pd.DataFrame) -> pd.DataFrame:
    later = runs["submitted_at"] + pd.Timedelta("5s")
    return pd.concat([runs, runs.assign(run_id=runs["run_id"].astype(str) + "-again", submitted_at=later)])


def steady(runs: pd.DataFrame, deviation: float) -> pd.DataFrame:
    usual_s = runs.groupby("group_key")["runtime_s"].transform("median")
    return runs.assign(runtime_s=usual_s * (1 + deviation * np.random.default_rng(0).normal(size=len(runs))))


def n_runs(runs: pd.DataFrame) -> pd.Series:
    return runs.groupby("group_key")["run_id"].transform("size")


STRANGE: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "its first 4,000 runs": lambda runs: part(runs, 0, MOST_RUNS),
    "2,000 runs": lambda runs: part(runs, 0.4, 2_000),
    "300 runs": lambda runs: part(runs, 0.3, 300),
    "five users": busiest,
    "no user": lambda runs: without(part(runs, 0.3, MOST_RUNS), "user_name"),
    "no time limit": lambda runs: without(part(runs, 0.3, MOST_RUNS), "requested_runtime_s"),
    "jobs that run often": lambda runs: runs[n_runs(runs) >= OFTEN],
    "jobs that run rarely": lambda runs: runs[n_runs(runs) < RARELY],
    "whole minutes": lambda runs: runs.assign(runtime_s=60 * np.ceil(runs["runtime_s"] / 60)),
    "three times as long in the end": lambda runs: times(runs, lambda share: 3.0**share),
    "a faster machine amid the test": lambda runs: times(runs, lambda share: np.where(share < 0.9, 1.0, 0.6)),
    "3 % absurd runtimes": with_absurd,
    "every run submitted twice": lambda runs: twice(part(runs, 0.1, MOST_RUNS // 2)),
    "jobs that hardly vary": lambda runs: steady(runs, 0.001),
    "jobs that never vary": lambda runs: steady(runs, 0.0),
}

SHORT: list[tuple[str, Callable[[pd.DataFrame], pd.DataFrame]]] = [
    ("faster or slower amid the test", lambda runs: times(runs, lambda share: np.where(share < 0.9, 1.0, 0.6))),
    ("faster or slower amid the test", lambda runs: times(runs, lambda share: np.where(share < 0.85, 1.0, 2.0))),
    ("jobs hardly or never vary", STRANGE["jobs that never vary"]),
    ("jobs hardly or never vary", STRANGE["jobs that hardly vary"]),
]


def evaluated(runs: pd.DataFrame) -> tuple[pd.DataFrame, RuntimeEvaluation, str]:
    """A log by the key of jobs that predicts best, what is predicted of it, and which other prediction is the best."""
    runs = runs.sort_values(["submitted_at", "run_id"], kind="stable")[-MOST_RUNS:].reset_index(drop=True)
    runs = runs.assign(ended_at=pd.Series(pd.NaT, index=runs.index, dtype="datetime64[us]"))  # runtimes may differ now
    runs = choose_key(runs, PARAMS.predict.characterise.split).regrouped(runs)
    found = evaluate_runtimes(prepare(runs, PARAMS.predict.characterise), {}, PARAMS)
    return runs, found, min(found.differences, key=lambda name: found.scored[name].measures["crps"])


def row(runs: pd.DataFrame) -> str:
    """The figures of one log."""
    if len(runs) < LEAST_RUNS:
        return f"{len(runs)} runs"
    runs, found, best = evaluated(runs)
    crps = {name: scored.measures["crps"] for name, scored in found.scored.items()}
    apart, model = found.differences[best], found.scored["model"]
    interval = "–" if apart.low is None else f"[{apart.low:.3g}, {apart.high:.3g}]"
    held = f"{min(model.tenths):.2f} to {max(model.tenths):.2f}" if model.tenths else "–"
    covered = f"{model.measures['coverage90']:.3f} | {held}"
    sizes = f"{len(runs):,}, {runs['group_key'].nunique():,}"
    return f"{sizes} | {crps['model']:.4g} | {crps[best]:.4g} ({best}) | {interval} | {covered}"


def short_rows(runs: pd.DataFrame) -> Iterator[str]:
    """Of short parts of a log, every other one changed: the geometric mean of the CRPS over that of the best other one,
    left out where that is 0, and the mean coverage."""
    rng, figures = np.random.default_rng(SEED), defaultdict(list)
    for i in range(N_SHORT):
        n = LENGTHS[i % len(LENGTHS)] if LENGTHS[i % len(LENGTHS)] <= LONGEST_SHARE * len(runs) else USUAL_LENGTH
        first = int(rng.integers(0, len(runs) - n + 1))
        short = runs[first : first + n].reset_index(drop=True)
        kind, change = SHORT[i // 2 % len(SHORT)] if i % 2 else ("as they are", pd.DataFrame.copy)
        _, found, best = evaluated(change(short))
        model, other = (found.scored[name].measures for name in ("model", best))
        figures[kind].append((model["crps"] / other["crps"] if other["crps"] else np.nan, model["coverage90"]))
    for kind, pairs in figures.items():
        ratios, shares = np.array(pairs).T
        yield f"{kind} | {len(pairs)} | {np.exp(np.nanmean(np.log(ratios))):.3f} | {shares.mean():.3f}"


def main(path: str, time_zone: str = "", *renamed: str) -> None:
    runs = first_runs(path, ReadParams(time_zone=time_zone, columns=dict(one.split("=") for one in renamed)))
    print(f"| {Path(path).name} | runs, jobs | model | best other | model − it [95 %] | coverage | by tenths |")
    print(f"|{'---|' * 7}")
    with threadpool_limits(1):
        for name, change in STRANGE.items():
            try:
                print(f"| {name} | {row(change(runs))} |", flush=True)
            except BadInput as error:
                print(f"| {name} | {error} |", flush=True)
        print("\n| short logs | logs | model / best other | coverage |\n|---|---|---|---|")
        for line in short_rows(runs):
            print(f"| {line} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
