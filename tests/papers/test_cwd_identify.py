"""CWD (Hossain et al. 2022), V-C and V-D, worked out by hand: what the classifier reads and what an answer rests on."""

from math import log

import numpy as np
import pytest

from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.identify.evidence import EVIDENCE, LEAST, beyond_threshold, evidence_of
from tasks.workloads.identify.features import features_of, phases_to_tell
from tasks.workloads.identify.fingerprinting import FingerprintMaker
from tasks.workloads.identify.model import phase_means
from tasks.workloads.identify.params import FingerprintParams
from tasks.workloads.identify.stationarity import dickey_fuller_each
from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.phases import STATISTICS, bounds_of
from tasks.workloads.similarity.thresholds import Spread
from tasks.workloads.telemetry import Counter, Telemetry

K = len(STATISTICS)


def made(run_id, *phases_of_counters):
    """A fingerprint whose summaries are the phase's number in every statistic."""
    summaries = tuple(np.repeat(np.arange(1.0, n + 1), K).reshape(n, K) for n in phases_of_counters)
    bounds = tuple(bounds_of(list(range(1, n)), 10) for n in phases_of_counters)
    names = tuple("abc"[: len(summaries)])
    return Fingerprint(run_id, None, names, bounds, summaries, bounds[0], np.zeros((1, K * len(names))))


def test_the_dickey_fuller_statistic_of_five_samples_by_hand():
    """y = 0, 1, 1, 0, 1: steps 1, 0, −1, 1 after levels 0, 1, 1, 0. Slope −1.5 / 1, intercept 1, residuals 0, ½, −½, 0:
    variance ½ / 2, error √(¼ / 1) = ½, t = −1.5 / ½ = −3."""
    params = PhaseParams(adf_min_samples=5, adf_lags=0)
    values = np.array([0.0, 1, 1, 0, 1])
    assert dickey_fuller_each(values, np.zeros(5, dtype=np.int64), 1, params).tolist() == [pytest.approx(-3)]
    in_other_units = dickey_fuller_each(7 - 1000 * values, np.zeros(5, dtype=np.int64), 1, params)
    assert in_other_units.tolist() == [pytest.approx(-3)]


def test_the_table_is_n_by_q_by_k_with_q_the_most_phases_in_training():
    training = [made("r1", 2, 1), made("r2", 1, 3)]
    q = phases_to_tell(training, 0)
    assert q == 3
    table = features_of(training, q)
    assert table.values.shape == (2, 2 * q * K)  # n = 2 counters
    assert table.values[0].reshape(2, q, K)[:, :, 0].tolist() == [[1, 2, 0], [1, 0, 0]]
    assert table.names[0] == "a · phase 1 · mean" and len(table.names) == table.values.shape[1]


def test_a_longer_run_has_the_rest_of_its_phases_in_the_last_column():
    """Six phases where training had three: the last holds 3 to 6, of 1, 1, 1 and 5 samples: (3 + 4 + 5 + 30) / 8."""
    table = features_of([made("long", 6)], 3).values.reshape(1, 3, K)
    assert table[0, :, 0].tolist() == [1, 2, pytest.approx(42 / 8)]


def test_a_smaller_limit_than_the_training_gives_tells_fewer_phases_apart():
    assert phases_to_tell([made("r1", 4, 2)], 3) == 3
    assert phases_to_tell([made("r1", 2, 2)], 3) == 2


def test_the_threshold_that_suits_best_counts():
    """Reach of redis 10 + 2 · 2 = 14, of cnn 4: the least of 7 / 14 and 8 / 4, and of 56 / 14 and 16 / 4."""
    spreads = {"redis": Spread(10, 2, 6), "cnn": Spread(4, 0, 1)}
    distances = np.array([[7.0, 9, 8], [60, 56, 16]])
    found = beyond_threshold(distances, ["redis", "redis", "cnn"], spreads, 2)
    assert found.tolist() == [0.5, 4]


def test_evidence_by_hand():
    """Certain and near; torn between two and far from both."""
    probabilities = np.array([[1.0, 0.0], [0.5, 0.5]])
    means = np.array([[2.0, 12.0], [8.0, 12.0]])
    usual = np.array([2.0, 3.0])  # relative: 1 and 4; 4 and 4
    found = evidence_of(probabilities, means, usual, np.array([1.0, 2.0]))
    sure, torn = (dict(zip(EVIDENCE, row, strict=True)) for row in found)
    expected = {"entropy": 0, "apart": 0, "far": log(2), "ratio": log(1 / 4), "disagreement": 0, "threshold": 0}
    assert sure == pytest.approx(expected | {"doubt": log(LEAST / (1 + LEAST))}, abs=1e-9)
    expected = {"entropy": 1, "apart": log(4), "far": log(8), "ratio": 0, "disagreement": 0, "threshold": log(2)}
    assert torn == pytest.approx(expected | {"doubt": 0}, abs=1e-9)
    assert all(torn[name] >= sure[name] for name in EVIDENCE)


def test_words_rest_on_the_raw_means_of_the_phases_of_the_workload():
    values = np.array([[1.0, 10], [3, np.nan], [5, 20], [7, 40]])
    counters = (Counter("a"), Counter("b"), Counter("c"))
    run = Telemetry("r", counters[:2], np.arange(4.0), values)
    found = phase_means(run, FingerprintMaker(counters, FingerprintParams(), None), bounds_of([2], 4))
    np.testing.assert_array_equal(found, [[2, 10, np.nan], [6, 30, np.nan]])
