"""Norms of encodings follow performance. Source: Perona, III-D; margins of the authors' code.

    paper  max(0, -t (n_i - f n_j)), t = sign(X_i - X_j), f = X_i / X_j     X: p-norm of the inputs, pairs of one graph
    ours   |ln(n_i / n_j) - ln(P_i / P_j)|                                  P: measured performance, pairs of one type

The paper's asks that a ratio of norms be at least as extreme as that of the inputs; ours that it be that of the
measured performance, so that a score twice as large means a machine twice as fast."""

import torch
from torch import Tensor

SMALLEST = 1e-6


def pairs_of(edge_index: Tensor) -> Tensor:
    """Each pair of vertices of one graph once, (2, e): all edges of a graph but the self-loops."""
    return edge_index[:, edge_index[0] != edge_index[1]]


def among(pairs: Tensor, is_counted: Tensor) -> Tensor:
    """The pairs (2, e) whose vertices both count; is_counted: (v,)."""
    return pairs[:, is_counted[pairs[0]] & is_counted[pairs[1]]]


def margin_ranking(norms: Tensor, truth: Tensor, pairs: Tensor) -> Tensor:
    """The paper's: mean over both orders of the pairs whose truths differ; 0 without one.

    norms, truth: (v,), not negative; pairs: (2, e), each once. No gradient flows into the truth."""
    told = truth.detach().clamp(min=SMALLEST)
    first, second = torch.cat([pairs, pairs.flip(0)], dim=1)
    is_ranked = told[first] != told[second]
    first, second = first[is_ranked], second[is_ranked]
    sign = torch.sign(told[first] - told[second])
    short = -sign * (norms[first] - told[first] / told[second] * norms[second])
    return short.clamp(min=0).sum() / max(len(first), 1)


def ratio_ranking(norms: Tensor, performance: Tensor, type_of: Tensor, is_counted: Tensor) -> Tensor:
    """Ours: mean over the pairs of counted vertices of one type of |ln(n_i / n_j) - ln(P_i / P_j)|; 0 without a pair.

    norms: (v,), above 0; performance: (v,) natural logarithm, vertices without one (NaN) do not count; type_of: (v,).
    With a = ln n - ln P a pair gives |a_i - a_j|, and the sum over all pairs of m rising values is Σ_k (2k - m + 1) a_k
    with k from 0: exact, and no pair is formed."""
    counted = torch.nonzero(is_counted & torch.isfinite(performance) & (type_of >= 0)).squeeze(1)
    surplus = torch.log(norms[counted]) - performance[counted]
    order = torch.argsort(surplus.detach())
    order = order[torch.argsort(type_of[counted][order], stable=True)]
    of = type_of[counted][order]
    sizes = torch.bincount(of)  # of each type
    place = torch.arange(len(of), device=of.device) - (sizes.cumsum(0) - sizes)[of]
    n_pairs = (sizes * (sizes - 1)).sum() / 2
    return ((2 * place - sizes[of] + 1) * surplus[order]).sum() / n_pairs.clamp(min=1)
