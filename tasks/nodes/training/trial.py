"""One trial of a search: a network fitted with proposed values, and the loss that it is judged by."""

from collections.abc import Callable

from tasks.nodes.graph.graph_set import GraphSet
from tasks.nodes.model.params import ModelParams

WORST = 1e6  # stands for a loss that is not finite: samplers and schedulers take no NaN


def trial_loss(
    train: GraphSet, validation: GraphSet, params: ModelParams, report: Callable[[int, float], None]
) -> float:
    """The least validation loss of all epochs, at most WORST.

    report: called after each epoch with its number, from 1, and the least loss so far; what it raises ends all."""
    from tasks.nodes.training.fitting import Diverged, fit_network

    def told(epoch: int, loss: float) -> None:
        report(epoch, min(loss, WORST))

    try:
        return min(fit_network(train, validation, params, report=told).validation_loss, WORST)
    except Diverged:
        return WORST
