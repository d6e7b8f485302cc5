"""Norms of stressed executions lie below those of calm ones of the same node and type. Source: Perona, III-D.

    paper   max(0, n_c - q n_m) + max(0, n_c / q - n_m)      q = min(r, 1 / r), r = max(X_c, X_m) / lowest
    ours    max(0, ln(n_c / n_m) - min(0, ln(P_c / P_m)))

for a stressed c and a calm m of one graph. The paper puts the stressed below the lowest calm norm of the training, less
a deviation; ours as far below as the measured performance fell."""

import torch
from torch import Tensor

SMALLEST = 1e-6


def stressed_pairs(pairs: Tensor, is_stressed: Tensor) -> Tensor:
    """(2, e): a stressed vertex and a calm one of the same graph. pairs: (2, k), each pair of a graph once."""
    both = torch.cat([pairs, pairs.flip(0)], dim=1)
    return both[:, is_stressed[both[0]] & ~is_stressed[both[1]]]


def lowest_norms(norms: Tensor, type_of: Tensor, is_calm: Tensor, n_types: int) -> Tensor:
    """Least norm of the calm executions of each type less their standard deviation: (n_types,), NaN for a type without.

    norms: (n,) p-norms of the inputs of training executions; type_of, is_calm: (n,)."""
    found = norms.new_full((n_types,), torch.nan)
    for at in range(n_types):
        own = norms[is_calm & (type_of == at)]
        if len(own):
            found[at] = own.min() - (own.std() if len(own) > 1 else 0.0)
    return found


def margin_stressed_ranking(norms: Tensor, truth: Tensor, lowest: Tensor, pairs: Tensor, n_stressed: Tensor) -> Tensor:
    """The paper's: sum over the pairs, divided by the number of stressed vertices; 0 without one.

    norms: (v,); truth: (v,) p-norms of the inputs; lowest: (v,) that of each vertex' type, where it is not above 0 or
    unknown the stressed norm lies below the calm one and no further; pairs: (2, e) of stressed_pairs."""
    stressed, calm = pairs
    larger = torch.maximum(truth[stressed], truth[calm]).clamp(min=SMALLEST)
    ratio = torch.where(lowest[stressed] > 0, larger / lowest[stressed], 1.0).detach()
    share = torch.minimum(ratio, 1 / ratio)  # q
    below = (norms[stressed] - share * norms[calm]).clamp(min=0) + (norms[stressed] / share - norms[calm]).clamp(min=0)
    return below.sum() / n_stressed.clamp(min=1)


def ratio_stressed_ranking(norms: Tensor, performance: Tensor, pairs: Tensor) -> Tensor:
    """Ours: mean over the pairs, 0 without one.

    norms: (v,), above 0; performance: (v,) natural logarithm, NaN unknown, which asks for a smaller norm and no more;
    pairs: (2, e) of stressed_pairs."""
    stressed, calm = pairs
    fell = torch.nan_to_num(performance[stressed] - performance[calm], nan=0.0).clamp(max=0)
    short = torch.log(norms[stressed]) - torch.log(norms[calm]) - fell
    return short.clamp(min=0).sum() / max(len(stressed), 1)


def below_inferred(norms: Tensor, inferred_norms: Tensor, is_counted: Tensor) -> Tensor:
    """Ours: mean over the counted, stressed vertices of max(0, ln(n / n')); n' is what earlier executions promised.

    norms, inferred_norms: (v,), above 0; is_counted: (v,). No gradient flows into the promise: it tells what a calm
    execution would give, and what stress did is not to be read from it."""
    short = torch.log(norms[is_counted]) - torch.log(inferred_norms[is_counted]).detach()
    return short.clamp(min=0).sum() / max(len(short), 1)
