"""Manhattan DTW beside tslearn's, on one thread in one run, and what lower bounds spare."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tasks.workloads.similarity.dtw import distances, pairwise
from tasks.workloads.similarity.nearest import find_nearest
from tasks.workloads.similarity.sequences import pack

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


def test_lower_bounds_skip_what_cannot_be_nearest() -> None:
    some = walks(1_000, 5)
    packed = pack(some)
    find_nearest(pack(some[:3]), pack(some[:3]), skip_same=True)
    nearest, skipping_s = cpu_s(lambda: find_nearest(packed, packed, skip_same=True))
    full, full_s = cpu_s(lambda: pairwise(some))
    np.fill_diagonal(full, np.inf)
    assert (full.argmin(axis=1) == nearest.positions[:, 0]).all()
    share = nearest.n_computed / (len(some) * (len(some) - 1))
    print(f"\n1,000 fingerprints: {skipping_s:.1f} s instead of {full_s:.1f} s, {share:.1%} of the distances computed")
    assert skipping_s < full_s / 3


@pytest.mark.parametrize("n", [10, 100, 1_000, 10_000])
def test_cost_of_the_nearest_from_10_to_10_000_runs(n: int) -> None:
    rng = np.random.default_rng(1)
    runs = [one[: int(rng.integers(1, 6))] for one in walks(n, 72, seed=2)]  # phases of 30 samples
    packed = pack(runs)
    find_nearest(pack(runs[:3]), pack(runs[:3]), skip_same=True)
    asked = pack(runs[: min(n, 1_000)])
    _, seconds = cpu_s(lambda: find_nearest(asked, packed))
    print(f"\n{n:,} known runs: {1e3 * seconds / len(asked):.2f} ms of CPU to find the nearest of each")
