"""Errors, ranges and accuracies of networks whose answers are written out."""

import numpy as np
import pytest
import torch
from torch import nn

from tasks.nodes.evaluate.network import accuracy, learn_scale, measures_of, scores_follow, type_accuracy
from tasks.nodes.perona.inputs import Inputs
from tasks.nodes.perona.params import ModelParams, NetworkParams


class Written(nn.Module):
    """The fingerprint is the input's first four columns, what it decodes to a constant, the type the larger column."""

    def __init__(self, decoded):
        super().__init__()
        self.params = ModelParams(network=NetworkParams(hidden=4))
        self.decoded = torch.tensor(decoded)

    def encode(self, x):
        return x[:, :4]

    def decoder(self, codes):
        return self.decoded.expand(len(codes), -1)

    def classifier(self, codes):
        return codes[:, :2]


def made(x, is_own, type_of, *, columns=None, performance=None):
    n, f = np.shape(x)
    none = np.zeros((n, 0), dtype=np.float32)
    return Inputs(
        columns=tuple(columns or (f"t/{at}" for at in range(f))),
        x=np.asarray(x, dtype=np.float32),
        is_own=np.asarray(is_own, dtype=bool),
        types=("one", "two"),
        type_of=np.asarray(type_of),
        nodes=("a",),
        node_of=np.zeros(n, dtype=np.int64),
        started_s=np.arange(n, dtype=np.float64),
        before=none,
        during=none,
        performance=np.zeros(n, dtype=np.float32) if performance is None else np.asarray(performance, np.float32),
        labels=np.zeros(n, dtype=np.int8),
    )


def first(n, of):
    return np.arange(of) < n


@pytest.fixture
def inputs():
    """Three training executions and two tested ones; column 0 is of type one, column 1 of type two, the rest filled."""
    x = [[0, 5, 0, 0], [4, 5, 0, 0], [9, 1, 0, 0], [2, 5, 0, 0], [9, 3, 0, 0]]
    is_own = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    return made(x, is_own, [0, 0, 1, 0, 1])


def test_ranges_are_of_measured_training_values_and_means_of_each_type(inputs):
    """Column 0 ran from 0 to 4 where it was measured; column 1 was measured once, and does not vary: 1."""
    scale = learn_scale(inputs, first(3, 5))
    assert scale.ranges.tolist() == [4, 1, 1, 1]
    assert scale.means.tolist() == [[2, 5, 0, 0], [9, 1, 0, 0]]


def test_errors_over_all_columns_and_over_own_metrics(inputs):
    """Decoded 0, 5, 0, 0; tested 2 5 0 0 and 9 3 0 0. Errors in ranges: -2/4, 0 and -9/4, 2. All eight cells:
    (0.25 + 5.0625 + 4) / 8; the two own ones: (0.25 + 4) / 2. Type means say 2 5 and 9 1: errors 0, 0 and 0, -2."""
    found = measures_of(inputs, Written([0.0, 5, 0, 0]), first(3, 5), ~first(3, 5))
    assert found["mse"] == pytest.approx((0.25 + 5.0625 + 4) / 8)
    assert found["mse_own"] == pytest.approx((0.25 + 4) / 2)
    assert found["mse_mean_predictor"] == pytest.approx(4 / 8)
    assert found["mse_own_mean_predictor"] == pytest.approx(4 / 2)


def test_the_one_hot_counts_in_the_papers_measure_and_not_among_own_metrics():
    """A decoder that is right but for the one-hot, which it puts at 0 and 0: one cell of three is off by 1."""
    columns = ("one/m", "type=one", "type=two")
    inputs = made(
        [[0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]], np.ones((3, 4)), [0, 0, 0], columns=(*columns, "type=three")
    )
    found = measures_of(inputs, Written([1.0, 0, 0, 0]), first(2, 3), ~first(2, 3))
    assert found["mse_own"] == 0 and found["mse"] == pytest.approx(1 / 4)


def test_types_are_told_by_the_larger_logit(inputs):
    """Tested 2 5 is told as two and is one; 9 3 is told as one and is two; the third row is wrong too."""
    network = Written([0.0, 0, 0, 0])
    assert type_accuracy(inputs, network, ~first(3, 5)) == 0
    assert type_accuracy(inputs, network, np.array([False, False, True, False, False])) == 0
    assert accuracy(np.array([0, 1, 1]), np.array([0, 0, 1])) == pytest.approx(2 / 3)
    assert accuracy(np.array([0, 1]), np.array([0, -1])) == 1  # a type that training did not have is left out
    assert np.isnan(accuracy(np.array([1]), np.array([-1])))


def test_norms_that_follow_performance_have_no_deviation():
    """Norms 1, 2, 4, 8 in one column; performance their logarithms and a constant: ratios are the same."""
    norms = np.array([1.0, 2, 4, 8, 16])
    x = np.column_stack([norms, np.zeros((5, 3))])
    rows = np.arange(5)
    same = made(x, np.ones((5, 4)), np.zeros(5, dtype=int), performance=np.log(norms) + 3)
    found = scores_follow(same, Written([0.0] * 4), rows)
    assert found["score_spearman"] == pytest.approx(1) and found["score_deviation"] == pytest.approx(0, abs=1e-6)
    half = made(x, np.ones((5, 4)), np.zeros(5, dtype=int), performance=np.log(norms) / 2)
    told = scores_follow(half, Written([0.0] * 4), rows)
    assert told["score_spearman"] == pytest.approx(1)
    assert told["score_deviation"] == pytest.approx(1.4826 * np.log(2) / 2, rel=1e-5)  # half of |-2 -1 0 1 2| ln 2
    none = made(x, np.ones((5, 4)), np.zeros(5, dtype=int), performance=[np.nan] * 5)
    assert np.isnan(scores_follow(none, Written([0.0] * 4), rows)["score_spearman"])


def test_the_network_is_left_as_it_was(inputs):
    network = Written([0.0] * 4)
    network.train()
    measures_of(inputs, network, first(3, 5), ~first(3, 5))
    assert network.training
