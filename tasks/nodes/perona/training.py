"""Perona's network fitted to some executions of a history, selected by others, and measured on the rest.

On gathered batches: noise, the sum of the losses, Adam, and the epoch with the least loss on graphs that it does not
learn (Perona, III-C and IV-B). What is neither learned nor chosen by has no part in a fit: scales come
from training executions, labels of the others are hidden, and a graph holds executions of its own part of the history
alone, or earlier ones."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

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
MOST_GRAPHS = 5000  # executions that a fit learns from; of more, so many are drawn
LEAST_GRAPHS = 10  # to fit to
DRAWS = 7  # stream of the seed: which training executions are drawn
LEAST_PAIRS = 4  # of norm and performance, from which a correlation is told
WITHOUT_STRESS: tuple[Term, ...] = ("reconstruction", "clustering", "classification", "ranking")  # of the loss
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
        model = model.with_terms(*WITHOUT_STRESS)
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
    means = [own.mean(axis=0) if len(own) else everything for own in of_type]
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
    own = inputs.is_own[rows] & inputs.is_metric
    found: dict[str, float] = {}
    for name, predicted in (("", decoded), ("_mean_predictor", means[true])):
        squares = ((predicted - x) / ranges) ** 2
        found |= {f"mse{name}": _mean(squares), f"mse_own{name}": _mean(squares[own])}
    found["type_accuracy"] = _mean((types == true)[true != NO_TYPE].astype(np.float64))
    return found | scores_follow(inputs, network, rows)


def scores_follow(inputs: NetworkInputs, network: Encoder, rows: Ints) -> dict[str, float]:
    """score_spearman and score_deviation of these rows."""
    log_norm, performance = fingerprints_of(inputs, network).log_norm, inputs.performance.astype(np.float64)
    told = pd.DataFrame({"type": inputs.type_of, "log_norm": log_norm, "performance": performance}).iloc[rows]
    known = told[np.isfinite(told).all(axis=1)]
    correlations = [
        own["log_norm"].corr(own["performance"], method="spearman")
        for _, own in known.groupby("type")
        if len(own) >= LEAST_PAIRS
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

    What params leave to the variant is settled by the number of training graphs (network.params). report: called after
    each epoch with its number, from 1, and the least loss so far, infinite before there is one; what it raises ends the
    training. A training whose loss is not finite stops. The same graphs, parameters and seed give the same weights;
    torch's own generator is left as it was. Raises BadInput if there is no graph to learn from or to select by,
    Diverged if no epoch has a finite loss."""
    for graphs, name in ((train, "training"), (validation, "validation")):
        if not len(graphs):
            raise BadInput(f"{name} graphs", "none", "at least one execution", "take more executions")
    params = params.settled(len(train))
    fit, rows, started = params.fit, list[tuple[int, float, float, float]](), time.perf_counter()
    best_epoch, best_loss, best_weights = 0, math.inf, dict[str, Tensor]()
    with one_thread(), seeded(fit.seed):
        batches = Batches(train, params)
        losses, order, parts = (
            new_losses(train, batches, params),
            np.random.default_rng(fit.seed),
            in_parts(validation, params),
        )
        network, n_steps = losses.network, fit.epochs * -(-len(train) // fit.batch_size)
        adam = adam_of(network, fit)
        weights = [one for group in adam.param_groups for one in group["params"]]
        # ours falls to 0 along half a cosine over all epochs (Loshchilov and Hutter 2017, equation 5, without restarts)
        rate = None if params.is_paper else torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=n_steps)
        for epoch in range(1, fit.epochs + 1):
            network.train()
            taught = []
            for batch in shuffled(batches, fit.batch_size, order):
                loss = losses.of_training(batch)
                adam.zero_grad()
                torch.autograd.backward(loss)
                torch.nn.utils.clip_grad_norm_(weights, fit.clip_norm)
                adam.step()
                if rate is not None:
                    rate.step()
                taught.append((loss.item(), batch.n_graphs))
            network.eval()
            train_loss, validation_loss = mean_loss(taught), losses.of_selection(parts)
            if validation_loss < best_loss:  # never for NaN
                best_epoch, best_loss = epoch, validation_loss
                best_weights = {name: one.detach().clone() for name, one in network.state_dict().items()}
            rows.append((epoch, train_loss, validation_loss, time.perf_counter() - started))
            if report is not None:
                report(epoch, best_loss)
            if not math.isfinite(train_loss):
                break
    if not best_epoch:
        fix = f"take a smaller learning rate than {fit.learning_rate:g}"
        raise Diverged("training", "no epoch with a finite validation loss", "weights that stay finite", fix)
    network.load_state_dict(best_weights)
    logger.info(
        "fitted on %d graphs in %.1f s, best of %d epochs: %d, validation loss %.4f",
        len(train), rows[-1][-1], len(rows), best_epoch, best_loss,
    )  # fmt: skip
    return FittedNetwork(network, best_epoch, best_loss, pd.DataFrame(rows, columns=list(COLUMNS)))


