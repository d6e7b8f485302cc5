"""Stressed below calm, by hand, in the paper's form and in ours."""

import math

import pytest
import torch

from tasks.nodes.perona.losses import (
    below_inferred,
    lowest_norms,
    margin_stressed_ranking,
    ratio_stressed_ranking,
    stressed_pairs,
)

PAIR = torch.tensor([[1], [0]])  # vertex 1 is stressed, 0 calm
NORMS, TRUTH = torch.tensor([1.0, 1.0]), torch.tensor([2.0, 1.0])
ONE = torch.tensor(1)


def test_pairs_are_of_a_stressed_vertex_and_a_calm_one():
    pairs = torch.tensor([[0, 0, 1], [1, 2, 2]])
    assert stressed_pairs(pairs, torch.tensor([False, False, True])).tolist() == [[2, 2], [0, 1]]
    assert stressed_pairs(pairs, torch.tensor([True, False, True])).tolist() == [[0, 2], [1, 1]]
    assert stressed_pairs(pairs, torch.tensor([False, False, False])).shape == (2, 0)


def test_lowest_norms_are_of_calm_executions_less_their_deviation():
    # type 0: calm 1 and 3, deviation √2; type 1: a single 2; type 2: a stressed one alone
    found = lowest_norms(
        torch.tensor([1.0, 3.0, 0.5, 2.0, 4.0]),
        torch.tensor([0, 0, 0, 1, 2]),
        torch.tensor([True, True, False, True, False]),
        3,
    )
    assert found.tolist() == pytest.approx([1 - math.sqrt(2), 2, math.nan], nan_ok=True)


def test_the_papers_margin():
    # r = max(2, 1) / 1.6 = 1.25, q = 0.8: max(0, 1 - 0.8·1) + max(0, 1 / 0.8 - 1) = 0.2 + 0.25
    lowest = torch.full((2,), 1.6)
    assert margin_stressed_ranking(NORMS, TRUTH, lowest, PAIR, ONE).item() == pytest.approx(0.45)
    assert margin_stressed_ranking(NORMS, TRUTH, lowest, PAIR, torch.tensor(2)).item() == pytest.approx(0.225)
    # r = 2 / 2.5 = 0.8, q = 0.8 as well
    assert margin_stressed_ranking(NORMS, TRUTH, lowest / 0.64, PAIR, ONE).item() == pytest.approx(0.45)
    below = torch.tensor([1.0, 0.79])
    assert margin_stressed_ranking(below, TRUTH, lowest, PAIR, ONE).item() == 0


@pytest.mark.parametrize("lowest", [math.nan, 0.0, -1.0])
def test_the_papers_margin_without_a_usable_lowest_norm_is_the_calm_norm(lowest):
    told = torch.full((2,), lowest)
    assert margin_stressed_ranking(NORMS, TRUTH, told, PAIR, ONE).item() == 0
    # q = 1: twice 1.5 - 1
    assert margin_stressed_ranking(torch.tensor([1.0, 1.5]), TRUTH, told, PAIR, ONE).item() == pytest.approx(1)


def test_ours_asks_for_as_much_as_performance_fell():
    # ln(n_c / n_m) = 0, ln(P_c / P_m) = -0.5: 0.5 too much
    told = torch.tensor([0.25, -0.25])
    assert ratio_stressed_ranking(NORMS, told, PAIR).item() == pytest.approx(0.5)
    assert ratio_stressed_ranking(torch.exp(told), told, PAIR).item() == pytest.approx(0, abs=1e-6)
    # performance rose, or is unknown: not above the calm one, ln(e / 1) = 1 too much
    larger = torch.tensor([1.0, math.e])
    for performance in ([0.0, 0.5], [0.0, math.nan]):
        assert ratio_stressed_ranking(larger, torch.tensor(performance), PAIR).item() == pytest.approx(1)
        assert ratio_stressed_ranking(NORMS, torch.tensor(performance), PAIR).item() == 0


def test_a_stressed_norm_lies_below_the_promised_one():
    # ln(2 / 1) of the second; the first is below its promise, the third does not count
    norms = torch.tensor([1.0, 2.0, 9.0], requires_grad=True)
    promised = torch.tensor([3.0, 1.0, 1.0], requires_grad=True)
    loss = below_inferred(norms, promised, torch.tensor([True, True, False]))
    assert loss.item() == pytest.approx(math.log(2) / 2)
    loss.backward()
    assert norms.grad.tolist() == pytest.approx([0, 0.25, 0]) and promised.grad is None


def test_without_a_stressed_vertex_all_are_0():
    none = PAIR[:, :0]
    assert margin_stressed_ranking(NORMS, TRUTH, TRUTH, none, torch.tensor(0)).item() == 0
    assert ratio_stressed_ranking(NORMS, TRUTH, none).item() == 0
    assert below_inferred(NORMS, NORMS, torch.tensor([False, False])).item() == 0
