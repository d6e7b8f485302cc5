"""Small batches with drawn numbers, and networks for them."""

import numpy as np
import pytest
import torch

N_INPUTS, N_TYPES, EDGE_SIZE, N_EVIDENCE = 5, 3, 7, 2


def drawn_batch(sizes=(4, 4), *, seed=0, is_paper=False, is_stressed=(), types=None):
    """Graphs of so many vertices each, the last one of each its target; every pair of a graph is an edge.

    is_stressed: numbers of graphs whose target is stressed. types: of the graphs, by default 0, 1, 2, 0, …"""
    from tasks.nodes.perona.graph import GraphBatch

    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape):
        return torch.randn(*shape, generator=generator)

    graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    first = torch.tensor(np.cumsum([0, *sizes[:-1]]))
    place = torch.arange(len(graph)) - first[graph]
    is_target = place == torch.tensor(sizes)[graph] - 1
    pairs = [(a, b) for a in range(len(graph)) for b in range(a + 1, len(graph)) if graph[a] == graph[b]]
    pairs += [(a, a) for a in range(len(graph))] if is_paper else []
    edge_index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    type_of = torch.tensor(types if types is not None else [at % N_TYPES for at in range(len(sizes))])[graph]
    label = torch.zeros(len(graph))
    label[is_target & torch.isin(graph, torch.tensor(is_stressed, dtype=torch.int64))] = 1
    x = drawn(len(graph), N_INPUTS)
    return GraphBatch(
        x=torch.sigmoid(x) if is_paper else x,
        is_own=torch.arange(N_INPUTS) % N_TYPES == type_of[:, None],
        type_of=type_of,
        label=label,
        performance=drawn(len(graph)) / 4,
        evidence=drawn(len(graph), N_EVIDENCE),
        graph=graph,
        slot=max(sizes) - torch.tensor(sizes)[graph] + place,
        is_target=is_target,
        n_predecessors=place,
        edge_index=edge_index,
        edge_attr=drawn(edge_index.shape[1], EDGE_SIZE),
    )


def drawn_network(params=None, *, seed=1):
    """A network of drawn weights for such batches, in evaluation mode."""
    from tasks.nodes.perona.network import PeronaNetwork
    from tasks.nodes.perona.params import ModelParams

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PeronaNetwork(N_INPUTS, N_TYPES, EDGE_SIZE, N_EVIDENCE, params or ModelParams())
        for one in network.parameters():  # no bias of 0 that would hide a mistake
            torch.nn.init.normal_(one, std=0.3)
    return network.eval()


@pytest.fixture(scope="session")
def batch_of():
    """drawn_batch."""
    return drawn_batch


@pytest.fixture(scope="session")
def network_of():
    """drawn_network."""
    return drawn_network
