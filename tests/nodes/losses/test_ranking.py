"""Rankings by hand, in the paper's form and in ours."""

import pytest
import torch

from tasks.nodes.perona.losses import among, margin_ranking, pairs_of, ratio_ranking

PAIR = torch.tensor([[0], [1]])
ONE_TYPE = torch.zeros(3, dtype=torch.int64)
ALL = torch.tensor([True, True, True])


def test_edges_are_pairs_but_for_self_loops():
    edges = torch.tensor([[0, 1, 0, 1], [1, 1, 0, 2]])
    assert pairs_of(edges).tolist() == [[0, 1], [1, 2]]
    assert among(pairs_of(edges), torch.tensor([True, True, False])).tolist() == [[0], [1]]


def test_the_papers_ratio_of_norms_is_at_least_that_of_the_inputs():
    # X = (2, 1), n = (1, 2): (0, 1): t = 1, f = 2, -(1 - 2·2) = 3; (1, 0): t = -1, f = 1/2, 2 - 1/2 = 1.5
    norms, truth = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0])
    assert margin_ranking(norms, truth, PAIR).item() == pytest.approx(2.25)
    # n = (4, 1): a ratio of 4, more extreme than 2
    assert margin_ranking(torch.tensor([4.0, 1.0]), truth, PAIR).item() == 0


def test_the_papers_leaves_equal_truths_out():
    norms = torch.tensor([1.0, 2.0, 5.0])
    pairs = torch.tensor([[0, 0], [1, 2]])
    # (0, 1) is left out; (0, 2) as above with n = (1, 5), f = 2: 9 and 4.5
    assert margin_ranking(norms, torch.tensor([2.0, 2.0, 1.0]), pairs).item() == pytest.approx(6.75)
    assert margin_ranking(norms, torch.ones(3), pairs).item() == 0
    assert margin_ranking(norms, torch.ones(3), pairs[:, :0]).item() == 0


def test_our_ratio_of_norms_is_that_of_performance():
    # ln n - ln P = 1 - 0, 3 - 1, 0 - 0 = 1, 2, 0: |1 - 2|, |1 - 0|, |2 - 0|, mean 4/3
    norms, performance = torch.exp(torch.tensor([1.0, 3.0, 0.0])), torch.tensor([0.0, 1.0, 0.0])
    assert ratio_ranking(norms, performance, ONE_TYPE, ALL).item() == pytest.approx(4 / 3)
    assert ratio_ranking(7 * torch.exp(performance), performance, ONE_TYPE, ALL).item() == pytest.approx(0, abs=1e-6)


def test_our_pairs_are_of_one_type_counted_and_of_known_performance():
    norms = torch.exp(torch.tensor([1.0, 3.0, 0.0, 9.0, 9.0, 9.0, 9.0]))
    performance = torch.tensor([0.0, 1.0, 0.0, 0.0, torch.nan, 0.0, 0.0])
    type_of = torch.tensor([2, 2, 2, 0, 2, 2, -1])
    is_counted = torch.tensor([True, True, True, True, True, False, True])
    assert ratio_ranking(norms, performance, type_of, is_counted).item() == pytest.approx(4 / 3)


def test_our_sum_over_sorted_values_is_that_over_all_pairs():
    generator = torch.Generator().manual_seed(0)
    norms, performance = torch.rand(40, generator=generator) + 0.1, torch.randn(40, generator=generator)
    type_of = torch.randint(3, (40,), generator=generator)
    a = torch.log(norms) - performance
    pairs = [(i, j) for i in range(40) for j in range(i) if type_of[i] == type_of[j]]
    plain = torch.stack([(a[i] - a[j]).abs() for i, j in pairs]).mean()
    torch.testing.assert_close(ratio_ranking(norms, performance, type_of, torch.ones(40, dtype=torch.bool)), plain)


def test_our_gradient_brings_norms_to_their_ratio():
    norms = torch.tensor([1.0, 1.0], requires_grad=True)
    ratio_ranking(norms, torch.tensor([0.0, 1.0]), ONE_TYPE[:2], ALL[:2]).backward()
    assert norms.grad.tolist() == [1.0, -1.0]  # the faster one's has to grow


def test_without_a_pair_it_is_0():
    told = torch.ones(3), torch.zeros(3)
    assert ratio_ranking(*told, torch.tensor([0, 1, 2]), ALL).item() == 0
    assert ratio_ranking(*told, ONE_TYPE, ~ALL).item() == 0
