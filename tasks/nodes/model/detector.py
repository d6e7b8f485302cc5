"""Whether an execution was stressed, as a logit. Source: Perona, III-C: P(v) = σ(f_1(v - v'))."""

import math

import torch
from torch import Tensor, nn

from tasks.nodes.model.layers import linear


class Detector(nn.Module):
    """f_1(d) = w · SELU(W d + b) + c on a vector d of each execution, and what plain detectors say beside it."""

    def __init__(self, hidden: int, n_evidence: int) -> None:
        super().__init__()
        self.inner = linear(hidden + n_evidence, hidden, has_bias=True)
        self.last = linear(hidden, 1, has_bias=True)

    def forward(self, told: Tensor, evidence: Tensor) -> Tensor:
        """(v, hidden) and (v, n_evidence) to logits (v,)."""
        logits: Tensor = self.last(torch.selu(self.inner(torch.cat([told, evidence], dim=1))))
        return logits.squeeze(1)

    def set_prior(self, n_stressed: int, n_calm: int) -> None:
        """Start from the logit of their share, ln(n_stressed / n_calm); a class without any counts as one."""
        nn.init.constant_(self.last.bias, math.log(max(n_stressed, 1) / max(n_calm, 1)))
