"""CWD (Hossain et al. 2022), V-C and V-D, worked out by hand: what the paper's classifier reads."""

import numpy as np
import pytest

from tasks.workloads.evaluate.paper import padded
from tasks.workloads.identify import phases
from tasks.workloads.identify.phases import STATISTICS, Fingerprint, bounds_of, dickey_fuller

K = len(STATISTICS)


def made(*phases_of_counters):
    """A fingerprint whose summaries are the phase's number in every statistic."""
    summaries = tuple(np.repeat(np.arange(1.0, n + 1), K).reshape(n, K) for n in phases_of_counters)
    bounds = tuple(bounds_of(list(range(1, n)), 10) for n in phases_of_counters)
    names = tuple("abc"[: len(summaries)])
    return Fingerprint("r", None, names, bounds, summaries, bounds[0], np.zeros((1, K * len(names))))


def test_the_dickey_fuller_statistic_of_five_samples_by_hand(monkeypatch):
    """y = 0, 1, 1, 0, 1: steps 1, 0, −1, 1 after levels 0, 1, 1, 0. Slope −1.5 / 1, intercept 1, residuals 0, ½, −½, 0:
    variance ½ / 2, error √(¼ / 1) = ½, t = −1.5 / ½ = −3."""
    monkeypatch.setattr(phases, "ADF_MIN_SAMPLES", 5)
    monkeypatch.setattr(phases, "ADF_LAGS", 0)
    values = np.array([0.0, 1, 1, 0, 1])
    assert dickey_fuller(values, np.zeros(5, dtype=np.int64), 1).tolist() == [pytest.approx(-3)]
    assert dickey_fuller(7 - 1000 * values, np.zeros(5, dtype=np.int64), 1).tolist() == [pytest.approx(-3)]


def test_the_table_is_n_by_q_by_k_with_q_the_most_phases_in_training():
    training = [made(2, 1), made(1, 3)]
    q = max(one.most_phases for one in training)
    assert q == 3
    table = padded(training[0], q)
    assert table.shape == (2 * q * K,)  # n = 2 counters
    assert table.reshape(2, q, K)[:, :, 0].tolist() == [[1, 2, 0], [1, 0, 0]]


def test_a_longer_run_has_the_rest_of_its_phases_in_the_last_column():
    """Six phases where training had three: the last holds 3 to 6, of 1, 1, 1 and 5 samples: (3 + 4 + 5 + 30) / 8."""
    assert padded(made(6), 3).reshape(3, K)[:, 0].tolist() == [1, 2, pytest.approx(42 / 8)]
