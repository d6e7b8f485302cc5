"""Perona's network fitted to some executions of a history, selected by others, and measured on the rest.

pytorch-lightning on gathered batches: noise, the sum of the losses, Adam, and the epoch with the least loss on graphs
that it does not learn (Perona, III-C and IV-B). What is neither learned nor chosen by has no part in a fit: scales come
from training executions, labels of the others are hidden, and a graph holds executions of its own part of the history
alone, or earlier ones."""

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
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
from torch.utils.data import DataLoader

from tasks.errors import BadInput
from tasks.nodes.history import History
from tasks.nodes.params import ALL, FitParams, ModelParams, PreprocessParams, ScoreParams, Term
from tasks.nodes.perona.inputs import (
    NO_TYPE,
    STRESSED,
    UNKNOWN,
    UNSTRESSED,
    Batches,
    GraphBatch,
    GraphSet,
    InputScales,
    NetworkInputs,
    graphs_of,
    inputs_of,
    learn_inputs,
    predecessors_of,
)
from tasks.nodes.perona.losses import ClassCounts, input_norms, loss_terms, lowest_norms, summed
from tasks.nodes.perona.network import Encoder, PeronaNetwork, codes_of, fingerprints_of, judging, network_of
from tasks.nodes.type_tables import SD_OF_MAD, Bools, Floats, Ints, is_contaminated

Report = Callable[[int, float], None]
COLUMNS = ("epoch", "train_loss", "validation_loss", "seconds")
GRAPHS_AT_ONCE = 64  # of a validation batch
CHATTY = ("pytorch_lightning", "lightning_fabric")
MOST_GRAPHS = 5000  # executions that a fit learns from; of more, so many are drawn
LEAST_GRAPHS = 10  # to fit to
DRAWS = 7  # stream of the seed: which training executions are drawn
LEAST_PAIRS = 4  # of norm and performance, from which a correlation is told
OF_STRESS: tuple[Term, ...] = ("detection", "stressed_ranking")  # terms of the loss that need known stress
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


@dataclass(frozen=True)
class PreparedInputs:
    """scales: learned from the training executions. inputs: of all executions; labels of those that train or validate
    alone. is_calm: (n,) completed and undisturbed, so that it may stand beside later ones. train, validation: graphs to
    fit to; in the training graphs nothing is seen but training executions."""

    scales: InputScales
    inputs: NetworkInputs
    is_calm: Bools
    train: GraphSet
    validation: GraphSet


def prepare(
    history: History,
    is_train: Bools,
    is_validation: Bools,
    model: ModelParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
) -> PreparedInputs:
    """What a fit is given: training and validation executions by mask, (n,) each.

    An execution of which nobody says whether it was stressed counts as unstressed among the predecessors."""
    scales = learn_inputs(history, is_train, model, preprocess, score)
    inputs, seen = inputs_of(history, scales, model), is_train | is_validation
    inputs = replace(inputs, labels=np.where(seen, inputs.labels, UNKNOWN).astype(inputs.labels.dtype))
    is_calm = (history.executions["status"] == "completed") & ~is_contaminated(history.executions)
    calm = is_calm.to_numpy(dtype=bool)
    hidden = replace(inputs, labels=np.where(is_train, inputs.labels, UNKNOWN).astype(inputs.labels.dtype))
    train = known_graphs(hidden, is_train, is_train & calm, model)
    return PreparedInputs(scales, inputs, calm, train, known_graphs(inputs, is_validation, seen & calm, model))


def known_graphs(inputs: NetworkInputs, is_target: Bools, may_precede: Bools, model: ModelParams) -> GraphSet:
    """The graphs of some executions, each beside the latest earlier ones that may precede and are not known to be
    stressed. What measured nothing is neither target nor predecessor. is_target, may_precede: (n,)."""
    is_beside = may_precede & inputs.is_measured & (inputs.labels != STRESSED)
    beside = predecessors_of(inputs, is_beside, model.n_predecessors)
    return graphs_of(inputs, np.flatnonzero(is_target & inputs.is_measured), beside)


