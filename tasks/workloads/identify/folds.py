"""Blocks of training runs that are held out in turn: what lies close in time stays together.

Runs of one round, and neighbouring windows of one trace, are more alike than runs that will be asked about later; a
block taken at random would judge a run by its twin."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.telemetry import Telemetry

LEAST_ROUNDS = 2
MOST_IN_A_BLOCK = 0.6  # share of the runs


def folds_of(runs: Sequence[Telemetry], n_folds: int) -> NDArray[np.int64]:
    """The block of each run, 0 to n_folds − 1: (n_runs,).

    Blocks are whole rounds, in their order, where every run has one and no block holds most of the runs, as too few
    would be left to learn from; elsewhere stretches of each workload's runs in order of time, or of run id where there
    is no time."""
    rounds = sorted({run.round for run in runs if run.round is not None}, key=_as_counted)
    if len(rounds) >= LEAST_ROUNDS and all(run.round is not None for run in runs):
        place = {name: at * n_folds // max(n_folds, len(rounds)) for at, name in enumerate(rounds)}
        by_round = np.array([place[str(run.round)] for run in runs], dtype=np.int64)
        if np.bincount(by_round).max() <= MOST_IN_A_BLOCK * len(runs):
            return by_round
    found = np.zeros(len(runs), dtype=np.int64)
    for workload in {run.workload for run in runs}:
        own = [at for at, run in enumerate(runs) if run.workload == workload]
        for rank, at in enumerate(sorted(own, key=lambda at: _time_of(runs[at]))):
            found[at] = rank * n_folds // len(own)
    return found


def clusters_of(runs: Sequence[Telemetry]) -> list[str]:
    """What runs must share to be repetitions of each other: workload, and input where it is told."""
    return [f"{run.workload}\n{run.input or ''}" for run in runs]


def _as_counted(name: str) -> tuple[int, str]:
    return len(name), name  # "2" comes before "10"


def _time_of(run: Telemetry) -> tuple[str, str, float, str]:
    started = run.started_at.isoformat() if run.started_at else ""
    first_s = float(run.at_s[0]) if run.n_samples else 0.0
    return str(run.machine or ""), started, first_s, run.run_id
