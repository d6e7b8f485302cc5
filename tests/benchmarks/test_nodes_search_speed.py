"""The search of Perona's hyperparameters: 100 trials of Table II with ASHA on 2 cores, on 1,080 graphs."""

import os
import time

import numpy as np
import pytest

from tasks.nodes.params import ModelParams, NetworkSearchParams
from tasks.nodes.perona.hyperparameters import search
from tasks.nodes.perona.inputs import GraphSet

pytestmark = pytest.mark.bench
N_TRIALS = int(os.environ.get("BENCH_TRIALS", "100"))
MOST_MIN = 30.0


def test_100_trials_take_less_than_half_an_hour(
    campaign_graphs: tuple[GraphSet, GraphSet], capsys: pytest.CaptureFixture[str]
) -> None:
    train, validation = campaign_graphs
    started = time.perf_counter()
    found = search(train, validation, ModelParams(), NetworkSearchParams(n_trials=N_TRIALS))
    minutes = (time.perf_counter() - started) / 60
    epochs = found.trials["epochs"]
    with capsys.disabled():
        print(
            f"\n{len(found.trials)} trials in {minutes:.1f} min, {epochs.sum():,} epochs, load {os.getloadavg()[0]:.1f}"
        )
        print(f"  given up early: {(epochs < epochs.max()).sum()}, best validation loss {found.validation_loss:.3f}")
    assert np.isfinite(found.validation_loss)
    assert minutes * 100 / N_TRIALS < MOST_MIN
