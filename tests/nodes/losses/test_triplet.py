"""Triplet margin loss by hand; against pytorch-metric-learning in test_triplet_peer.py."""

import pytest
import torch

from tasks.nodes.losses import triplet
from tasks.nodes.losses.triplet import first_of_each, triplet_margin


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


def test_some_vectors_of_each_type_are_taken():
    type_of = torch.tensor([1, 0, 1, -1, 0, 1])
    assert first_of_each(type_of, 1).tolist() == [True, True, False, False, False, False]
    assert first_of_each(type_of, 2).tolist() == [True, True, True, False, True, False]
    assert first_of_each(type_of, 0).tolist() == [True, True, True, False, True, True]
