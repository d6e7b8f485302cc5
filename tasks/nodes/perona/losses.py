"""The loss of Perona's network: one sum of all terms, each with weight 1. Source: Perona, III-C, III-D and IV-B.

    term              paper                                        ours
    reconstruction    mean (dec - x)² of all columns               of a type's own metrics, every execution alike
    detection         focal: -α_t (1 - p_t)^γ ln p_t               none: a detector of its own tells verdicts
    clustering        mean of s_an - s_ap + margin over mined triplets (cosine similarity)          the same
    classification    -ln softmax(W enc)[type]                     the same
    ranking           max(0, -t (n_i - f n_j)) of a graph          |ln(n_i / n_j) - ln(P_i / P_j)| of a type
                      t = sign(X_i - X_j), f = X_i / X_j
    stressed ranking  max(0, n_c - q n_m) + max(0, n_c / q - n_m)  none: what is slow has a smaller norm
                      q = min(r, 1 / r), r = max(X_c, X_m) / lowest

n: p-norms of codes, X: of inputs, P: measured performance, c: stressed, m: calm vertex of the same graph. The paper
asks that a ratio of norms be at least as extreme as that of the inputs; ours that it be that of measured performance,
so that a score twice as large means a machine twice as fast. In the paper's each term also counts for what earlier
executions promise (`_inferred`). The authors' code puts the ranking of stressed executions by promised norms under the
name of that by codes, so that one of the two is lost; here both count. For the selection of a model the cross entropy
with a class weight stands in place of the focal loss, so that other γ and β can be compared.

Every term is finite, and 0 where nothing counts: a batch without a stressed execution must never give NaN."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, logsigmoid, normalize

from tasks.nodes.params import LossParams
from tasks.nodes.perona.inputs import GraphBatch
from tasks.nodes.perona.network import GraphOutputs, Outputs, p_norms

SMALLEST = 1e-6  # norm of an input that a ratio is taken to
ANCHORS_AT_ONCE = 1024  # rows of the matrix of similarities that are in memory together
GOLDEN = 0.6180339887498949  # its multiples, whole numbers aside, fill 0 to 1 evenly and repeat no period


class ClassCounts(NamedTuple):
    """Targets of the training graphs by label; those of which nobody knows are in neither."""

    n_stressed: int
    n_calm: int


def loss_terms(
    batch: GraphBatch,
    outputs: Outputs,
    params: LossParams,
    class_counts: ClassCounts,
    *,
    is_selection: bool = False,
    clean: GraphBatch | None = None,
    lowest: Tensor | None = None,
) -> dict[str, Tensor]:
    """The terms that params name, each a scalar: the paper's for the paper's network, with what predecessors promise as
    `<term>_inferred`, else ours.

    The paper's alone: class_counts, stressed and calm targets of the training; is_selection, detection as cross entropy
    with a class weight; clean, the batch without noise, by whose inputs is ranked; lowest, (n_types,) lowest_norms of
    the training, else of the batch."""
    if not isinstance(outputs, GraphOutputs):
        return _our_terms(batch, outputs, params)
    truth = input_norms(batch if clean is None else clean, params.norm_power)
    if lowest is None:
        lowest = lowest_norms(truth, batch, outputs.type_logits.shape[1])
    return _paper_terms(batch, outputs, params, class_counts, is_selection=is_selection, truth=truth, lowest=lowest)


def summed(terms: Mapping[str, Tensor]) -> Tensor:
    """The loss: the sum of all terms, 0 without any."""
    return torch.stack(list(terms.values())).sum() if terms else torch.zeros(())


def _our_terms(batch: GraphBatch, outputs: Outputs, params: LossParams) -> dict[str, Tensor]:
    norms = p_norms(outputs.enc, params.norm_power)
    terms = {
        "reconstruction": own_squared_error(outputs.decoded, batch.x, batch.is_own),
        "clustering": _clustering(outputs.enc, batch.type_of, params),
        "classification": type_cross_entropy(outputs.type_logits, batch.type_of),
        "ranking": ratio_ranking(norms, batch.performance, batch.type_of),
    }
    return {name: value for name, value in terms.items() if name in params.terms}


def _paper_terms(
    batch: GraphBatch,
    outputs: GraphOutputs,
    params: LossParams,
    counts: ClassCounts,
    *,
    is_selection: bool,
    truth: Tensor,
    lowest: Tensor,
) -> dict[str, Tensor]:
    """truth: (v,) input_norms; lowest: (t,) lowest_norms."""
    is_stressed, x, type_of = batch.label == 1, batch.x, batch.type_of
    n_stressed = is_stressed.sum()
    # all vertices that have been inferred, not targets alone
    is_judged = outputs.is_inferred & ~torch.isnan(batch.label)
    logit, truly = outputs.logit[is_judged], is_stressed[is_judged]
    if is_selection:
        detection = weighted_cross_entropy(logit, truly, counts)
    else:
        detection = focal(logit, truly, params.focal_gamma, stressed_weight(counts, params.class_balance))
    shown = torch.where(is_stressed[:, None], outputs.enc.detach(), outputs.nxt)  # as decoded_nxt is decoded
    terms = {
        "reconstruction": ((outputs.decoded - x) ** 2).mean(),  # of all columns
        "reconstruction_inferred": ((outputs.decoded_nxt - x) ** 2).mean(),
        "detection": per_stressed(detection, n_stressed, len(batch.label)),
        "clustering": _clustering(torch.cat([outputs.enc, shown]), type_of.repeat(2), params),
        "classification": type_cross_entropy(outputs.type_logits, type_of),
        "classification_inferred": type_cross_entropy(outputs.type_logits_nxt, type_of),
    }
    first, second = batch.edge_index
    pairs = batch.edge_index[:, first != second]  # each pair of vertices of a graph once: no self-loops
    calm = pairs[:, ~is_stressed[pairs].any(dim=0)]
    apart = stressed_pairs(pairs, is_stressed)
    lowest_of = torch.where(type_of >= 0, lowest[type_of.clamp(min=0)], torch.nan)  # (v,)
    for suffix, codes in (("", outputs.enc), ("_inferred", outputs.nxt)):
        norms = p_norms(codes, params.norm_power)
        terms["ranking" + suffix] = margin_ranking(norms, truth, calm)
        terms["stressed_ranking" + suffix] = margin_stressed_ranking(norms, truth, lowest_of, apart, n_stressed)
    return {name: value for name, value in terms.items() if name.removesuffix("_inferred") in params.terms}


def _clustering(vectors: Tensor, type_of: Tensor, params: LossParams) -> Tensor:
    is_mined = spread_over_each(type_of, params.mined_per_type)
    return triplet_margin(vectors[is_mined], type_of[is_mined], params.triplet_margin, params.mining_margin)


def own_squared_error(decoded: Tensor, x: Tensor, is_own: Tensor) -> Tensor:
    """Mean over the vertices of each one's mean of (decoded - x)² over its own metrics.

    decoded, x, is_own: (v, f). Every vertex counts alike, however many metrics its type has; what was filled in is not
    compared, and a vertex without an own metric does not count."""
    n_own = is_own.sum(dim=1)
    squared = torch.where(is_own, (decoded - x) ** 2, 0.0).sum(dim=1) / n_own.clamp(min=1)
    return mean_where(squared, n_own > 0)


def mean_where(values: Tensor, is_counted: Tensor) -> Tensor:
    """Mean of the values (n,) for which the mask (n,) is true, as a scalar; 0 if it is true for none."""
    counted = values[is_counted]
    return counted.sum() / max(counted.numel(), 1)


def focal(logits: Tensor, is_stressed: Tensor, gamma: float, weight: float) -> Tensor:
    """Focal loss of each vertex, (n,). is_stressed: (n,) bool. weight: of the stressed; the calm have 1 - weight.

    Both factors are taken from logarithms, so that no gradient is NaN where a probability is 0."""
    signed = torch.where(is_stressed, logits, -logits)
    weights = torch.where(is_stressed, weight, 1 - weight)
    return -weights * torch.exp(gamma * logsigmoid(-signed)) * logsigmoid(signed)


def stressed_weight(counts: ClassCounts, beta: float) -> float:
    """α of the stressed class from the effective numbers of samples; a class without any counts as one of 1."""
    stressed, calm = ((1 - beta) / (1 - beta ** max(count, 1)) for count in counts)
    return stressed / (stressed + calm)


def weighted_cross_entropy(logits: Tensor, is_stressed: Tensor, counts: ClassCounts) -> Tensor:
    """Cross entropy of each vertex, (n,), times calm per stressed target in training where it is stressed."""
    ratio = logits.new_tensor(max(counts.n_calm, 1) / max(counts.n_stressed, 1))
    return binary_cross_entropy_with_logits(logits, is_stressed.to(logits.dtype), pos_weight=ratio, reduction="none")


def per_stressed(losses: Tensor, n_stressed: Tensor, n_all: int) -> Tensor:
    """The sum of losses (n,) divided by the number of stressed executions, or by that of all where none is."""
    return losses.sum() / torch.where(n_stressed > 0, n_stressed, max(n_all, 1))


def type_cross_entropy(logits: Tensor, type_of: Tensor) -> Tensor:
    """Mean of -ln softmax(logits)[type] over the vertices of a known type.

    logits: (v, t); type_of: (v,), -1 for a type that training did not have."""
    return mean_where(cross_entropy(logits, type_of.clamp(min=0), reduction="none"), type_of >= 0)


def margin_ranking(norms: Tensor, truth: Tensor, pairs: Tensor) -> Tensor:
    """The paper's: mean over both orders of the pairs whose truths differ; 0 without one.

    norms, truth: (v,), not negative; pairs: (2, e), each once. No gradient flows into the truth."""
    target = truth.detach().clamp(min=SMALLEST)
    first, second = torch.cat([pairs, pairs.flip(0)], dim=1)
    is_ranked = target[first] != target[second]
    first, second = first[is_ranked], second[is_ranked]
    sign = torch.sign(target[first] - target[second])
    short = -sign * (norms[first] - target[first] / target[second] * norms[second])
    return short.clamp(min=0).sum() / max(len(first), 1)


def ratio_ranking(norms: Tensor, performance: Tensor, type_of: Tensor) -> Tensor:
    """Ours: mean over the pairs of vertices of one type of |ln(n_i / n_j) - ln(P_i / P_j)|; 0 without a pair.

    norms: (v,), above 0; performance: (v,) natural logarithm, vertices without one (NaN) do not count; type_of: (v,).
    With a = ln n - ln P a pair gives |a_i - a_j|, and the sum over all pairs of m rising values is Σ_k (2k - m + 1) a_k
    with k from 0: exact, and no pair is formed."""
    counted = torch.nonzero(torch.isfinite(performance) & (type_of >= 0)).squeeze(1)
    surplus = torch.log(norms[counted]) - performance[counted]
    order = torch.argsort(surplus.detach())
    order = order[torch.argsort(type_of[counted][order], stable=True)]
    of = type_of[counted][order]
    sizes = torch.bincount(of)  # of each type
    place = torch.arange(len(of), device=of.device) - (sizes.cumsum(0) - sizes)[of]
    n_pairs = (sizes * (sizes - 1)).sum() / 2
    return ((2 * place - sizes[of] + 1) * surplus[order]).sum() / n_pairs.clamp(min=1)


def stressed_pairs(pairs: Tensor, is_stressed: Tensor) -> Tensor:
    """(2, e): a stressed vertex and a calm one of the same graph. pairs: (2, k), each pair of a graph once."""
    both = torch.cat([pairs, pairs.flip(0)], dim=1)
    return both[:, is_stressed[both[0]] & ~is_stressed[both[1]]]


def input_norms(batch: GraphBatch, power: float) -> Tensor:
    """What the paper ranks by: the p-norm of each execution's scaled input, (v,); what was filled in counts as 0."""
    return p_norms(torch.where(batch.is_own, batch.x, 0.0), power)


