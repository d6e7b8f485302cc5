"""Manhattan DTW beside tslearn's, on one thread in one run."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tasks.workloads.similarity.dtw import distances, pairwise

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


@pytest.mark.parametrize("dimensions", AGAINST_TSLEARN)
def test_all_pairs_are_many_times_faster_than_tslearn(dimensions: int) -> None:
    some = walks(FINGERPRINTS, dimensions)
    with threadpool_limits(1):
        pairwise(some[:2]), distances(some[:1], some[:1], "manhattan", "tslearn")  # compiled before the clock starts
        ours, ours_s = cpu_s(lambda: pairwise(some))
        few = some[:PEER_SEQUENCES]
        theirs, theirs_s = cpu_s(lambda: distances(few, few, "manhattan", "tslearn"))
    np.testing.assert_allclose(ours[:PEER_SEQUENCES, :PEER_SEQUENCES], theirs, rtol=1e-12, atol=1e-9)
    cells = [[len(a) * len(b) for b in some] for a in some]
    ours_cells = np.triu(cells, 1).sum()
    theirs_cells = np.array(cells)[:PEER_SEQUENCES, :PEER_SEQUENCES].sum()
    ratio = (theirs_s / theirs_cells) / (ours_s / ours_cells)
    print(f"\n{dimensions} dimensions: {ours_s:.3f} s for {FINGERPRINTS} fingerprints, {ratio:.0f} times tslearn")
    assert ratio >= AGAINST_TSLEARN[dimensions]