def fit_prepared(prepared: PreparedInputs, model: ModelParams) -> FittedNetwork:
    """A network fitted to the training graphs, of more than MOST_GRAPHS to a draw, and selected on validation graphs.

    Where no training execution is known to be stressed the paper's has no loss of detection, and gives no verdicts.
    Raises BadInput where there is too little to learn from or to choose by, Diverged as fit_network."""
    train, validation = prepared.train, prepared.validation
    if len(train) < LEAST_GRAPHS:
        raise BadInput("training", f"{len(train)} executions to learn from", f"at least {LEAST_GRAPHS}", "record more")
    rng = np.random.default_rng([DRAWS, model.fit.seed])
    train = train.drawn(MOST_GRAPHS, rng)
    if not (train.inputs.labels[train.targets] == STRESSED).any():
        terms = tuple(term for term in model.loss.terms if term not in OF_STRESS)
        model = model.model_copy(update={"loss": model.loss.model_copy(update={"terms": terms})})
    return fit_network(train, validation.drawn(MOST_GRAPHS, rng), model)


def learn_scale(inputs: NetworkInputs, is_train: Bools) -> tuple[Floats, Floats]:
    """What errors are measured by, learned from the executions of the mask (n,): ranges and means.

    ranges: (f,) greatest less least measured value of each column, 1 where it does not vary. means: (n_types, f) mean
    of each column over the executions of a type, those of all for a type without any."""
    x, is_own = inputs.x[is_train].astype(np.float64), inputs.is_own[is_train]
    most = np.where(is_own, x, -np.inf).max(axis=0, initial=-np.inf)
    least = np.where(is_own, x, np.inf).min(axis=0, initial=np.inf)
    ranges = np.subtract(most, least, out=np.ones(x.shape[1]), where=is_own.any(axis=0))
    everything = x.mean(axis=0) if len(x) else np.zeros(x.shape[1])
    of_type = [x[inputs.type_of[is_train] == number] for number in range(len(inputs.types))]
    means = [rows.mean(axis=0) if len(rows) else everything for rows in of_type]
    return np.where(ranges > 0, ranges, 1.0), np.array(means).reshape(-1, x.shape[1])


def measures_of(inputs: NetworkInputs, network: Encoder, is_train: Bools, is_tested: Bools) -> dict[str, float]:
    """What a fit is worth on tested executions; NaN where there are none.

    mse, mse_own: squared errors in squares of the training range of the column, over all columns as in the paper, and
    over the metrics that the execution itself measured; with _mean_predictor that of the type's training mean.
    type_accuracy: share of types told rightly. score_spearman: correlation of norm and measured performance within
    types, median over types; score_deviation: robust deviation of their ratio in natural logarithms, 0 where a score
    twice as large is a machine twice as fast."""
    rows = np.flatnonzero(is_tested & inputs.is_measured)
    x, true = inputs.x[rows], inputs.type_of[rows]
    ranges, means = learn_scale(inputs, is_train)
    with judging(network):
        codes = codes_of(x, network)
        decoded, types = network.decoder(codes).double().numpy(), network.classifier(codes).argmax(dim=1).numpy()
    is_own_metric = inputs.is_own[rows] & inputs.is_metric
    measures: dict[str, float] = {}
    for name, predicted in (("", decoded), ("_mean_predictor", means[true])):
        squares = ((predicted - x) / ranges) ** 2
        measures |= {f"mse{name}": _mean(squares), f"mse_own{name}": _mean(squares[is_own_metric])}
    measures["type_accuracy"] = _mean((types == true)[true != NO_TYPE].astype(np.float64))
    return measures | scores_follow(inputs, network, rows)


