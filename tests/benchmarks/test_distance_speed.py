"""Manhattan DTW beside tslearn's, on one thread in one run."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tasks.workloads.evaluate.distances import warping_distance

pytestmark = pytest.mark.bench
FINGERPRINTS, LENGTHS = 60, (20, 200)
AGAINST_TSLEARN = {5: 40, 72: 8}  # dimensions: least times faster
PEER_SEQUENCES = 16  # of the 60: tslearn takes milliseconds a pair


def walks(n: int, dimensions: int, seed: int = 0) -> list[Any]:
    """n sequences of 20 to 200 points; workloads lie apart, runs of one close together."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(10, dimensions)) * 3
    return [
        centres[i % 10] + 0.1 * rng.normal(size=(int(rng.integers(*LENGTHS)), dimensions)).cumsum(axis=0)
        for i in range(n)
    ]


def cpu_s(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def pairs_of(some: list[Any], distance: Callable[[Any, Any], float]) -> Any:
    return np.array([[distance(one, other) for other in some] for one in some])


def tslearn_distance(one: Any, other: Any) -> float:
    from tslearn.metrics import dtw_path_from_metric

    return float(dtw_path_from_metric(one, other, metric="cityblock")[1])


@pytest.mark.parametrize("dimensions", AGAINST_TSLEARN)
def test_all_pairs_are_many_times_faster_than_tslearn(dimensions: int) -> None:
    some = walks(FINGERPRINTS, dimensions)
    with threadpool_limits(1):
        pairs_of(some[:2], warping_distance), pairs_of(some[:1], tslearn_distance)  # compiled before the clock starts
        ours, ours_s = cpu_s(lambda: pairs_of(some, warping_distance))
        theirs, theirs_s = cpu_s(lambda: pairs_of(some[:PEER_SEQUENCES], tslearn_distance))
    np.testing.assert_allclose(ours[:PEER_SEQUENCES, :PEER_SEQUENCES], theirs, rtol=1e-12, atol=1e-9)
    cells = [[len(a) * len(b) for b in some] for a in some]
    ours_cells = np.sum(cells)
    theirs_cells = np.array(cells)[:PEER_SEQUENCES, :PEER_SEQUENCES].sum()
    ratio = (theirs_s / theirs_cells) / (ours_s / ours_cells)
    print(f"\n{dimensions} dimensions: {ours_s:.3f} s for {FINGERPRINTS} fingerprints, {ratio:.0f} times tslearn")
    assert ratio >= AGAINST_TSLEARN[dimensions]
