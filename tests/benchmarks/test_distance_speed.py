"""Manhattan DTW beside tslearn's, on one thread in one run."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tasks.workloads.evaluate.distances import distances_of_pairs

pytestmark = pytest.mark.bench
FINGERPRINTS, LENGTH = 60, 110
AGAINST_TSLEARN = {5: 40, 72: 4}  # dimensions: least times faster; 63 to 82 and 6 to 7 were measured on a busy Xeon
PEER_SEQUENCES = 16  # of the 60: tslearn takes milliseconds a pair


def walks(n: int, dimensions: int, seed: int = 0) -> list[Any]:
    """n sequences of LENGTH points; workloads lie apart, runs of one close together."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(10, dimensions)) * 3
    return [centres[i % 10] + 0.1 * rng.normal(size=(LENGTH, dimensions)).cumsum(axis=0) for i in range(n)]


def cpu_s(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def pairs_by_tslearn(some: list[Any]) -> Any:
    from tslearn.metrics import dtw_path_from_metric

    return np.array([[dtw_path_from_metric(a, b, metric="cityblock")[1] for b in some] for a in some])


@pytest.mark.parametrize("dimensions", AGAINST_TSLEARN)
def test_all_pairs_are_many_times_faster_than_tslearn(dimensions: int) -> None:
    some = walks(FINGERPRINTS, dimensions)
    with threadpool_limits(1):
        distances_of_pairs(some[:2]), pairs_by_tslearn(some[:1])  # compiled before the clock starts
        ours, ours_s = cpu_s(lambda: distances_of_pairs(some))
        theirs, theirs_s = cpu_s(lambda: pairs_by_tslearn(some[:PEER_SEQUENCES]))
    np.testing.assert_allclose(ours[:PEER_SEQUENCES, :PEER_SEQUENCES], theirs, rtol=1e-12, atol=1e-9)
    ratio = (theirs_s / PEER_SEQUENCES**2) / (ours_s / (FINGERPRINTS * (FINGERPRINTS - 1) / 2))  # each pair once
    print(f"\n{dimensions} dimensions: {ours_s:.3f} s for {FINGERPRINTS} fingerprints, {ratio:.0f} times tslearn")
    assert ratio >= AGAINST_TSLEARN[dimensions]
