"""Trials one after the other in this process: the same ones every time, also after a kill."""

from typing import TYPE_CHECKING

from tasks.nodes.graph.graph_set import GraphSet
from tasks.nodes.model.params import ModelParams
from tasks.nodes.training.search_params import SearchParams
from tasks.nodes.training.search_space import space_of, with_values
from tasks.nodes.training.search_study import finished_trials
from tasks.nodes.training.trial import trial_loss

if TYPE_CHECKING:
    import optuna


def run_here(
    study: "optuna.Study", train: GraphSet, validation: GraphSet, params: ModelParams, search: SearchParams
) -> None:
    """Trials until the study has as many finished ones as are asked for.

    The sampler is seeded trial by trial, so a study that goes on after a kill ends where an unbroken one does."""
    import optuna

    space = space_of(params)

    def objective(trial: optuna.Trial) -> float:
        def report(epoch: int, loss: float) -> None:
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        values = {name: trial.suggest_categorical(name, choices) for name, choices in space.items()}
        return trial_loss(train, validation, with_values(params, values), report)

    while (n_done := len(finished_trials(study))) < search.n_trials:
        study.sampler = optuna.samplers.TPESampler(seed=search.seed + n_done, n_startup_trials=search.warm_up_trials)
        study.optimize(objective, n_trials=1)
