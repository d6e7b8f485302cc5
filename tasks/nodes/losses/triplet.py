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


def first_of_each(type_of: Tensor, count: int) -> Tensor:
    """Mask (n,) of the first `count` vectors of each type, all of them if count is 0; a type of -1 is left out."""
    is_known = type_of >= 0
    if count == 0:
        return is_known
    order = torch.argsort(type_of, stable=True)
    of = type_of[order]
    place = torch.arange(len(of), device=of.device) - torch.searchsorted(of, of)
    return is_known & torch.zeros_like(is_known).scatter_(0, order, place < count)