def lowest_norms(norms: Tensor, batch: GraphBatch, n_types: int) -> Tensor:
    """Least norm of the calm executions of each type less their standard deviation: (n_types,), NaN for a type without.

    norms: (v,) of the inputs of a batch, meant to be one of all training graphs."""
    lowest = norms.new_full((n_types,), torch.nan)
    for at in range(n_types):
        calm_norms = norms[(batch.label == 0) & (batch.type_of == at)]
        if len(calm_norms):
            lowest[at] = calm_norms.min() - (calm_norms.std() if len(calm_norms) > 1 else 0.0)
    return lowest


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


def triplet_margin(vectors: Tensor, type_of: Tensor, margin: float, mining_margin: float) -> Tensor:
    """Mean of s_an - s_ap + margin over the triplets (a, p, n) where it is above 0 and s_ap - s_an <= mining margin; 0
    where there are none, as with a single type. a and p are of one type, n of another; s: cosine similarity.

    Triplets are as many as the cube of the vectors, but none has to be formed: the sum of those that count is
    Σ c_ij s_ij + count · margin, where c_ij says how often s_ij is that of a negative, less how often it is that of a
    positive. For an anchor and a positive the negatives that count are those from s_ap - margin on, so that sorting the
    similarities of each anchor tells all c.

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


def _places(of: Tensor) -> Tensor:
    """The place of each among those of its type, from 0: (n,). of: types, rising."""
    return torch.arange(len(of), device=of.device) - torch.searchsorted(of, of)
