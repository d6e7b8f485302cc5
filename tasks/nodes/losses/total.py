"""The whole loss: one sum of all terms, each with weight 1. Source: Perona, IV-B."""

from collections.abc import Mapping

import torch
from torch import Tensor

from tasks.nodes.graph.batches import GraphBatch
from tasks.nodes.losses.focal import ClassCounts
from tasks.nodes.losses.our_terms import our_terms
from tasks.nodes.losses.paper_terms import input_norms, lowest_input_norms, paper_terms
from tasks.nodes.model.outputs import Outputs
from tasks.nodes.model.params import ModelParams

TERMS = (
    "reconstruction",
    "reconstruction_inferred",
    "detection",
    "detection_alone",  # in our variant alone: the head that judges executions without earlier ones
    "clustering",
    "classification",
    "classification_inferred",
    "ranking",
    "ranking_inferred",
    "stressed_ranking",
    "stressed_ranking_inferred",
)


def loss_terms(
    batch: GraphBatch,
    outputs: Outputs,
    params: ModelParams,
    class_counts: ClassCounts | tuple[int, int],
    *,
    is_selection: bool = False,
    clean: GraphBatch | None = None,
    lowest: Tensor | None = None,
) -> dict[str, Tensor]:
    """The terms that params.loss asks for, by the names of TERMS, each a scalar, finite and 0 where nothing counts.

    class_counts: stressed and calm targets of the training. is_selection: detection as cross entropy with a class
    weight, so that models of other focal settings can be compared. The paper's variant alone: clean, the batch without
    noise, by whose inputs is ranked; lowest, (n_types,) lowest_input_norms of the training, else of the batch."""
    counts = ClassCounts(*class_counts)
    if params.variant == "ours":
        return our_terms(batch, outputs, params.loss, counts, is_selection=is_selection)
    ranked_by, power = batch if clean is None else clean, params.loss.norm_power
    if lowest is None:
        lowest = lowest_input_norms(ranked_by, outputs.type_logits.shape[1], power)
    truth = input_norms(ranked_by, power)
    return paper_terms(batch, outputs, params.loss, counts, is_selection=is_selection, truth=truth, lowest=lowest)


def summed(terms: Mapping[str, Tensor]) -> Tensor:
    """The loss: the sum of all terms, 0 without any."""
    return torch.stack(list(terms.values())).sum() if terms else torch.zeros(())