@dataclass(frozen=True)
class Losses:
    """The losses of a network. counts: stressed and calm targets of the training; lowest: see loss_terms."""

    network: Encoder
    params: ModelParams
    counts: ClassCounts
    lowest: Tensor | None = None

    def of_training(self, batch: GraphBatch) -> Tensor:
        """With noise: ours is to decode what was there before the noise, the paper's the noise too."""
        noisy, params = with_noise(batch, self.params), self.params
        taught = noisy if params.is_paper else batch
        return summed(
            loss_terms(taught, self.network(noisy), params.loss, self.counts, clean=batch, lowest=self.lowest)
        )

    def of_selection(self, parts: Sequence[GraphBatch]) -> float:
        """What an epoch is selected by: without noise, of all triplets, detection as cross entropy with a class weight.

        The network is in evaluation mode."""
        every = self.params.loss.model_copy(update={"mined_per_type": ALL})
        found = []
        with torch.no_grad():
            for part in parts:
                told = self.network(part)
                terms = loss_terms(part, told, every, self.counts, is_selection=True, lowest=self.lowest)
                found.append((summed(terms).item(), part.n_graphs))
        return mean_loss(found)


def new_losses(train: GraphSet, batches: Batches, params: ModelParams) -> Losses:
    """Those of an untrained network for these graphs. batches: of them. Weights are drawn from torch's generator."""
    params, counts, lowest = params.settled(len(train)), class_counts(train), None
    network = network_of(batches.n_inputs, batches.n_types, batches.edge_size, params)
    if isinstance(network, PeronaNetwork):
        network.set_prior(counts.n_stressed, counts.n_calm)
        # the paper's lowest norm of each type, from all training targets and their predecessors
        everything = batches.of(np.arange(len(train)))
        lowest = lowest_norms(input_norms(everything, params.loss.norm_power), everything, batches.n_types)
    return Losses(network, params, counts, lowest)


def class_counts(graphs: GraphSet) -> ClassCounts:
    """Targets by label."""
    labels = graphs.inputs.labels[graphs.targets]
    return ClassCounts(n_stressed=int((labels == STRESSED).sum()), n_calm=int((labels == UNSTRESSED).sum()))


def adam_of(network: Encoder, fit: FitParams) -> torch.optim.Adam:
    """Adam; weights decay, biases do not."""
    own = list(network.parameters())
    groups = [
        {"params": [one for one in own if one.ndim > 1], "weight_decay": fit.weight_decay},
        {"params": [one for one in own if one.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.Adam(groups, lr=fit.learning_rate)


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


def mean_loss(losses: Sequence[tuple[float, int]]) -> float:
    """Mean over graphs of the losses of batches, each with its number of graphs."""
    return sum(loss * count for loss, count in losses) / sum(count for _, count in losses)


def shuffled(batches: Batches, batch_size: int, rng: np.random.Generator) -> Iterator[GraphBatch]:
    """All graphs in batches in a new order; the last may be smaller."""
    order = rng.permutation(len(batches))
    for first in range(0, len(order), batch_size):
        yield batches.of(order[first : first + batch_size])


def in_parts(graphs: GraphSet, params: ModelParams) -> list[GraphBatch]:
    """All graphs in as few batches as triplets allow, the same ones every time, gathered once.

    The similarities of all pairs of vectors are sorted for the triplets, so a batch of a thousand graphs takes longer
    than sixteen of 64. Which graphs are in a part is drawn, so that its triplets are of all types."""
    batches = Batches(graphs, params)
    order = np.random.default_rng(0).permutation(len(batches))
    return [batches.of(np.sort(part)) for part in np.array_split(order, -(-len(batches) // GRAPHS_AT_ONCE))]


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
