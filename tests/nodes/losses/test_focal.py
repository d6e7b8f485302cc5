"""Losses of detection by hand."""

import math

import pytest
import torch

from tasks.nodes.perona.losses import (
    ClassCounts,
    detection_losses,
    focal,
    per_stressed,
    stressed_weight,
    weighted_cross_entropy,
)
from tasks.nodes.perona.params import LossParams

STRESSED, CALM = torch.tensor([True]), torch.tensor([False])


def test_the_rarer_class_weighs_more():
    # β = 1/2, 1 stressed and 2 calm: w_1 = 0.5 / 0.5 = 1, w_0 = 0.5 / 0.75 = 2/3, α = 1 / (1 + 2/3)
    assert stressed_weight(ClassCounts(1, 2), 0.5) == pytest.approx(0.6)
    assert stressed_weight(ClassCounts(7, 7), 0.99) == pytest.approx(0.5)
    assert stressed_weight(ClassCounts(20, 80), 0.0) == pytest.approx(0.5)  # β = 0: no weights


def test_a_class_without_any_counts_as_one():
    assert stressed_weight(ClassCounts(0, 2), 0.5) == pytest.approx(0.6)
    assert 0 < stressed_weight(ClassCounts(0, 0), 0.99) < 1


def test_focal_loss_by_hand():
    # stressed, logit 0: p_t = 1/2; 0.6 · (1/2)² · ln 2 = 0.1039721
    assert focal(torch.zeros(1), STRESSED, 2.0, 0.6).item() == pytest.approx(0.1039721)
    # calm, logit ln 3: p_t = 1/4; 0.4 · (3/4)² · ln 4 = 0.3119162
    assert focal(torch.tensor([math.log(3)]), CALM, 2.0, 0.6).item() == pytest.approx(0.3119162)


def test_without_focus_it_is_weighted_cross_entropy():
    logits = torch.tensor([0.3, -2.0])
    is_stressed = torch.tensor([True, False])
    plain = torch.nn.functional.binary_cross_entropy_with_logits(logits, is_stressed.float(), reduction="none")
    torch.testing.assert_close(focal(logits, is_stressed, 0.0, 0.5), plain / 2)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 5.0])
def test_certain_verdicts_have_finite_losses_and_gradients(gamma):
    logits = torch.tensor([500.0, -500.0, 500.0, -500.0], requires_grad=True)
    losses = focal(logits, torch.tensor([True, True, False, False]), gamma, 0.5)
    losses.sum().backward()
    assert torch.isfinite(losses).all() and torch.isfinite(logits.grad).all()
    assert losses.tolist() == pytest.approx([0, 250, 250, 0])


def test_cross_entropy_with_a_class_weight():
    counts = ClassCounts(n_stressed=1, n_calm=4)
    assert weighted_cross_entropy(torch.zeros(1), STRESSED, counts).item() == pytest.approx(4 * math.log(2))
    assert weighted_cross_entropy(torch.zeros(1), CALM, counts).item() == pytest.approx(math.log(2))
    assert torch.isfinite(weighted_cross_entropy(torch.zeros(1), STRESSED, ClassCounts(0, 4))).all()


def test_selection_does_not_depend_on_gamma_and_beta():
    def told(**params):
        return detection_losses(
            torch.tensor([0.5]), STRESSED, LossParams(**params), ClassCounts(1, 4), is_selection=True
        )

    assert torch.equal(told(focal_gamma=0.5, class_balance=0.9), told(focal_gamma=5.0, class_balance=0.999))


def test_the_sum_is_divided_by_the_stressed_or_else_by_all():
    losses = torch.tensor([1.0, 2.0, 3.0])
    assert per_stressed(losses, torch.tensor(2), 6).item() == 3
    assert per_stressed(losses, torch.tensor(0), 6).item() == 1
    assert per_stressed(losses[:0], torch.tensor(0), 0).item() == 0
