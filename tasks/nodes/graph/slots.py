"""Which places of a graph are joined by an edge: each earlier one to each later one, and in the paper each to itself.

Places, or slots, are 0 … p: the predecessors, oldest first, then the target."""

from dataclasses import dataclass

import numpy as np

from tasks.nodes.graph.inputs import Floats32, Inputs, Ints
from tasks.nodes.model.params import ModelParams


@dataclass(frozen=True)
class SlotPairs:
    """earlier, later: (k,) the slots that an edge of each kind joins. decay: (k,) 2^-(later - earlier)."""

    earlier: Ints
    later: Ints
    decay: Floats32


def slot_pairs(params: ModelParams) -> SlotPairs:
    """The edges of a graph in which no predecessor is absent: p (p + 1) / 2, and p + 1 more in the paper's variant."""
    n_slots = params.graph.predecessors + 1
    earlier, later = np.triu_indices(n_slots, k=1)
    if params.variant == "paper":
        own = np.arange(n_slots)
        earlier, later = np.append(earlier, own), np.append(later, own)
    decay = np.exp2(-(later - earlier).astype(np.float64)).astype(np.float32)
    return SlotPairs(earlier.astype(np.int64), later.astype(np.int64), decay)


def edge_size(inputs: Inputs, params: ModelParams) -> int:
    """Length of the attributes of an edge.

    Ours: node metrics before and during the later execution. Paper: their difference, of both executions. Then the
    decay and one encoding of the interval for each scale."""
    if params.variant == "paper":
        n_context: int = 2 * inputs.during.shape[1]
    else:
        n_context = inputs.before.shape[1] + inputs.during.shape[1]
    return n_context + 1 + len(params.graph.interval_scales_s)
