"""What a step of training does: noise, weight decay, and the loss that models are selected by."""

import math

import pytest
import pytorch_lightning as pl
import torch

from tasks.nodes.perona.graph import Batches
from tasks.nodes.perona.params import ModelParams
from tasks.nodes.perona.training import InParts, ShuffledBatches, lean_trainer, mean_loss, new_module, with_noise


@pytest.fixture
def batch(parts, quick):
    return Batches(parts[0], quick()).of(parts[0].targets[:20])


def test_noise_falls_on_what_was_measured_alone(batch, quick):
    torch.manual_seed(0)
    noisy = with_noise(batch, quick(noise=0.01))
    moved = noisy.x - batch.x
    assert (moved[batch.is_own] != 0).all()
    assert (moved[~batch.is_own] == 0).all()
    assert moved[batch.is_own].std() == pytest.approx(0.01, rel=0.3)
    assert noisy.edge_attr is batch.edge_attr
    assert with_noise(batch, quick(noise=0)) is batch


def test_noise_of_the_paper_falls_on_edges_too(batch, quick):
    params = ModelParams(variant="paper", **quick().model_dump(exclude={"variant"}))
    noisy = with_noise(batch, params)
    assert (noisy.x != batch.x).all()
    assert (noisy.edge_attr != batch.edge_attr).any(dim=1).all()


def test_weights_decay_and_biases_do_not(parts, quick):
    params = quick(weight_decay=0.01)
    module = new_module(parts[0], Batches(parts[0], params), params)
    decaying, lasting = module.adam().param_groups
    assert (decaying["weight_decay"], lasting["weight_decay"]) == (0.01, 0)
    assert {one.ndim for one in decaying["params"]} == {2}
    assert {one.ndim for one in lasting["params"]} == {1}
    n_parameters = sum(1 for _ in module.network.parameters())
    assert len(decaying["params"]) + len(lasting["params"]) == n_parameters


def test_models_of_other_focal_settings_and_caps_are_selected_by_the_same_loss(parts, quick, batch):
    found = []
    for change in ({}, {"focal_gamma": 5.0, "class_balance": 0.9}, {"mined_per_type": 2}):
        params = quick()
        params = params.model_copy(update={"loss": params.loss.model_copy(update=change)})
        torch.manual_seed(0)
        module = new_module(parts[0], Batches(parts[0], params), params).eval()
        with torch.no_grad():
            module.validation_step(batch, 0)
        found.append(mean_loss(module.validation_losses))
    assert found[0] == found[1] == found[2]


def test_a_mean_loss_counts_graphs_and_not_batches():
    assert mean_loss([(torch.tensor(1.0), 3), (torch.tensor(5.0), 1)]) == 2.0
    assert mean_loss([]) != mean_loss([])  # NaN


class Rates(pl.Callback):
    """The rate after each step."""

    def __init__(self):
        self.after = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.after.append(trainer.optimizers[0].param_groups[0]["lr"])


def rates_of(params, parts):
    train, validation, _ = parts
    rates, batches = Rates(), Batches(train, params)
    lean_trainer(params.fit, [rates]).fit(
        new_module(train, batches, params),
        train_dataloaders=ShuffledBatches(batches, params.fit.batch_size, 0),
        val_dataloaders=InParts(Batches(validation, params)),
    )
    return rates.after


def test_the_rate_falls_to_0_along_half_a_cosine_over_all_epochs(parts, quick):
    params = quick(epochs=2, batch_size=18, learning_rate=0.02)  # 72 graphs: 4 steps an epoch
    expected = [0.01 * (1 + math.cos(math.pi * step / 8)) for step in range(1, 9)]
    assert rates_of(params, parts) == pytest.approx(expected, abs=1e-9)


def test_the_rate_stays_without_annealing_and_in_the_papers_variant(parts, quick):
    still = quick(epochs=2, batch_size=18, learning_rate=0.02, annealing=False)
    assert set(rates_of(still, parts)) == {0.02}
    asked = quick(epochs=2, batch_size=18, learning_rate=0.02)
    paper = ModelParams(variant="paper", **asked.model_dump(exclude={"variant"}))
    full = tuple(part.of(part.n_predecessors >= 3) for part in parts)
    assert set(rates_of(paper, full)) == {0.02}
