"""The terms of the paper's variant, as its authors' code has them, but with none lost.

Their code puts the ranking of stressed executions by inferred norms under the name of that by encoded norms, so that
one of the two is overwritten; here both count."""

import torch
from torch import Tensor

from tasks.nodes.graph.batches import GraphBatch
from tasks.nodes.losses.classification import type_cross_entropy
from tasks.nodes.losses.focal import ClassCounts, detection_losses, per_stressed
from tasks.nodes.losses.norms import p_norms
from tasks.nodes.losses.ranking import among, margin_ranking, pairs_of
from tasks.nodes.losses.reconstruction import squared_error
from tasks.nodes.losses.stressed_ranking import lowest_norms, margin_stressed_ranking, stressed_pairs
from tasks.nodes.losses.triplet import spread_over_each, triplet_margin
from tasks.nodes.model.outputs import Outputs
from tasks.nodes.model.params import LossParams


def input_norms(batch: GraphBatch, power: float) -> Tensor:
    """What the paper ranks by: the p-norm of each execution's scaled input, (v,); what was filled in counts as 0."""
    return p_norms(torch.where(batch.is_own, batch.x, 0.0), power)


def lowest_input_norms(batch: GraphBatch, n_types: int, power: float) -> Tensor:
    """lowest_norms of the calm executions of a batch, (n_types,); meant for one batch of all training graphs."""
    return lowest_norms(input_norms(batch, power), batch.type_of, batch.label == 0, n_types)


def paper_terms(
    batch: GraphBatch,
    outputs: Outputs,
    params: LossParams,
    counts: ClassCounts,
    *,
    is_selection: bool,
    truth: Tensor,
    lowest: Tensor,
) -> dict[str, Tensor]:
    """Each term that params ask for under its own name. truth: (v,) input_norms; lowest: (t,) lowest_input_norms."""
    is_all = torch.ones_like(outputs.is_inferred)
    is_stressed = batch.label == 1
    terms: dict[str, Tensor] = {}
    if params.reconstruction:
        terms["reconstruction"] = squared_error(outputs.decoded, batch.x)
        terms["reconstruction_inferred"] = squared_error(outputs.decoded_taught, batch.x)
    if params.detection:
        terms["detection"] = _detection(outputs, batch.label, params, counts, is_selection)
    if params.clustering:
        is_mined = spread_over_each(batch.type_of.repeat(2), params.mined_in("paper"))
        vectors = torch.cat([outputs.enc, outputs.nxt_taught])[is_mined]
        type_of = batch.type_of.repeat(2)[is_mined]
        terms["clustering"] = triplet_margin(vectors, type_of, params.triplet_margin, params.mining_margin)
    if params.classification:
        terms["classification"] = type_cross_entropy(outputs.type_logits, batch.type_of, is_all)
        terms["classification_inferred"] = type_cross_entropy(outputs.type_logits_taught, batch.type_of, is_all)
    pairs = pairs_of(batch.edge_index)
    for suffix, vectors in (("", outputs.enc), ("_inferred", outputs.nxt)):
        norms = p_norms(vectors, params.norm_power)
        if params.ranking:
            terms["ranking" + suffix] = margin_ranking(norms, truth, among(pairs, ~is_stressed))
        if params.stressed_ranking:
            terms["stressed_ranking" + suffix] = margin_stressed_ranking(
                norms, truth, _of_vertices(lowest, batch.type_of), stressed_pairs(pairs, is_stressed), is_stressed.sum()
            )
    return terms


def _detection(outputs: Outputs, label: Tensor, params: LossParams, counts: ClassCounts, is_selection: bool) -> Tensor:
    """Over all vertices that have been inferred, not of targets alone, divided by the stressed ones of the batch."""
    is_judged = outputs.is_inferred & ~torch.isnan(label)
    logit, is_stressed = outputs.logit[is_judged], label[is_judged] == 1
    losses = detection_losses(logit, is_stressed, params, counts, is_selection=is_selection)
    return per_stressed(losses, (label == 1).sum(), len(label))


def _of_vertices(lowest: Tensor, type_of: Tensor) -> Tensor:
    """(v,): the lowest norm of each one's type, NaN for a type that training did not have."""
    return torch.where(type_of >= 0, lowest[type_of.clamp(min=0)], torch.nan)
