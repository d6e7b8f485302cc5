"""Batches: every graph once a pass, in an order that its seed alone decides."""

import numpy as np
import torch

from tasks.nodes.perona.graph import Batches
from tasks.nodes.perona.training import InParts, ShuffledBatches


def starts(batches):
    """What tells the targets of some batches apart: their performance."""
    return [batch.performance[batch.is_target].tolist() for batch in batches]


def flat(lists):
    return [value for values in lists for value in values]


def test_every_graph_is_in_each_pass_once_and_passes_differ(parts, quick):
    train, _, _ = parts
    batches = Batches(train, quick())
    loader = ShuffledBatches(batches, 16, seed=3)
    first, second = starts(loader), starts(loader)
    assert [len(batch) for batch in first] == [16, 16, 16, 16, 8]
    assert len(loader) == 5
    expected = sorted(train.inputs.performance[train.targets].tolist())
    assert sorted(flat(first)) == sorted(flat(second)) == expected
    assert first != second


def test_the_orders_depend_on_the_seed_and_not_on_iterators_that_were_dropped(parts, quick):
    batches = Batches(parts[0], quick())
    loader = ShuffledBatches(batches, 16, seed=3)
    iter(loader)  # Lightning makes one to see whether it can
    first = starts(loader)
    torch.rand(5)
    assert first == starts(ShuffledBatches(batches, 16, seed=3))
    assert first != starts(ShuffledBatches(batches, 16, seed=4))


def test_validation_goes_through_all_graphs_in_parts_of_equal_size_the_same_every_time(parts, quick):
    train, _, _ = parts
    batches = Batches(train, quick())
    loader = InParts(batches, graphs_at_once=30)
    first = starts(loader)
    assert [len(part) for part in first] == [24, 24, 24]
    assert len(loader) == 3
    assert first == starts(loader)
    assert sorted(flat(first)) == sorted(train.inputs.performance[train.targets].tolist())
    assert all(len(np.unique(part.type_of)) == 3 for part in loader)
    assert len(InParts(batches)) == 2
