"""Triplet margin loss against pytorch-metric-learning, which forms the cube of triplets."""

import pytest
import torch

from tasks.nodes.perona.losses import triplet_margin

pytest.importorskip("pytorch_metric_learning")
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.miners import TripletMarginMiner


@pytest.mark.parametrize(("margin", "mining_margin"), [(0.05, 0.2), (0.3, 0.1), (0.2, 0.2), (0.05, 0.0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_has_the_numbers_and_gradients_of_pytorch_metric_learning(seed, margin, mining_margin):
    generator = torch.Generator().manual_seed(seed)
    vectors, type_of = torch.randn(24, 4, generator=generator), torch.randint(3, (24,), generator=generator)
    miner = TripletMarginMiner(margin=mining_margin, type_of_triplets="all", distance=CosineSimilarity())
    loss = TripletMarginLoss(margin=margin, distance=CosineSimilarity())
    ours, theirs = (vectors.double().requires_grad_() for _ in range(2))
    own = triplet_margin(ours, type_of, margin, mining_margin)
    other = loss(theirs, type_of, miner(theirs, type_of))
    torch.testing.assert_close(own, other)
    own.backward()
    other.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
