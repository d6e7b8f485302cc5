"""Cross entropy of types by hand."""

import math

import pytest
import torch

from tasks.nodes.perona.losses import type_cross_entropy

LOGITS = torch.tensor([[math.log(3), 0.0], [0.0, 0.0], [5.0, 0.0]])
ALL = torch.tensor([True, True, True])


def test_the_mean_over_vertices_of_a_known_type():
    # vertex 0: p = 3 / 4, -ln p = 0.2876821; vertex 1: p = 1 / 2, 0.6931472; vertex 2 has a type that nobody trained
    found = type_cross_entropy(LOGITS, torch.tensor([0, 1, -1]), ALL)
    assert found.item() == pytest.approx((0.2876821 + 0.6931472) / 2)


def test_vertices_that_do_not_count_are_left_out():
    found = type_cross_entropy(LOGITS, torch.tensor([0, 1, 0]), torch.tensor([True, False, False]))
    assert found.item() == pytest.approx(0.2876821)


def test_without_a_vertex_it_is_0():
    assert type_cross_entropy(LOGITS, torch.tensor([-1, -1, -1]), ALL).item() == 0
    assert type_cross_entropy(LOGITS[:0], torch.zeros(0, dtype=torch.int64), ALL[:0]).item() == 0
