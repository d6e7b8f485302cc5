"""Reconstruction errors by hand."""

import pytest
import torch

from tasks.nodes.perona.losses import own_squared_error, squared_error

DECODED = torch.tensor([[1.0, 2.0, 9.0], [0.0, 4.0, 0.0]])
X = torch.tensor([[0.0, 2.0, 0.0], [0.0, 1.0, 0.0]])
IS_OWN = torch.tensor([[True, True, False], [False, True, False]])


def test_the_papers_counts_every_column():
    assert squared_error(DECODED, X).item() == pytest.approx((1 + 81 + 9) / 6)


def test_ours_counts_own_metrics_and_every_vertex_alike():
    # vertex 0: (1² + 0²) / 2 = 0.5; vertex 1: 3² / 1 = 9
    assert own_squared_error(DECODED, X, IS_OWN, torch.tensor([True, True])).item() == pytest.approx(4.75)
    assert own_squared_error(DECODED, X, IS_OWN, torch.tensor([True, False])).item() == pytest.approx(0.5)


def test_a_vertex_without_own_metrics_does_not_count():
    is_own = IS_OWN & torch.tensor([[False], [True]])
    assert own_squared_error(DECODED, X, is_own, torch.tensor([True, True])).item() == pytest.approx(9)


def test_without_a_counted_vertex_it_is_0():
    assert own_squared_error(DECODED, X, IS_OWN, torch.tensor([False, False])).item() == 0


def test_what_was_filled_in_gets_no_gradient():
    decoded = DECODED.clone().requires_grad_()
    own_squared_error(decoded, X, IS_OWN, torch.tensor([True, True])).backward()
    assert torch.equal(decoded.grad != 0, IS_OWN & (DECODED != X))
