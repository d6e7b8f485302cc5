"""Change points of 72 counters × 60 runs of 30 samples and of series of 3,000 samples, beside bayescd in one run.

The same model on both sides (Student-t predictive, constant hazard) and the same run lengths at every step; then our
default, which mixes levels and lines, smooths and segments as well. CPU time of one thread, after compilation."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tasks.workloads.changepoints.finding import find_changepoints, find_changepoints_each
from tests.studies.change_points import PLAIN, plain_run_lengths

pytestmark = pytest.mark.bench

N_COUNTERS, N_RUNS, N_SAMPLES, N_LONG, LONG = 72, 60, 30, 4, 3000
TIMES_FASTER = 100
MOST_COMPILE_S = 20.0
ROOT = Path(__file__).parents[2]


def draw(n_samples: int, n_series: int, phase: int) -> np.ndarray:
    """Series (n_samples, n_series) whose level changes every `phase` samples, noise of deviation 1."""
    rng = np.random.default_rng(n_samples)
    levels = rng.normal(scale=4, size=(n_samples // phase + 1, n_series))
    return levels[np.arange(n_samples) // phase] + rng.normal(size=(n_samples, n_series))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    with threadpool_limits(1):
        started = time.process_time()
        found = work()
        return found, time.process_time() - started


def run_lengths_of_bayescd(values: np.ndarray) -> np.ndarray:
    models = pytest.importorskip("bayesian_changepoint_detection.bayesian_models")
    from bayesian_changepoint_detection.hazard_functions import constant_hazard
    from bayesian_changepoint_detection.online_likelihoods import StudentT

    lengths = np.empty(values.shape, dtype=np.int64)
    for i, column in enumerate(values.T):
        prior = StudentT(alpha=1, beta=1, kappa=1, mu=0)
        posterior, _ = models.online_changepoint_detection(column, lambda runs: constant_hazard(100, runs), prior)
        lengths[:, i] = posterior[1:, 1:].argmax(axis=0) + 1
    return lengths


@pytest.mark.parametrize(("n_samples", "n_series", "phase"), [(N_SAMPLES, N_COUNTERS * N_RUNS, 10), (LONG, N_LONG, 60)])
def test_run_lengths_are_those_of_bayescd_100_times_faster(
    capsys: pytest.CaptureFixture[str], n_samples: int, n_series: int, phase: int
) -> None:
    values = draw(n_samples, n_series, phase)
    plain_run_lengths(values[:, :1], PLAIN)  # compiles
    find_changepoints(values[:, 0])
    theirs, theirs_s = timed(lambda: run_lengths_of_bayescd(values))
    repeats = 5
    ours, ours_s = timed(lambda: [plain_run_lengths(values, PLAIN) for _ in range(repeats)])
    _, default_s = timed(lambda: find_changepoints_each(values))
    with capsys.disabled():
        print(f"\n{n_series} series of {n_samples} samples, load {os.getloadavg()[0]:.1f}")
        print(f"  bayescd             {theirs_s:8.3f} s")
        print(f"  the same run lengths{ours_s / repeats:8.3f} s, {theirs_s * repeats / ours_s:.0f} times faster")
        print(f"  our default, in full{default_s:8.3f} s, {theirs_s / default_s:.0f} times faster")
    assert (ours[0] == theirs).all()
    assert theirs_s * repeats / ours_s >= TIMES_FASTER


@pytest.mark.parametrize("phase", [100, 10**9], ids=["a change every 100 samples", "no change"])
def test_the_default_is_linear_to_120_000_samples(capsys: pytest.CaptureFixture[str], phase: int) -> None:
    find_changepoints(draw(300, 1, 100))
    lengths = (7500, 30_000, 120_000)
    seconds = [timed(lambda n=n: find_changepoints(draw(n, 1, phase)))[1] for n in lengths]  # type: ignore[misc]
    with capsys.disabled():
        print()
        for n, spent in zip(lengths, seconds, strict=True):
            print(f"  {n:7} samples, phases of {phase}: {spent:6.2f} s, {1e6 * spent / n:.1f} µs a sample")
    assert seconds[2] / seconds[1] < 4 * 1.5


def test_one_run_length_shared_by_72_counters(capsys: pytest.CaptureFixture[str]) -> None:
    values = draw(LONG, N_COUNTERS, 100)
    find_changepoints(values[:200])
    found, spent = timed(lambda: find_changepoints(values))
    with capsys.disabled():
        print(f"\n  {LONG} samples of {N_COUNTERS} counters, one shared run length: {spent:.2f} s")
    assert found.indices.tolist() == list(range(100, LONG, 100))


def test_a_first_call_ever_compiles_in_seconds_and_the_next_process_loads_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = (
        "import time, numpy as np; from tasks.workloads.changepoints.finding import find_changepoints;"
        "t = time.process_time(); find_changepoints(np.arange(40.0) > 20); print(time.process_time() - t)"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in (0, 1)
    ]
    cold, warm = map(float, runs)
    with capsys.disabled():
        print(f"\n  first call ever {cold:.1f} s of CPU, first call of a later process {warm:.2f} s")
    assert cold < MOST_COMPILE_S
    assert warm < 1
