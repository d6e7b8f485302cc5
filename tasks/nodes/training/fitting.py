"""Perona's network, fitted with pytorch-lightning on gathered batches and selected on graphs that it does not learn."""

import logging
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import Tensor

from tasks.errors import BadInput
from tasks.nodes.graph.batches import Batches
from tasks.nodes.graph.graph_set import GraphSet
from tasks.nodes.graph.inputs import STRESSED, UNSTRESSED
from tasks.nodes.losses.focal import ClassCounts
from tasks.nodes.losses.paper_terms import lowest_input_norms
from tasks.nodes.model.network import PeronaNetwork
from tasks.nodes.model.params import ModelParams
from tasks.nodes.training.lean_trainer import lean_trainer, one_thread, seeded, silent
from tasks.nodes.training.loaders import InParts, ShuffledBatches
from tasks.nodes.training.module import PeronaModule
from tasks.nodes.training.selection import Report, Selection

logger = logging.getLogger(__name__)


class Diverged(BadInput):
    """A training of which no epoch has a finite validation loss."""


@dataclass(frozen=True)
class FittedNetwork:
    """network: with the weights of best_epoch (from 1), in evaluation mode. validation_loss: of that epoch.
    history: one row an epoch: epoch, train_loss, validation_loss, seconds since the start."""

    network: PeronaNetwork
    best_epoch: int
    validation_loss: float
    history: pd.DataFrame


def fit_network(
    train: GraphSet, validation: GraphSet, params: ModelParams, *, report: Report | None = None
) -> FittedNetwork:
    """A network fitted on some graphs, with the weights of the epoch that has the least loss on others.

    The loss of selection has all terms, detection as cross entropy with a class weight. What params leave to the
    variant is settled by the number of training graphs (network.params). report: called after each epoch with its
    number, from 1, and the least loss so far; what it raises ends the training. The same graphs, parameters and seed
    give the same weights; torch's own generator is left as it was. Raises BadInput if there is no graph to learn from
    or to select by, Diverged if no epoch has a finite loss."""
    for graphs, name in ((train, "training"), (validation, "validation")):
        if not len(graphs):
            raise BadInput(f"{name} graphs", "none", "at least one execution", "take more executions")
    params = params.settled(len(train))
    selection = Selection(report=report, patience=params.fit.patience)
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


def new_module(train: GraphSet, batches: Batches, params: ModelParams) -> PeronaModule:
    """An untrained network for these graphs, with what the losses need to know of the training as a whole.

    batches: of the same graphs. Weights are drawn from torch's generator."""
    params = params.settled(len(train))
    counts = class_counts(train)
    network = PeronaNetwork(batches.n_inputs, batches.n_types, batches.edge_size, batches.n_evidence, params)
    network.set_prior(counts.n_stressed, counts.n_calm)
    lowest = _lowest(train, batches, params) if params.variant == "paper" else None
    return PeronaModule(network, params, counts, lowest=lowest)


def class_counts(graphs: GraphSet) -> ClassCounts:
    """Targets by label."""
    labels = graphs.inputs.labels[graphs.targets]
    return ClassCounts(n_stressed=int((labels == STRESSED).sum()), n_calm=int((labels == UNSTRESSED).sum()))


def _lowest(train: GraphSet, batches: Batches, params: ModelParams) -> Tensor:
    """The paper's lowest norm of each type, from all training targets and their predecessors."""
    everything = batches.of(np.arange(len(train)))
    return lowest_input_norms(everything, batches.n_types, params.loss.norm_power)
