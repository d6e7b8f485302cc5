"""How far the decoded inputs are from the inputs. Source: Perona, III-C."""

import torch
from torch import Tensor

from tasks.nodes.losses.means import mean_where


def squared_error(decoded: Tensor, x: Tensor) -> Tensor:
    """Mean of (decoded - x)² over all vertices and columns, both (v, f): the paper's."""
    return ((decoded - x) ** 2).mean()


def own_squared_error(decoded: Tensor, x: Tensor, is_own: Tensor, is_counted: Tensor) -> Tensor:
    """Mean over the counted vertices of each one's mean of (decoded - x)² over its own metrics.

    decoded, x, is_own: (v, f); is_counted: (v,). Every vertex counts alike, however many metrics its type has; what was
    filled in is not compared, and a vertex without an own metric does not count."""
    n_own = is_own.sum(dim=1)
    squared = torch.where(is_own, (decoded - x) ** 2, 0.0).sum(dim=1) / n_own.clamp(min=1)
    return mean_where(squared, is_counted & (n_own > 0))
