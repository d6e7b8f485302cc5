"""Gathered batches against torch_geometric's own, one Data each graph."""

from dataclasses import fields

import numpy as np
import pytest
import torch

from tasks.nodes.graph.batches import Batches
from tasks.nodes.graph.graph_set import graphs_of, least_predecessors
from tasks.nodes.graph.plain_batches import as_data_list, as_graph_batch
from tasks.nodes.graph.predecessors import predecessors_of
from tasks.nodes.model.params import ModelParams


@pytest.mark.parametrize("variant", ["ours", "paper"])
@pytest.mark.parametrize("seed", range(3))
def test_gathered_batches_are_those_put_together_one_by_one(inputs_with, variant, seed):
    params = ModelParams(variant=variant)
    rng = np.random.default_rng(seed)
    started_s = 1.7e9 + rng.exponential(1e5, 50).cumsum()
    inputs = inputs_with(rng.integers(0, 3, 50), rng.integers(-1, 2, 50), started_s=started_s)
    predecessors = predecessors_of(inputs, rng.random(50) < 0.8, params.graph.predecessors)
    graphs = graphs_of(inputs, rng.permutation(50), predecessors, least=least_predecessors(params))
    numbers = rng.integers(0, len(graphs), 16)
    found = Batches(graphs, params).of(numbers)
    datas = as_data_list(graphs, params)
    expected = as_graph_batch([datas[number] for number in numbers])
    for name in (field.name for field in fields(found)):
        own, other = getattr(found, name), getattr(expected, name)
        assert own.dtype == other.dtype, name
        if name == "edge_attr":
            torch.testing.assert_close(own, other, rtol=1e-6, atol=1e-7)
        else:
            torch.testing.assert_close(own, other, rtol=0, atol=0, equal_nan=True, msg=name)
