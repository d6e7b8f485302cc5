"""Perona's network, fitted with pytorch-lightning on gathered batches: noise, the sum of the losses, Adam, and the
epoch with the least loss on graphs that it does not learn. Source: Perona, III-C and IV-B."""

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.warnings import PossibleUserWarning
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor

from tasks.errors import BadInput
from tasks.nodes.perona.graph import Batches, GraphBatch, GraphSet
from tasks.nodes.perona.inputs import STRESSED, UNSTRESSED
from tasks.nodes.perona.losses import ClassCounts, loss_terms, lowest_input_norms, summed
from tasks.nodes.perona.network import Encoder, PeronaNetwork, network_of
from tasks.nodes.perona.params import ALL, FitParams, ModelParams

Report = Callable[[int, float], None]
COLUMNS = ("epoch", "train_loss", "validation_loss", "seconds")
GRAPHS_AT_ONCE = 64  # of a validation batch
CHATTY = ("pytorch_lightning", "lightning_fabric")
logger = logging.getLogger(__name__)


class Diverged(BadInput):
    """A training of which no epoch has a finite validation loss."""


@dataclass(frozen=True)
class FittedNetwork:
    """network: with the weights of best_epoch (from 1), in evaluation mode. validation_loss: of that epoch.
    history: one row an epoch: epoch, train_loss, validation_loss, seconds since the start."""

    network: Encoder
    best_epoch: int
    validation_loss: float
    history: pd.DataFrame


def fit_network(
    train: GraphSet, validation: GraphSet, params: ModelParams, *, report: Report | None = None
) -> FittedNetwork:
    """A network fitted on some graphs, with the weights of the epoch that has the least loss on others.

    The loss of selection has detection as cross entropy with a class weight. What params leave to the variant is
    settled by the number of training graphs (network.params). report: called after each epoch with its
    number, from 1, and the least loss so far; what it raises ends the training. The same graphs, parameters and seed
    give the same weights; torch's own generator is left as it was. Raises BadInput if there is no graph to learn from
    or to select by, Diverged if no epoch has a finite loss."""
    for graphs, name in ((train, "training"), (validation, "validation")):
        if not len(graphs):
            raise BadInput(f"{name} graphs", "none", "at least one execution", "take more executions")
    params = params.settled(len(train))
    selection = Selection(report=report)
    with one_thread(), silent(), seeded(params.fit.seed):
        batches = Batches(train, params)
        module = new_module(train, batches, params)
        lean_trainer(params.fit, [selection]).fit(
            module,
            train_dataloaders=ShuffledBatches(batches, params.fit.batch_size, params.fit.seed),
            val_dataloaders=InParts(Batches(validation, params)),
        )
    if not selection.best_epoch:
        fix = f"take a smaller learning rate than {params.fit.learning_rate:g}"
        raise Diverged("training", "no epoch with a finite validation loss", "weights that stay finite", fix)
    module.network.load_state_dict(selection.best_weights)
    module.network.eval()
    seconds = selection.history["seconds"].iloc[-1]
    logger.info(
        "fitted on %d graphs in %.1f s, best of %d epochs: %d, validation loss %.4f",
        len(train),
        seconds,
        len(selection.history),
        selection.best_epoch,
        selection.best_loss,
    )
    return FittedNetwork(module.network, selection.best_epoch, selection.best_loss, selection.history)


def new_module(train: GraphSet, batches: Batches, params: ModelParams) -> "PeronaModule":
    """An untrained network for these graphs, with what the losses need to know of the training as a whole.

    batches: of the same graphs. Weights are drawn from torch's generator."""
    params = params.settled(len(train))
    counts = class_counts(train)
    network = network_of(batches.n_inputs, batches.n_types, batches.edge_size, params)
    lowest = None
    if isinstance(network, PeronaNetwork):
        network.set_prior(counts.n_stressed, counts.n_calm)
        # the paper's lowest norm of each type, from all training targets and their predecessors
        everything = batches.of(np.arange(len(train)))
        lowest = lowest_input_norms(everything, batches.n_types, params.loss.norm_power)
    return PeronaModule(network, params, counts, lowest=lowest)


