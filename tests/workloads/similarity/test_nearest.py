import numpy as np
import pytest

from tasks.workloads.similarity.dtw import pairwise
from tasks.workloads.similarity.nearest import _bounds, _boxes, find_nearest
from tasks.workloads.similarity.sequences import pack


def clusters(rng, n=60, d=4):
    centres = rng.normal(size=(6, d)) * 20
    return [centres[i % 6] + rng.normal(size=(int(rng.integers(1, 15)), d)) for i in range(n)]


@pytest.mark.parametrize("cost", ["manhattan", "squared"])
@pytest.mark.parametrize("k", [1, 3])
def test_skipping_finds_what_the_full_search_finds(cost, k):
    some = clusters(np.random.default_rng(0))
    full = pairwise(some, cost)
    np.fill_diagonal(full, np.inf)
    nearest = find_nearest(pack(some), pack(some), k, cost, skip_same=True)
    np.testing.assert_array_equal(nearest.positions, np.argsort(full, axis=1, kind="stable")[:, :k])
    np.testing.assert_allclose(nearest.distances, np.sort(full, axis=1)[:, :k], rtol=1e-12)


def test_a_bound_is_never_above_the_distance():
    rng = np.random.default_rng(3)
    some = [rng.normal(size=(int(rng.integers(1, 6)), 2)) for _ in range(40)]
    packed = pack(some)
    low, high = _boxes(packed)
    for number, cost in enumerate(["manhattan", "squared"]):
        bounds = _bounds(packed.points, packed.starts, low, high, packed.points, packed.starts, low, high, number)
        assert (bounds <= pairwise(some, cost) + 1e-12).all()


def test_most_distances_are_skipped_where_workloads_lie_apart():
    some = clusters(np.random.default_rng(1))
    assert find_nearest(pack(some), pack(some), skip_same=True).n_computed < 0.25 * len(some) ** 2


def test_ties_go_to_the_first():
    same = [np.ones((2, 1))] * 4
    assert find_nearest(pack([np.ones((3, 1))]), pack(same), 2).positions.tolist() == [[0, 1]]


def test_more_neighbours_than_there_are_is_refused():
    one = pack([np.ones((2, 1))])
    with pytest.raises(ValueError, match="1 nearest of 0 sequences"):
        find_nearest(one, one, skip_same=True)
