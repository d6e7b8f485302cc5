"""The terms of our variant: own metrics, measured performance, and what earlier executions promise.

What is inferred from earlier executions is how a calm execution would look: a stressed one is judged by its difference
to it, and no term but that verdict teaches it by one."""

import torch
from torch import Tensor

from tasks.nodes.graph.batches import GraphBatch
from tasks.nodes.losses.classification import type_cross_entropy
from tasks.nodes.losses.focal import ClassCounts, detection_losses, per_stressed
from tasks.nodes.losses.norms import p_norms
from tasks.nodes.losses.ranking import pairs_of, ratio_ranking
from tasks.nodes.losses.reconstruction import own_squared_error
from tasks.nodes.losses.stressed_ranking import below_inferred, ratio_stressed_ranking, stressed_pairs
from tasks.nodes.losses.triplet import spread_over_each, triplet_margin
from tasks.nodes.model.outputs import Outputs
from tasks.nodes.model.params import LossParams


def our_terms(
    batch: GraphBatch, outputs: Outputs, params: LossParams, counts: ClassCounts, *, is_selection: bool
) -> dict[str, Tensor]:
    """Each term that params ask for under its own name."""
    is_all = torch.ones_like(outputs.is_inferred)
    is_promised = outputs.is_inferred & ~_is_stressed(batch)
    terms: dict[str, Tensor] = {}
    if params.reconstruction:
        own = batch.x, batch.is_own
        terms["reconstruction"] = own_squared_error(outputs.decoded, *own, is_all)
        terms["reconstruction_inferred"] = own_squared_error(outputs.decoded_nxt, *own, is_promised)
    if params.detection:
        is_known = batch.is_target & ~torch.isnan(batch.label)
        asked = batch, params, counts, is_selection
        terms["detection"] = _detection(outputs.logit, is_known & outputs.is_inferred, *asked)
        terms["detection_alone"] = _detection(outputs.logit_alone, is_known, *asked)
    if params.clustering:
        terms["clustering"] = _clustering(batch, outputs, params)
    if params.classification:
        terms["classification"] = type_cross_entropy(outputs.type_logits, batch.type_of, is_all)
        terms["classification_inferred"] = type_cross_entropy(outputs.type_logits_nxt, batch.type_of, is_promised)
    return terms | _rankings(batch, outputs, params)


def _is_stressed(batch: GraphBatch) -> Tensor:
    return batch.label == 1  # an unknown label (NaN) is not


def _detection(
    logit: Tensor, is_judged: Tensor, batch: GraphBatch, params: LossParams, counts: ClassCounts, is_selection: bool
) -> Tensor:
    is_stressed = _is_stressed(batch)[is_judged]
    losses = detection_losses(logit[is_judged], is_stressed, params, counts, is_selection=is_selection)
    return per_stressed(losses, is_stressed.sum(), len(losses))


def _clustering(batch: GraphBatch, outputs: Outputs, params: LossParams) -> Tensor:
    vectors = torch.cat([outputs.enc, outputs.nxt[outputs.is_inferred]])
    type_of = torch.cat([batch.type_of, batch.type_of[outputs.is_inferred]])
    is_mined = spread_over_each(type_of, params.mined_in("ours"))
    return triplet_margin(vectors[is_mined], type_of[is_mined], params.triplet_margin, params.mining_margin)


def _rankings(batch: GraphBatch, outputs: Outputs, params: LossParams) -> dict[str, Tensor]:
    is_stressed, told = _is_stressed(batch), (batch.performance, batch.type_of)
    norms, promised = p_norms(outputs.enc, params.norm_power), p_norms(outputs.nxt, params.norm_power)
    terms: dict[str, Tensor] = {}
    if params.ranking:
        terms["ranking"] = ratio_ranking(norms, *told, ~is_stressed)
        terms["ranking_inferred"] = ratio_ranking(promised, *told, outputs.is_inferred & ~is_stressed)
    if params.stressed_ranking:
        pairs = stressed_pairs(pairs_of(batch.edge_index), is_stressed)
        terms["stressed_ranking"] = ratio_stressed_ranking(norms, batch.performance, pairs)
        terms["stressed_ranking_inferred"] = below_inferred(norms, promised, outputs.is_inferred & is_stressed)
    return terms