def class_counts(graphs: GraphSet) -> ClassCounts:
    """Targets by label."""
    labels = graphs.inputs.labels[graphs.targets]
    return ClassCounts(n_stressed=int((labels == STRESSED).sum()), n_calm=int((labels == UNSTRESSED).sum()))


class PeronaModule(pl.LightningModule):
    """training_losses, validation_losses: of the batches since they were last taken, beside the number of graphs.

    counts: stressed and calm targets of the training; lowest: see loss_terms. Nothing is logged: what belongs to an
    epoch is in Selection."""

    def __init__(
        self, network: Encoder, params: ModelParams, counts: ClassCounts, *, lowest: Tensor | None = None
    ) -> None:
        super().__init__()
        self.network, self.params, self.counts, self.lowest = network, params, counts, lowest
        self.training_losses: list[tuple[Tensor, int]] = []
        self.validation_losses: list[tuple[Tensor, int]] = []

    def training_step(self, batch: GraphBatch, batch_idx: int) -> Tensor:  # noqa: ARG002
        """The loss of a batch with noise. Ours is to decode what was there before the noise, the paper's the noise
        too."""
        noisy = with_noise(batch, self.params)
        loss = summed(self.terms(noisy if self.params.is_paper else batch, noisy, clean=batch))
        self.training_losses.append((loss.detach(), batch.n_graphs))
        return loss

    def validation_step(self, batch: GraphBatch, batch_idx: int) -> None:  # noqa: ARG002
        """Notes the loss that models are selected by: without noise or dropout, of all triplets, detection as cross
        entropy with a class weight."""
        self.validation_losses.append((summed(self.terms(batch, batch, is_selection=True)), batch.n_graphs))

    def terms(
        self, taught: GraphBatch, seen: GraphBatch, *, is_selection: bool = False, clean: GraphBatch | None = None
    ) -> dict[str, Tensor]:
        """The terms of the loss of what the network makes of `seen` beside what it should make, `taught`."""
        loss = self.params.loss
        return loss_terms(
            taught,
            self.network(seen),
            loss.model_copy(update={"mined_per_type": ALL}) if is_selection else loss,
            self.counts,
            is_selection=is_selection,
            clean=clean,
            lowest=self.lowest,
        )

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Adam; the rate of ours falls to 0 along half a cosine (Loshchilov and Hutter 2017, equation 5, without
        restarts), step by step over all epochs; the paper's stays."""
        adam = self.adam()
        if self.params.is_paper:
            return adam
        n_steps = int(self.trainer.estimated_stepping_batches)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=n_steps)
        return {"optimizer": adam, "lr_scheduler": {"scheduler": falling, "interval": "step"}}

    def adam(self) -> torch.optim.Adam:
        """Adam; weights decay, biases do not."""
        fit, own = self.params.fit, list(self.network.parameters())
        groups = [
            {"params": [one for one in own if one.ndim > 1], "weight_decay": fit.weight_decay},
            {"params": [one for one in own if one.ndim <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.Adam(groups, lr=fit.learning_rate)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:  # noqa: ARG002
        """The batch as it is: all is on the CPU, and Lightning would go through every field."""
        return batch


def with_noise(batch: GraphBatch, params: ModelParams) -> GraphBatch:
    """The batch with noise from torch's generator on what was measured; in the paper's variant on filled-in values and
    on edges too. Source: the published code."""
    deviation = params.fit.noise
    if deviation == 0:
        return batch
    x = batch.x + torch.randn_like(batch.x) * deviation
    if params.is_paper:
        return replace(batch, x=x, edge_attr=batch.edge_attr + torch.randn_like(batch.edge_attr) * deviation)
    return replace(batch, x=torch.where(batch.is_own, x, batch.x))


def mean_loss(losses: Iterable[tuple[Tensor, int]]) -> float:
    """Mean over graphs of the losses of batches; NaN without any."""
    told = [(float(loss), count) for loss, count in losses]
    n_graphs = sum(count for _, count in told)
    return sum(loss * count for loss, count in told) / n_graphs if n_graphs else float("nan")


class Selection(pl.Callback):
    """Keeps the weights of the best epoch so far in memory, and a row for each epoch.

    best_epoch: from 1, 0 before there is one with a finite loss. report: called after each epoch with its number and
    the least validation loss so far, infinite before there is one; what it raises ends the training. A training whose
    loss is not finite stops."""

    def __init__(self, *, report: Report | None = None) -> None:
        self.best_epoch, self.best_loss = 0, math.inf
        self.best_weights: dict[str, Tensor] = {}
        self._report = report
        self._rows: list[tuple[int, float, float, float]] = []
        self._started = 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Starts the clock."""
        self._started = time.perf_counter()

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Judges the epoch that has just been."""
        module: PeronaModule = pl_module
        train_loss, validation_loss = mean_loss(module.training_losses), mean_loss(module.validation_losses)
        module.training_losses.clear()
        module.validation_losses.clear()
        if trainer.sanity_checking:
            return
        epoch = len(self._rows) + 1
        if validation_loss < self.best_loss:  # never for NaN
            self.best_epoch, self.best_loss = epoch, validation_loss
            self.best_weights = {name: one.detach().clone() for name, one in module.network.state_dict().items()}
        self._rows.append((epoch, train_loss, validation_loss, time.perf_counter() - self._started))
        if self._report is not None:
            self._report(epoch, self.best_loss)
        if not math.isfinite(train_loss):
            trainer.should_stop = True

    @property
    def history(self) -> pd.DataFrame:
        """One row an epoch: epoch from 1, train_loss (with noise and dropout), validation_loss, seconds since the
        start."""
        return pd.DataFrame(self._rows, columns=list(COLUMNS)).astype({"epoch": "int64"})


class ShuffledBatches:
    """Batches of all graphs in a new order each time they are gone through; the last may be smaller.

    seed: of the orders, which are the same ones for the same seed and depend on nothing else."""

    def __init__(self, batches: Batches, batch_size: int, seed: int) -> None:
        self._batches, self._batch_size = batches, batch_size
        self._rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        """Batches of one pass."""
        return -(-len(self._batches) // self._batch_size)

    def __iter__(self) -> Iterator[GraphBatch]:
        """One pass. The order is drawn when the first batch is asked for: Lightning makes iterators that it drops."""
        order = self._rng.permutation(len(self._batches))
        for first in range(0, len(order), self._batch_size):
            yield self._batches.of(order[first : first + self._batch_size])


class InParts:
    """All graphs in as few batches as triplets allow, the same ones every time, gathered once.

    The similarities of all pairs of vectors are sorted for the triplets, so a batch of a thousand graphs takes longer
    than sixteen of 64. Which graphs are in a part is drawn, so that its triplets are of all types."""

    def __init__(self, batches: Batches, graphs_at_once: int = GRAPHS_AT_ONCE) -> None:
        n_parts = -(-len(batches) // graphs_at_once)
        order = np.random.default_rng(0).permutation(len(batches))
        self._parts = [batches.of(np.sort(part)) for part in np.array_split(order, n_parts)]

    def __len__(self) -> int:
        """Batches."""
        return len(self._parts)

    def __iter__(self) -> Iterator[GraphBatch]:
        """The batches."""
        return iter(self._parts)


def lean_trainer(params: FitParams, callbacks: Sequence[pl.Callback]) -> pl.Trainer:
    """A trainer on the CPU that trains and validates, and does nothing else."""
    return pl.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=params.epochs,
        gradient_clip_val=params.clip_norm,
        callbacks=list(callbacks),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch's generator on the CPU starts from the seed, and goes on afterwards as if nothing had been."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread: as fast for matrices this small, and sums come in the same order on every machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def silent() -> Iterator[None]:
    """Lightning without its hints: which devices there are, that an epoch has few steps, that it has stopped."""
    before = {name: logging.getLogger(name).level for name in CHATTY}
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=PossibleUserWarning)
            warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
