"""p-norms, also of vectors whose powers float32 cannot hold."""

import pytest
import torch

from tasks.nodes.perona.network import p_norms


def test_values_by_hand():
    # √(3² + 4²) = 5; |1| + |-2| = 3; (1 + 1)^(1/10) = 1.0717735
    assert p_norms(torch.tensor([[3.0, -4.0]]), 2).item() == pytest.approx(5)
    assert p_norms(torch.tensor([[1.0, -2.0]]), 1).item() == pytest.approx(3)
    assert p_norms(torch.tensor([[1.0, 1.0]]), 10).item() == pytest.approx(1.0717735)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_sizes_whose_tenth_power_does_not_fit(size):
    vectors = torch.tensor([[size, size]], requires_grad=True)
    norms = p_norms(vectors, 10)
    norms.sum().backward()
    assert norms.item() == pytest.approx(1.0717735 * size)
    # of each entry (v / norm)^9 = 1.0717735^-9 = 0.5358867
    assert vectors.grad[0].tolist() == pytest.approx([0.5358867] * 2)


def test_the_gradient_is_that_of_the_norm():
    vectors = torch.tensor([[3.0, -4.0]], requires_grad=True)
    p_norms(vectors, 2).sum().backward()
    assert vectors.grad[0].tolist() == pytest.approx([0.6, -0.8])  # v / norm


@pytest.mark.parametrize("power", [1.0, 2.0, 10.0])
def test_a_row_of_zeros_has_a_logarithm_and_no_gradient(power):
    vectors = torch.zeros(1, 3, requires_grad=True)
    told = p_norms(vectors, power).log()
    told.sum().backward()
    assert torch.isfinite(told).all() and vectors.grad.tolist() == [[0.0, 0.0, 0.0]]


def test_it_is_torchs_norm():
    vectors = torch.randn(20, 7, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(p_norms(vectors, 10.0), torch.linalg.vector_norm(vectors, ord=10, dim=1))
