"""What the network says of executions, each beside its predecessors, part by part."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tasks.nodes.perona.graph import ABSENT, Batches, GraphSet
from tasks.nodes.perona.inputs import Bools, Floats, Inputs, Ints
from tasks.nodes.perona.network import PeronaNetwork

OF_EXECUTIONS = (
    "x",
    "is_own",
    "type_of",
    "node_of",
    "started_s",
    "before",
    "during",
    "performance",
    "labels",
)


@dataclass(frozen=True)
class Answer:
    """About some executions.

    rows: (b,) which. logit: (b,), NaN of a network that was not taught to detect. is_inferred: (b,) whether there was a
    neighbourhood to infer the fingerprint from. expected: (b, f) what that decodes to, on the scale of x."""

    rows: Ints
    logit: Floats
    is_inferred: Bools
    expected: Floats


def targets_of(
    inputs: Inputs, network: PeronaNetwork, rows: Ints, predecessors: Ints, at_once: int
) -> Iterator[Answer]:
    """Ask the network about executions, `at_once` at a time, in the order of rows.

    rows: (k,). predecessors: (k, p), ABSENT where there are fewer. The network is as it was afterwards; nothing is
    drawn at random. Only these rows are handed on, so few of them cost little."""
    batches = Batches(_of_rows(inputs, rows, predecessors), network.params)
    was_training = network.training
    network.eval()
    try:
        for first in range(0, len(rows), at_once):
            numbers = np.arange(first, min(first + at_once, len(rows)))
            yield _ask(batches, network, numbers, rows[numbers])
    finally:
        network.train(was_training)


def _ask(batches: Batches, network: PeronaNetwork, numbers: Ints, rows: Ints) -> Answer:
    batch = batches.of(numbers)
    with torch.no_grad():
        found = network(batch)
    of = batch.is_target  # one a graph, in the order of the graphs
    logit = _floats(found.logit[of])
    return Answer(
        rows,
        logit if network.params.loss.detection else np.full(len(rows), np.nan),
        np.asarray(found.is_inferred[of].numpy(), dtype=bool),
        _floats(found.decoded_nxt[of]),
    )


def _floats(tensor: Tensor) -> Floats:
    return np.asarray(tensor.numpy(), dtype=np.float64)


def _of_rows(inputs: Inputs, rows: Ints, predecessors: Ints) -> GraphSet:
    """The graphs of these rows, over inputs that hold nothing else."""
    is_there = predecessors != ABSENT
    used = np.unique(np.append(rows, predecessors[is_there]))
    few = replace(inputs, **{name: getattr(inputs, name)[used] for name in OF_EXECUTIONS})
    beside = np.where(is_there, np.searchsorted(used, predecessors), ABSENT)
    return GraphSet(few, np.searchsorted(used, rows), beside)
