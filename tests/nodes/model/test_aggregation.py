"""What earlier executions promise: the two convolutions by hand and against torch_geometric's own."""

import pytest
import torch
from torch_geometric.nn import TAGConv

from tasks.nodes.perona.network import Aggregation, NeighboursOnly, neighbour_means
from tasks.nodes.perona.params import NetworkParams

EDGES = torch.tensor([[0, 1, 0], [1, 2, 2]])


def test_hops_count_weighted_paths_and_leave_the_vertex_itself_out():
    layer = NeighboursOnly(1, 3)
    with torch.no_grad():
        for lin, weight in zip(layer.lins, (1.0, 10.0, 100.0), strict=True):
            lin.weight.fill_(weight)
        layer.bias.fill_(0.25)
    h, weights = torch.tensor([[2.0], [3.0], [5.0]]), torch.tensor([0.5, 2.0, 1.0])
    # A h = (0, 0.5·2, 2·3 + 1·2) = (0, 1, 8); A² h = (0, 0, 2·1 + 1·0) = (0, 0, 2); A³ h = 0
    # Σ Θ_k A^k h + b = 0.25, 1 + 0.25, 8 + 10·2 + 0.25
    assert layer(h, EDGES, weights).flatten().tolist() == pytest.approx([0.25, 1.25, 28.25])


def test_hops_are_those_of_torch_geometric_without_the_first_term():
    generator = torch.Generator().manual_seed(3)
    own, theirs = NeighboursOnly(4, 3), TAGConv(4, 4, K=3, normalize=False)
    with torch.no_grad():
        for at, lin in enumerate(own.lins):
            theirs.lins[at + 1].weight.copy_(lin.weight)
        theirs.lins[0].weight.zero_()
        theirs.bias.copy_(own.bias.normal_(generator=generator))
    h, weights = torch.randn(3, 4, generator=generator), torch.rand(3, generator=generator)
    torch.testing.assert_close(own(h, EDGES, weights), theirs(h, EDGES, weights))


def test_means_of_neighbours():
    h = torch.tensor([[2.0, 0.0], [4.0, 6.0], [9.0, 9.0]])
    # 0 has none; of 1: vertex 0; of 2: (2 + 4) / 2 and (0 + 6) / 2
    assert neighbour_means(h, EDGES).tolist() == [[0.0, 0.0], [2.0, 0.0], [3.0, 3.0]]


def test_attention_weighs_the_edges_of_the_hops_and_the_two_are_averaged():
    layer = Aggregation(1, NetworkParams(hidden=4, heads=2), sees_itself=False).eval()
    with torch.no_grad():
        for one in layer.parameters():
            one.zero_()  # keys and queries of 0: every edge that leads to a vertex has the same attention
        layer.transformer.lin_value.weight.copy_(torch.eye(4).repeat(2, 1))
        layer.adaptive.lins[0].weight.copy_(torch.eye(4))
        layer.last.weight.copy_(torch.eye(4))
    h = torch.tensor([[1.0, 1, 1, 1], [3.0, 3, 3, 3], [9.0, 9, 9, 9]])
    found = layer(h, EDGES, torch.zeros(3, 1))
    # vertex 2: attention 1/2 and 1/2, so (1 + 3) / 2 = 2 by both convolutions, and (2 + 2) / 2 = 2;
    # SELU of a positive number is 1.0507009873 times it, twice: 2 · 1.103972565 = 2.20794513
    assert found[2].tolist() == pytest.approx([2.20794513] * 4)
    # vertex 1: attention 1 for vertex 0, so 1 by both: 1.103972565
    assert found[1].tolist() == pytest.approx([1.103972565] * 4)


def test_attributes_of_edges_count(batch_of):
    batch = batch_of((3,))
    layer = Aggregation(batch.edge_attr.shape[1], NetworkParams(hidden=4), sees_itself=False).eval()
    h = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    before, after = (layer(h, batch.edge_index, one) for one in (batch.edge_attr, batch.edge_attr + 1))
    assert not torch.allclose(before[2], after[2])


@pytest.mark.parametrize("sees_itself", [False, True])
def test_without_any_edge_all_is_finite(sees_itself):
    layer = Aggregation(2, NetworkParams(root_weight=True, beta=True), sees_itself=sees_itself).eval()
    found = layer(torch.randn(3, 32), torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0, 2))
    assert found.shape == (3, 32) and torch.isfinite(found).all()
