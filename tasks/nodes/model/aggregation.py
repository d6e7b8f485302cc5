"""What earlier executions promise of a vertex: two graph convolutions, averaged. Source: Perona, III-C and IV-B.

    nxt = SELU(W · AlphaDropout(SELU((transformer(h) + topology_adaptive(h)) / 2)))

The paper's authors let a vertex see itself: by self-loops, by the transformer's root weight, by the term A^0 h of the
topology adaptive convolution, and by the transformer's query, which is asked by the vertex' own encoding. Ours has none
of them, the mean of the neighbours asks instead: what is inferred of a vertex does not depend on its own metrics."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import Linear, TAGConv, TransformerConv
from torch_geometric.utils import scatter

from tasks.nodes.model.layers import linear
from tasks.nodes.model.params import NetworkParams

HOPS = 3  # of the topology adaptive convolution, as in the authors' code


class NeighboursOnly(TAGConv):  # type: ignore[misc]  # torch_geometric tells no types
    """Σ_k A^k h Θ_k + b for k = 1 … K: TAGConv without its term of k = 0, the vertex itself."""

    def __init__(self, size: int, hops: int) -> None:
        super().__init__(size, size, K=hops, normalize=False)
        self.lins = nn.ModuleList([Linear(size, size, bias=False) for _ in range(hops)])

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """x: (v, size); edge_index: (2, E); edge_weight: (E,). Returns (v, size)."""
        source, to = edge_index
        found: Tensor = torch.zeros_like(x) + self.bias
        for layer in self.lins:
            x = torch.zeros_like(x).index_add(0, to, edge_weight[:, None] * x[source])  # A^k h
            found = found + layer(x)
        return found


class Aggregation(nn.Module):
    """sees_itself: the paper's, with root weight and gate as the parameters say."""

    def __init__(self, edge_size: int, params: NetworkParams, *, sees_itself: bool) -> None:
        super().__init__()
        size = params.hidden
        self.sees_itself = sees_itself
        self.transformer = TransformerConv(
            size,
            size,
            heads=params.heads,
            concat=False,
            beta=params.beta and sees_itself,
            dropout=params.dropout,
            edge_dim=edge_size,
            root_weight=params.root_weight and sees_itself,
        )
        # the authors' version of PyG has no bias here; without a root weight the layer is not used at all
        self.transformer.lin_skip = Linear(size, size, bias=False) if sees_itself else nn.Identity()
        self.adaptive = _paper_hops(size) if sees_itself else NeighboursOnly(size, HOPS)
        self.dropout = nn.AlphaDropout(params.dropout)
        self.last = linear(size, size, has_bias=not sees_itself)

    def forward(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """h: (v, hidden); edge_index: (2, E); edge_attr: (E, d). Returns (v, hidden); it means nothing for a vertex
        that no edge leads to.

        The mean over the heads of the attention weights weighs the edges of the topology adaptive convolution."""
        ends = h if self.sees_itself else (h, neighbour_means(h, edge_index))
        by_attention, (_, attention) = self.transformer(ends, edge_index, edge_attr, return_attention_weights=True)
        by_hops = self.adaptive(h, edge_index, attention.mean(dim=1))
        merged = self.dropout(torch.selu((by_attention + by_hops) / 2))
        return torch.selu(self.last(merged))


def neighbour_means(h: Tensor, edge_index: Tensor) -> Tensor:
    """Mean of the vertices from which edges lead to each vertex, (v, hidden); 0 where none does."""
    source, to = edge_index
    means: Tensor = scatter(h[source], to, dim=0, dim_size=len(h), reduce="mean")
    return means


def _paper_hops(size: int) -> TAGConv:
    """With a bias in each of its linear layers, as PyG 2.0.4 has them whatever one asks for."""
    layer = TAGConv(size, size, K=HOPS, bias=False, normalize=False)
    layer.lins = nn.ModuleList([Linear(size, size) for _ in range(HOPS + 1)])
    return layer
