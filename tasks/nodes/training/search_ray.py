"""Trials side by side through Ray Tune: Optuna's TPE proposes, ASHA stops, Optuna's journal remembers.

Trials end in another order each time, and what is proposed depends on it: a search on Ray is not the same twice. One
that goes on after a kill compares its new trials with each other alone when it gives some up. With an address that
begins with ray:// the search runs on the head of the cluster, which must reach the folder of the journal."""

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasks.errors import BadInput
from tasks.nodes.graph.graph_set import GraphSet
from tasks.nodes.model.params import ModelParams
from tasks.nodes.training.ray_address import connected
from tasks.nodes.training.search_params import LOCAL, SearchParams
from tasks.nodes.training.search_space import Choice, space_of, with_values
from tasks.nodes.training.search_study import grace_of, journal_storage
from tasks.nodes.training.trial import WORST, trial_loss

LOSS = "validation_loss"
TUNE_SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # no files of its own for each trial
    "RAY_AIR_NEW_OUTPUT": "0",  # which prints a box whatever one asks for
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C stops at once; the journal has what is finished
}

logger = logging.getLogger(__name__)


def run_on_ray(
    name: str,
    journal: Path,
    graphs: tuple[GraphSet, GraphSet],
    params: ModelParams,
    search: SearchParams,
    n_done: int,
) -> None:
    """Trials until the study of that name has as many as are asked for, n_done of which it has.

    graphs: of training and of validation. Raises BadSetting if Ray does not answer, MissingTool if it is not
    installed, BadInput if no trial ended."""
    shared = None if search.ray_address == LOCAL else journal.parent
    with connected(search) as n_at_once, _settings(TUNE_SETTINGS):
        with tempfile.TemporaryDirectory(prefix="ray-", dir=shared, ignore_cleanup_errors=True) as folder:
            tuner = _tuner(name, journal, graphs, params, search, n_done, n_at_once, folder)
            results = tuner.fit()
    if results.errors:
        logger.warning("%d of %d trials failed, the first: %r", len(results.errors), len(results), results.errors[0])
    if len(results.errors) == len(results):
        last_line = str(results.errors[0]).strip().splitlines()[-1]
        raise BadInput("search", f"no trial ended ({last_line})", "a network that can be fitted", "set runner: here")


def _tuner(
    name: str,
    journal: Path,
    graphs: tuple[GraphSet, GraphSet],
    params: ModelParams,
    search: SearchParams,
    n_done: int,
    n_at_once: int,
    folder: str,
) -> Any:
    import optuna
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    from tasks.nodes.training.proposals import Proposals

    proposals = Proposals(
        {one: optuna.distributions.CategoricalDistribution(choices) for one, choices in space_of(params).items()},
        metric=LOSS,
        mode="min",
        sampler=optuna.samplers.TPESampler(
            seed=search.seed + n_done, n_startup_trials=search.warm_up_trials, constant_liar=True
        ),
        study_name=name,
        storage=journal_storage(journal),
    )
    scheduler = ASHAScheduler(
        max_t=params.fit.epochs_in(params.variant),
        grace_period=grace_of(params, search),
        reduction_factor=search.reduction,
    )
    trainable = tune.with_parameters(_fit_trial, train=graphs[0], validation=graphs[1], params=params)
    return tune.Tuner(
        tune.with_resources(trainable, {"cpu": 1}),
        tune_config=tune.TuneConfig(
            metric=LOSS,
            mode="min",
            search_alg=proposals,
            scheduler=scheduler,
            num_samples=search.n_trials - n_done,
            max_concurrent_trials=n_at_once,
            reuse_actors=True,  # 0.55 s a trial against 2.2 s
        ),
        run_config=tune.RunConfig(
            name=name, storage_path=folder, verbose=0, failure_config=tune.FailureConfig(max_failures=0)
        ),
    )


def _fit_trial(config: Mapping[str, Choice], train: GraphSet, validation: GraphSet, params: ModelParams) -> None:
    """What a worker of Ray does: one report an epoch, each with the least loss so far."""
    from ray import tune

    from tasks.nodes.training.proposals import EPOCH

    def report(epoch: int, loss: float) -> None:
        tune.report({LOSS: loss, EPOCH: epoch})

    loss = trial_loss(train, validation, with_values(params, config), report)
    if loss >= WORST:
        logger.info("a trial diverged: %s", dict(config))


@contextmanager
def _settings(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for as long as this lasts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
