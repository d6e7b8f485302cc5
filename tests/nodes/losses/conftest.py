"""Small batches and what a network might have said of them."""

import numpy as np
import pytest
import torch

N_INPUTS, N_TYPES, HIDDEN = 5, 2, 4


def drawn_batch(sizes=(3, 3, 2), *, seed=0, is_paper=False, stressed=(0,), unknown=()):
    """Graphs of so many vertices each, their targets last, types in turn. stressed, unknown: graphs whose target is."""
    from tasks.nodes.perona.graph import GraphBatch

    generator = torch.Generator().manual_seed(seed)
    graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    first = torch.tensor(np.cumsum([0, *sizes[:-1]]))
    place = torch.arange(len(graph)) - first[graph]
    is_target = place == torch.tensor(sizes)[graph] - 1
    pairs = [(a, b) for a in range(len(graph)) for b in range(a + 1, len(graph)) if graph[a] == graph[b]]
    pairs += [(a, a) for a in range(len(graph))] if is_paper else []
    edge_index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    type_of = graph % N_TYPES
    label = torch.zeros(len(graph))
    for told, value in ((stressed, 1.0), (unknown, torch.nan)):
        label[is_target & torch.isin(graph, torch.tensor(told, dtype=torch.int64))] = value
    x = torch.randn(len(graph), N_INPUTS, generator=generator)
    return GraphBatch(
        x=torch.sigmoid(x) if is_paper else x,
        is_own=torch.arange(N_INPUTS) % N_TYPES == type_of[:, None],
        type_of=type_of,
        label=label,
        performance=torch.randn(len(graph), generator=generator) / 4,
        evidence=torch.zeros(len(graph), 0),
        graph=graph,
        slot=max(sizes) - torch.tensor(sizes)[graph] + place,
        is_target=is_target,
        n_predecessors=place,
        edge_index=edge_index,
        edge_attr=torch.zeros(edge_index.shape[1], 1),
    )


def drawn_outputs(batch, *, seed=1, least=1):
    """Drawn answers about a batch, each of which asks for a gradient; stressed executions have large encodings.

    least: predecessors from which something is inferred."""
    from tasks.nodes.perona.network import Outputs

    generator = torch.Generator().manual_seed(seed)

    def drawn(width):
        return torch.randn(len(batch.x), width, generator=generator).requires_grad_()

    with torch.no_grad():
        enc, nxt = drawn(HIDDEN), drawn(HIDDEN)
        enc[batch.label == 1] += 5
        nxt[batch.label == 1] += 2
    enc, nxt = enc.requires_grad_(), nxt.requires_grad_()
    decoded_nxt, type_logits_nxt = drawn(N_INPUTS), drawn(N_TYPES)
    return Outputs(
        enc=enc,
        decoded=drawn(N_INPUTS),
        type_logits=drawn(N_TYPES),
        nxt=nxt,
        decoded_nxt=decoded_nxt,
        type_logits_nxt=type_logits_nxt,
        is_inferred=batch.n_predecessors >= least,
        logit=torch.randn(len(batch.x), generator=generator).requires_grad_(),
        logit_alone=torch.randn(len(batch.x), generator=generator).requires_grad_(),
        nxt_taught=nxt,
        decoded_taught=decoded_nxt,
        type_logits_taught=type_logits_nxt,
    )


@pytest.fixture(scope="session")
def batch_of():
    """drawn_batch."""
    return drawn_batch


@pytest.fixture(scope="session")
def outputs_of():
    """drawn_outputs."""
    return drawn_outputs
