"""Losses of the detection of stressed executions. Source: Perona, III-C: class-balanced focal loss.

    focal: -α_t (1 - p_t)^γ ln p_t        p_t: probability of the true class, α_t: its weight
    α_stressed = w_1 / (w_0 + w_1), α_calm = 1 - α_stressed, w_c = (1 - β) / (1 - β^n_c)

For the selection of a model the cross entropy with a class weight stands in its place, so that trials with other γ and
β can be compared."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from tasks.nodes.model.params import LossParams


class ClassCounts(NamedTuple):
    """Targets of the training graphs by label; those of which nobody knows are in neither."""

    n_stressed: int
    n_calm: int


def stressed_weight(counts: ClassCounts, beta: float) -> float:
    """α of the stressed class from the effective numbers of samples; a class without any counts as one of 1."""
    stressed, calm = ((1 - beta) / (1 - beta ** max(count, 1)) for count in counts)
    return stressed / (stressed + calm)


def focal(logits: Tensor, is_stressed: Tensor, gamma: float, weight: float) -> Tensor:
    """Focal loss of each vertex, (n,). is_stressed: (n,) bool. weight: of the stressed; the calm have 1 - weight.

    Both factors are taken from logarithms, so that no gradient is NaN where a probability is 0."""
    signed = torch.where(is_stressed, logits, -logits)
    weights = torch.where(is_stressed, weight, 1 - weight)
    return -weights * torch.exp(gamma * logsigmoid(-signed)) * logsigmoid(signed)


def weighted_cross_entropy(logits: Tensor, is_stressed: Tensor, counts: ClassCounts) -> Tensor:
    """Cross entropy of each vertex, (n,), times calm per stressed target in training where it is stressed."""
    ratio = logits.new_tensor(max(counts.n_calm, 1) / max(counts.n_stressed, 1))
    return binary_cross_entropy_with_logits(logits, is_stressed.to(logits.dtype), pos_weight=ratio, reduction="none")


def detection_losses(
    logits: Tensor, is_stressed: Tensor, params: LossParams, counts: ClassCounts, *, is_selection: bool
) -> Tensor:
    """Of each vertex, (n,): focal, or for the selection of a model the cross entropy."""
    if is_selection:
        return weighted_cross_entropy(logits, is_stressed, counts)
    return focal(logits, is_stressed, params.focal_gamma, stressed_weight(counts, params.class_balance))


def per_stressed(losses: Tensor, n_stressed: Tensor, n_all: int) -> Tensor:
    """The sum of losses (n,) divided by the number of stressed executions, or by that of all where none is."""
    return losses.sum() / torch.where(n_stressed > 0, n_stressed, max(n_all, 1))
