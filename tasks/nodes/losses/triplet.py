"""Triplet margin loss with a miner, on cosine similarity. Source: Perona, III-D; margins of the authors' code.

    mean of s_an - s_ap + margin over the triplets (a, p, n) where it is above 0 and s_ap - s_an <= mining margin

with a and p of one type, n of another. Triplets are as many as the cube of the vectors, but none has to be formed: the
sum of those that count is Σ c_ij s_ij + count · margin, where c_ij says how often s_ij is that of a negative, less how
often it is that of a positive. For an anchor and a positive the negatives that count are those from s_ap - margin on,
so that sorting the similarities of each anchor tells all c. The result is that of all triplets."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

ANCHORS_AT_ONCE = 1024  # rows of the matrix of similarities that are in memory together
GOLDEN = 0.6180339887498949  # its multiples, whole numbers aside, fill 0 to 1 evenly and repeat no period


def triplet_margin(vectors: Tensor, type_of: Tensor, margin: float, mining_margin: float) -> Tensor:
    """Mean loss of the mined triplets above 0; 0 where there are none, as with a single type.

    vectors: (n, h); type_of: (n,). Source: TripletMarginLoss and TripletMarginMiner ("all") of pytorch-metric-learning,
    whose numbers it has; O(n² log n) instead of O(n³)."""
    if not len(vectors):
        return vectors.sum()
    directions = normalize(vectors, dim=1)
    total, count = vectors.new_zeros(()), vectors.new_zeros(())
    for first in range(0, len(vectors), ANCHORS_AT_ONCE):
        anchors = torch.arange(first, min(first + ANCHORS_AT_ONCE, len(vectors)), device=vectors.device)
        similar = directions[anchors] @ directions.T  # (anchors, n)
        is_same = type_of[anchors, None] == type_of
        is_positive = is_same.scatter(1, anchors[:, None], False)  # not itself
        with torch.no_grad():
            often, n_triplets = _how_often(similar, ~is_same, is_positive, margin, mining_margin)
        total = total + (often * similar).sum() + margin * n_triplets
        count = count + n_triplets
    return total / count.clamp(min=1)


def _how_often(
    similar: Tensor, is_negative: Tensor, is_positive: Tensor, margin: float, mining_margin: float
) -> tuple[Tensor, Tensor]:
    """How often each similarity counts, that of a positive with a minus (a, n), and the number of triplets.

    similar, is_negative, is_positive: (a, n). Where the mining margin is the smaller one, it decides, and equality
    counts."""
    ordered, order = torch.where(is_negative, similar, -torch.inf).sort(dim=1)  # the others first
    least = similar - min(margin, mining_margin)
    start = torch.searchsorted(ordered, least, right=mining_margin >= margin)  # place of the first negative that counts
    starts = similar.new_zeros(len(similar), similar.shape[1] + 1).scatter_add_(1, start, is_positive.to(similar.dtype))
    as_negative = torch.zeros_like(similar).scatter_(1, order, starts.cumsum(1)[:, :-1])
    as_positive = (similar.shape[1] - start) * is_positive
    return as_negative - as_positive, as_positive.sum().to(similar.dtype)


def spread_over_each(type_of: Tensor, count: int) -> Tensor:
    """Mask (n,) of `count` vectors of each type, spread evenly over those that it has, in their order.

    All of a type that has no more; a type of -1 is left out. Vectors lie graph by graph, encoded ones first: so these
    are of many graphs, of every slot, and inferred ones are among them."""
    order = torch.argsort(type_of, stable=True)
    turn = torch.zeros_like(type_of, dtype=torch.float64).scatter_(
        0, order, (_places(type_of[order]).to(torch.float64) * GOLDEN) % 1
    )
    order = torch.argsort(turn)
    order = order[torch.argsort(type_of[order], stable=True)]
    is_taken = _places(type_of[order]) < count
    return (type_of >= 0) & torch.zeros_like(is_taken).scatter_(0, order, is_taken)


def _places(of: Tensor) -> Tensor:
    """The place of each among those of its type, from 0: (n,). of: types, rising."""
    return torch.arange(len(of), device=of.device) - torch.searchsorted(of, of)
