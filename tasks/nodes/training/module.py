"""Perona's network as a LightningModule: noise, the sum of the losses, Adam. Source: Perona, III-C and IV-B."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn

from tasks.nodes.graph.batches import GraphBatch
from tasks.nodes.losses.focal import ClassCounts
from tasks.nodes.losses.total import loss_terms, summed
from tasks.nodes.model.network import PeronaNetwork
from tasks.nodes.model.params import ALL, ModelParams


class PeronaModule(pl.LightningModule):
    """training_losses, validation_losses: of the batches since they were last taken, beside the number of graphs.

    counts: stressed and calm targets of the training; lowest: see loss_terms. Nothing is logged: what belongs to an
    epoch is in Selection."""

    def __init__(
        self, network: PeronaNetwork, params: ModelParams, counts: ClassCounts, *, lowest: Tensor | None = None
    ) -> None:
        super().__init__()
        self.network, self.params, self.counts, self.lowest = network, params, counts, lowest
        self.training_losses: list[tuple[Tensor, int]] = []
        self.validation_losses: list[tuple[Tensor, int]] = []

    def training_step(self, batch: GraphBatch, batch_idx: int) -> Tensor:  # noqa: ARG002
        """The loss of a batch with noise. Ours is to decode what was there before the noise, the paper's the noise
        too."""
        noisy = with_noise(batch, self.params)
        taught = noisy if self.params.variant == "paper" else batch
        loss = summed(self.terms(taught, noisy, self.params, clean=batch))
        self.training_losses.append((loss.detach(), batch.n_graphs))
        return loss

    def validation_step(self, batch: GraphBatch, batch_idx: int) -> None:  # noqa: ARG002
        """Notes the loss that models are selected by: all terms without noise or dropout, of all triplets, detection
        as cross entropy with a class weight."""
        terms = self.terms(batch, batch, uncapped(self.params), is_selection=True)
        self.validation_losses.append((summed(terms), batch.n_graphs))

    def terms(
        self,
        taught: GraphBatch,
        seen: GraphBatch,
        params: ModelParams,
        *,
        is_selection: bool = False,
        clean: GraphBatch | None = None,
    ) -> dict[str, Tensor]:
        """The terms of the loss of what the network makes of `seen` beside what it should make, `taught`."""
        return loss_terms(
            taught,
            self.network(seen),
            params,
            self.counts,
            is_selection=is_selection,
            clean=clean,
            lowest=self.lowest,
        )

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Adam, and with fit.annealing a rate that falls to 0 along half a cosine (Loshchilov and Hutter 2017, equation
        5, without restarts), step by step over all epochs; the paper's stays."""
        adam = self.adam()
        if not self.params.fit.annealing or self.params.variant == "paper":
            return adam
        n_steps = int(self.trainer.estimated_stepping_batches)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=n_steps)
        return {"optimizer": adam, "lr_scheduler": {"scheduler": falling, "interval": "step"}}

    def adam(self) -> torch.optim.Adam:
        """Adam; weights decay, biases do not."""
        fit = self.params.fit
        own = list(self.network.parameters())
        groups = [
            {"params": [one for one in own if one.ndim > 1], "weight_decay": fit.weight_decay},
            {"params": [one for one in own if one.ndim <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.Adam(groups, lr=fit.learning_rate)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:  # noqa: ARG002
        """The batch as it is: all is on the CPU, and Lightning would go through every field."""
        return batch


def uncapped(params: ModelParams) -> ModelParams:
    """The same with triplets of all vectors."""
    return params.model_copy(update={"loss": params.loss.model_copy(update={"mined_per_type": ALL})})


def with_noise(batch: GraphBatch, params: ModelParams) -> GraphBatch:
    """The batch with noise from torch's generator on what was measured; in the paper's variant on filled-in values and
    on edges too. Source: the published code."""
    deviation = params.fit.noise
    if deviation == 0:
        return batch
    x = batch.x + torch.randn_like(batch.x) * deviation
    if params.variant == "paper":
        return replace(batch, x=x, edge_attr=batch.edge_attr + torch.randn_like(batch.edge_attr) * deviation)
    return replace(batch, x=torch.where(batch.is_own, x, batch.x))


def mean_loss(losses: Iterable[tuple[Tensor, int]]) -> float:
    """Mean over graphs of the losses of batches; NaN without any."""
    told = [(float(loss), count) for loss, count in losses]
    n_graphs = sum(count for _, count in told)
    return sum(loss * count for loss, count in told) / n_graphs if n_graphs else float("nan")


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights."""
    return {name: one.detach().clone() for name, one in network.state_dict().items()}
