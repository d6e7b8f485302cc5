"""Triplet margin loss by hand; against pytorch-metric-learning in test_triplet_peer.py."""

import pytest
import torch

from tasks.nodes.perona import losses as triplet
from tasks.nodes.perona.losses import spread_over_each, triplet_margin


def drawn(seed, n=24, n_types=3):
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(n, 4, generator=generator)
    return vectors, torch.randint(n_types, (n,), generator=generator)


def test_three_vectors_by_hand():
    # a at 0° and b at 60° of one type, c at 90° of another: cos ab = 1/2, ac = 0, bc = √3/2
    # (a, b, c): 0 - 1/2 + 0.05 < 0; (b, a, c): 0.8660254 - 0.5 + 0.05 = 0.4160254; c has no positive
    vectors = torch.tensor([[1.0, 0.0], [0.5, 0.8660254], [0.0, 1.0]], dtype=torch.float64)
    assert triplet_margin(vectors, torch.tensor([0, 0, 1]), 0.05, 0.2).item() == pytest.approx(0.4160254)
    # margin 0.6: (a, b, c) gives 0.1 and (b, a, c) 0.9660254, but only the second has s_ap - s_an = -0.37 <= 0.2
    assert triplet_margin(vectors, torch.tensor([0, 0, 1]), 0.6, 0.2).item() == pytest.approx(0.9660254)
    assert triplet_margin(vectors, torch.tensor([0, 0, 1]), 0.6, 1.0).item() == pytest.approx((0.1 + 0.9660254) / 2)


def test_it_is_the_same_a_few_anchors_at_a_time(monkeypatch):
    vectors, type_of = drawn(4)
    whole = triplet_margin(vectors, type_of, 0.05, 0.2)
    monkeypatch.setattr(triplet, "ANCHORS_AT_ONCE", 5)
    torch.testing.assert_close(triplet_margin(vectors, type_of, 0.05, 0.2), whole)


def test_lengths_do_not_count():
    vectors, type_of = drawn(2)
    lengths = torch.linspace(0.1, 9, len(vectors))[:, None]
    torch.testing.assert_close(
        triplet_margin(vectors * lengths, type_of, 0.05, 0.2), triplet_margin(vectors, type_of, 0.05, 0.2)
    )


def test_types_in_directions_of_their_own_cost_nothing():
    vectors = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    assert triplet_margin(vectors, torch.tensor([0, 0, 1, 1]), 0.05, 0.2).item() == 0


def test_without_a_triplet_it_is_0():
    vectors, _ = drawn(0, n=3)
    for type_of in ([0, 0, 0], [0, 1, 2]):
        assert triplet_margin(vectors, torch.tensor(type_of), 0.05, 0.2).item() == 0
    assert triplet_margin(vectors[:0], torch.zeros(0, dtype=torch.int64), 0.05, 0.2).item() == 0


def test_some_vectors_of_each_type_are_taken_evenly():
    # multiples of 0.618 for places 0 to 3, whole numbers aside: 0, 0.618, 0.236, 0.854
    # type 1 at 0, 2, 5, 6: 2 of 4 are its first and third; type 0 at 1, 4: both
    type_of = torch.tensor([1, 0, 1, -1, 0, 1, 1])
    assert spread_over_each(type_of, 2).tolist() == [True, True, False, False, True, True, False]
    assert spread_over_each(type_of, 1).tolist() == [True, True, False, False, False, False, False]
    for all_of_them in (4, 100):
        assert spread_over_each(type_of, all_of_them).tolist() == [True, True, True, False, True, True, True]
    assert spread_over_each(type_of[:0], 2).shape == (0,)


@pytest.mark.parametrize("count", [1, 2, 5, 16, 39])
def test_as_many_are_taken_as_are_asked_for(count):
    assert spread_over_each(torch.tensor([3, 7]).repeat(40), count).sum() == 2 * count


def test_encoded_and_inferred_vectors_of_every_slot_are_taken():
    """64 graphs of one type: 4 encoded vectors of each, then 3 inferred ones of each; 448 / 16 is a multiple of 4."""
    taken = torch.nonzero(spread_over_each(torch.zeros(448, dtype=torch.int64), 16)).squeeze(1)
    encoded, inferred = taken[taken < 256], taken[taken >= 256] - 256
    assert len(encoded) == 9 and len(inferred) == 7  # in proportion: 9.1 and 6.9
    assert set((encoded % 4).tolist()) == {0, 1, 2, 3} and set((inferred % 3).tolist()) == {0, 1, 2}
    assert len(set((encoded // 4).tolist())) == 9  # each of another graph
