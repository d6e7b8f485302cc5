import numpy as np
import pytest

from tasks.workloads.fingerprints import Fingerprinting, feature_names, fingerprint, padded
from tasks.workloads.normalisation_params import NormalisationParams
from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.phases import STATISTICS
from tasks.workloads.telemetry import Counter, Telemetry

K = len(STATISTICS)


def jumps(values):
    """Change points where a series without noise jumps."""
    return (np.flatnonzero(np.abs(np.diff(values, axis=0)).sum(axis=1) > 1e-9) + 1).tolist()


def how(mode="counter", counters=("a", "b")):
    return Fingerprinting(counters, NormalisationParams(normalisation="zscore"), PhaseParams(mode=mode), jumps)


def run(**series):
    values = np.array(list(series.values()), dtype=float).T
    return Telemetry("r", tuple(Counter(name) for name in series), np.arange(len(values), dtype=float), values, "redis")


RUN = run(a=[0, 0, 2, 2], b=[1, 3, 3, 3])


def test_each_counter_has_its_own_phases():
    found = fingerprint(RUN, how())
    assert [one.tolist() for one in found.bounds] == [[0, 2, 4], [0, 1, 4]]
    assert found.summaries[0][:, 0].tolist() == [-1, 1]
    assert found.most_phases == 2


def test_shared_phases_are_those_of_all_counters():
    found = fingerprint(RUN, how("shared"))
    assert [one.tolist() for one in found.bounds] == [[0, 1, 2, 4]] * 2
    assert found.workload_phases.shape == (3, 2 * K)


def test_the_order_of_columns_in_a_file_does_not_matter():
    other = run(b=[1, 3, 3, 3], a=[0, 0, 2, 2])
    np.testing.assert_array_equal(padded(fingerprint(other, how()), 3), padded(fingerprint(RUN, how()), 3))


def test_padding_is_zero_and_comes_after_the_phases():
    table = padded(fingerprint(RUN, how()), 4).reshape(2, 4, K)
    assert not table[:, 2:].any()
    assert table[0, :2, 0].tolist() == [-1, 1]
    assert len(feature_names(("a", "b"), 4)) == table.size
    assert feature_names(("a", "b"), 4)[4 * K + 1] == "b · phase 1 · median"


def test_phases_beyond_the_training_are_averaged_by_their_length_into_the_last():
    found = fingerprint(run(a=[0, 1, 2, 2, 2]), how(counters=("a",)))
    means = found.summaries[0][:, 0]
    last = padded(found, 2).reshape(2, K)[1]
    assert last[0] == pytest.approx((means[1] + 3 * means[2]) / 4)


def test_a_counter_that_the_run_lacks_is_one_phase_of_zeros():
    found = fingerprint(RUN, how(counters=("a", "b", "c")))
    assert found.summaries[2].shape == (1, K) and not found.summaries[2].any()


def test_the_report_can_say_how_often_the_dickey_fuller_statistic_is_determined():
    assert fingerprint(RUN, how()).adf_determined_share == 0
    noise = np.random.default_rng(0).normal(size=40)
    alone = Fingerprinting(("a",), NormalisationParams(normalisation="zscore"), PhaseParams(), lambda values: [])
    assert fingerprint(run(a=noise), alone).adf_determined_share == 1
