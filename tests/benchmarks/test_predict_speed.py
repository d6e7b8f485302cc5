"""Scoring 100,000 submissions against a log of 300,000 drawn runs of 9,000 jobs, with a model of the default size.

Scoring is all that a submission needs: features, the runs of peers, distributions and four quantiles. CPU time of one
thread, without imports and without the training."""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from tasks.jobs.distribution import Floats
from tasks.jobs.normalisation import bins_of
from tasks.jobs.params import BinParams, PredictParams
from tasks.jobs.predict.features import HistoricShapes, make_features
from tasks.jobs.predict.peers import histories, peers_of
from tasks.jobs.predict.predictor import fit_predictor
from tasks.jobs.predict.trained import Trained
from tasks.jobs.shapes import ShapeSet

pytestmark = pytest.mark.bench

N_PAST, N_ASKED, N_JOBS, N_SHAPES, N_TRAINED_ON = 300_000, 100_000, 9_000, 8, 30_000
LEVELS = (0.5, 0.9, 0.95, 0.99)
MOST_CPU_S = 8.0


def draw_log(n_runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """Runs as read_runs has them, one every 90 s; sizes of jobs differ a hundredfold; inputs are known."""
    job = (N_JOBS * rng.random(n_runs) ** 2).astype(int)
    inputs = np.exp(rng.normal(0, 0.5, n_runs))
    noise = np.exp((0.02 + (job % 17) / 40) * rng.normal(size=n_runs))
    runtime_s = 5 * np.exp((job % 83) / 12) * inputs * noise * np.where(rng.random(n_runs) < 0.02, 12, 1)
    submitted_at = pd.Series(pd.Timestamp("2025-01-01") + pd.to_timedelta(90 * np.arange(n_runs), unit="s"))
    ended_at = (submitted_at + pd.to_timedelta(runtime_s, unit="s")).astype("datetime64[us]")
    return pd.DataFrame(
        {
            "run_id": [f"run-{i}" for i in range(n_runs)],
            "group_key": np.char.add("extract_daily#", job.astype(str)).astype(object),
            "submitted_at": submitted_at.astype("datetime64[us]"),
            "started_at": submitted_at.astype("datetime64[us]"),
            "ended_at": ended_at,
            "runtime_s": runtime_s,
            "wait_s": rng.exponential(3, n_runs),
            "input_bytes": 1e8 * inputs,
            "requested_cpus": rng.integers(1, 9, n_runs).astype(float),
        }
    )


def train(past: pd.DataFrame, rng: np.random.Generator) -> Trained:
    """A model of the default size, of the last runs of `past`; shapes are drawn, since only their number costs."""
    params = PredictParams()
    medians = past.groupby("group_key")["runtime_s"].median()
    shapes = {}
    for kind in ("ratio", "delta"):
        bins = bins_of(kind, BinParams())
        centres = rng.dirichlet(np.ones(bins.n_bins), N_SHAPES)
        shapes[kind] = ShapeSet(bins, centres, np.ones(N_SHAPES, dtype=int), 0.0)
    none = pd.DataFrame({"run_id": pd.Series(dtype=str), "residual": pd.Series(dtype=float)})
    untrained = Trained(None, shapes, {}, medians, none, params)  # type: ignore[arg-type]
    last = slice(len(past) - N_TRAINED_ON, None)
    features = _features(untrained, past[last].reset_index(drop=True)).filter(regex="^(?!.*shape_)")
    learn_from = past[last].reset_index(drop=True)
    model, _ = fit_predictor(
        features, histories(peers_of(learn_from, learn_from)), learn_from, n_trees=params.n_trees, seed=0
    )
    return Trained(model, shapes, {}, medians, none, params)


def _features(untrained: Trained, past: pd.DataFrame) -> pd.DataFrame:
    medians = {str(key): float(value) for key, value in untrained.history_s.items()}
    return make_features(past, past, HistoricShapes(untrained.shapes, medians))


def test_100_000_submissions_are_scored_in_less_than_8_s_of_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    runs = draw_log(N_PAST + N_ASKED, rng)
    past, rows = runs[:N_PAST], runs[N_PAST:].reset_index(drop=True)
    parts: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        found = work()
        parts[name] = time.process_time() - started
        return found

    with threadpool_limits(1):
        trained = train(past, rng)
        features, known = timed("features and peers", lambda: trained.known(rows, past))
        told = timed("distributions", lambda: trained.model.predict(features, known))
        levels = np.broadcast_to(LEVELS, (N_ASKED, len(LEVELS)))
        quantiles: Floats = timed("quantiles", lambda: told.quantile(levels))
    with capsys.disabled():
        print(f"\n{sum(parts.values()):.2f} s of CPU, load {os.getloadavg()[0]:.1f}")
        for name, cpu_s in parts.items():
            print(f"  {name:22} {cpu_s:6.2f}")
    assert quantiles.shape == (N_ASKED, len(LEVELS))
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert sum(parts.values()) < MOST_CPU_S