def scores_follow(inputs: NetworkInputs, network: Encoder, rows: Ints) -> dict[str, float]:
    """score_spearman and score_deviation of these rows."""
    log_norm, performance = fingerprints_of(inputs, network).log_norm, inputs.performance.astype(np.float64)
    frame = pd.DataFrame({"type": inputs.type_of, "log_norm": log_norm, "performance": performance}).iloc[rows]
    known = frame[np.isfinite(frame).all(axis=1)]
    correlations = [
        group["log_norm"].corr(group["performance"], method="spearman")
        for _, group in known.groupby("type")
        if len(group) >= LEAST_PAIRS
    ]
    surplus = known["log_norm"] - known["performance"]
    apart = surplus - surplus.groupby(known["type"]).transform("median")
    return {
        "score_spearman": float(pd.Series(correlations, dtype=np.float64).median()),
        "score_deviation": float(SD_OF_MAD * apart.abs().median()),
    }


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else np.nan


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
    with one_thread(), silent(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(params.fit.seed)
        batches = Batches(train, params)
        module = new_module(train, batches, params)
        shuffled = ShuffledBatches(batches, params.fit.batch_size, params.fit.seed)
        lean_trainer(params.fit, [selection]).fit(module, shuffled, in_parts(Batches(validation, params)))
    if not selection.best_epoch:
        fix = f"take a smaller learning rate than {params.fit.learning_rate:g}"
        raise Diverged("training", "no epoch with a finite validation loss", "weights that stay finite", fix)
    module.network.load_state_dict(selection.best_weights)
    module.network.eval()
    logger.info(
        "fitted on %d graphs in %.1f s, best of %d epochs: %d, validation loss %.4f",
        len(train), selection.history["seconds"].iloc[-1], len(selection.history), selection.best_epoch,
        selection.best_loss,
    )  # fmt: skip
    return FittedNetwork(module.network, selection.best_epoch, selection.best_loss, selection.history)


def new_module(train: GraphSet, batches: Batches, params: ModelParams) -> "PeronaModule":
    """An untrained network for these graphs, with what the losses need to know of the training as a whole.

    batches: of the same graphs. Weights are drawn from torch's generator."""
    params, labels, lowest = params.settled(len(train)), train.inputs.labels[train.targets], None
    counts = ClassCounts(n_stressed=int((labels == STRESSED).sum()), n_calm=int((labels == UNSTRESSED).sum()))
    network = network_of(batches.n_inputs, batches.n_types, batches.edge_size, params)
    if isinstance(network, PeronaNetwork):
        network.set_prior(counts.n_stressed, counts.n_calm)
        # the paper's lowest norm of each type, from all training targets and their predecessors
        everything = batches.of(np.arange(len(train)))
        lowest = lowest_norms(input_norms(everything, params.loss.norm_power), everything, batches.n_types)
    return PeronaModule(network, params, counts, lowest=lowest)


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
        noisy, params = with_noise(batch, self.params), self.params
        taught = noisy if params.is_paper else batch
        loss = summed(
            loss_terms(taught, self.network(noisy), params.loss, self.counts, clean=batch, lowest=self.lowest)
        )
        self.training_losses.append((loss.detach(), batch.n_graphs))
        return loss

    def validation_step(self, batch: GraphBatch, batch_idx: int) -> None:  # noqa: ARG002
        """Notes the loss that models are selected by: without noise or dropout, of all triplets, detection as cross
        entropy with a class weight."""
        every = self.params.loss.model_copy(update={"mined_per_type": ALL})
        terms = loss_terms(batch, self.network(batch), every, self.counts, is_selection=True, lowest=self.lowest)
        self.validation_losses.append((summed(terms), batch.n_graphs))

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
        fit, parameters = self.params.fit, list(self.network.parameters())
        groups = [
            {"params": [parameter for parameter in parameters if parameter.ndim > 1], "weight_decay": fit.weight_decay},
            {"params": [parameter for parameter in parameters if parameter.ndim <= 1], "weight_decay": 0.0},
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


def mean_loss(losses: Sequence[tuple[Tensor, int]]) -> float:
    """Mean over graphs of the losses of batches; NaN without any."""
    n_graphs = sum(count for _, count in losses)
    return sum(float(loss) * count for loss, count in losses) / n_graphs if n_graphs else float("nan")


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
        epoch = len(self._rows) + 1
        if validation_loss < self.best_loss:  # never for NaN
            self.best_epoch, self.best_loss = epoch, validation_loss
            self.best_weights = {name: tensor.detach().clone() for name, tensor in module.network.state_dict().items()}
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
    """Batches of all graphs in a new order each time they are gone through, drawn from the seed; the last may be
    smaller."""

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


def in_parts(batches: Batches) -> DataLoader[GraphBatch]:
    """All graphs in as few batches as triplets allow, the same ones every time, gathered once.

    The similarities of all pairs of vectors are sorted for the triplets, so a batch of a thousand graphs takes longer
    than sixteen of 64. Which graphs are in a part is drawn, so that its triplets are of all types."""
    n_parts = -(-len(batches) // GRAPHS_AT_ONCE)
    order = np.random.default_rng(0).permutation(len(batches))
    parts: Any = [batches.of(np.sort(part)) for part in np.array_split(order, n_parts)]
    return DataLoader(parts, batch_size=None, generator=torch.Generator())  # torch's own generator stays as it is


def lean_trainer(params: FitParams, callbacks: Sequence[pl.Callback]) -> pl.Trainer:
    """A trainer on the CPU that trains and validates, and does nothing else."""
    return pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=params.epochs, gradient_clip_val=params.clip_norm,
        callbacks=list(callbacks), logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0,
    )  # fmt: skip


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
    before = {logger: logger.level for logger in map(logging.getLogger, CHATTY)}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=PossibleUserWarning)
            warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
            for logger in before:
                logger.setLevel(logging.WARNING)
            yield
    finally:
        for logger, level in before.items():
            logger.setLevel(level)
