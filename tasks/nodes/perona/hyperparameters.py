"""The parameters of Perona's network, searched on graphs that it is not fitted on. Source: Perona, IV-B and Table II.

Optuna's TPE proposes, ASHA gives up the worse, Optuna's journal remembers, and Ray Tune runs trials side by side. In
this process trials are the same ones every time, also after a kill: the sampler is seeded trial by trial. On Ray they
end in another order each time, and what is proposed depends on it; a search that goes on there after a kill compares
its new trials with each other alone when it gives some up. With an address that begins with ray:// the search runs on
the head of the cluster, which must reach the folder of the journal."""

import hashlib
import logging
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.nodes.params import LARGE_BATCH, RAY_SETTING, SMALL_BATCH, WITHOUT_RAY, ModelParams, NetworkSearchParams
from tasks.nodes.perona.inputs import GraphSet
from tasks.ray_address import LOCAL, check_ray, connected

if TYPE_CHECKING:
    import optuna

Choice = bool | int | float
Space = dict[str, tuple[Choice, ...]]

TABLE_II: Space = {
    "network.heads": (1, 3, 5),
    "network.beta": (False, True),
    "network.dropout": (0.0, 0.1, 0.2),
    "network.edge_dropout": (0.0, 0.1, 0.2),
    "network.root_weight": (False, True),
    "loss.focal_gamma": (0.5, 1.0, 2.0, 5.0),
    "loss.class_balance": (0.9, 0.99, 0.999, 0.9999),
    "fit.learning_rate": (0.1, 0.01, 0.001),
    "fit.weight_decay": (0.01, 0.001, 0.0001),
}
OURS: Space = {
    "network.dropout": TABLE_II["network.dropout"],
    "fit.weight_decay": TABLE_II["fit.weight_decay"],
    "fit.batch_size": (SMALL_BATCH, 32, 64, LARGE_BATCH),  # Table II fixes 16
    "fit.learning_rate": (0.1, 0.02, 0.01, 0.001),  # 0.02 is what batches of 128 learn with (nodes/params.py)
}
LOSS, EPOCH = "validation_loss", "epoch"  # what a trial reports
WORST = 1e6  # stands for a loss that is not finite: samplers and schedulers take no NaN
DIGEST_LENGTH = 16
GRACE_EPOCHS, REDUCTION = 50, 4  # epochs of every trial, and of so many trials one goes on after them (paper: 50, 4)
WARM_UP_TRIALS = 10  # drawn at random before TPE proposes
SEED = 42  # of what is proposed, as the paper's authors have it
TUNE_SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # no files of its own for each trial
    "RAY_AIR_NEW_OUTPUT": "0",  # which prints a box whatever one asks for
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C stops at once; the journal has what is finished
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchResult:
    """best: the parameters with the least validation loss, the same as given in all that is not searched.
    validation_loss: theirs, the least of their epochs. trials: one row a finished trial: number from 0, validation_loss
    (the least of its epochs), epochs, and its values by `part.name`. n_resumed: trials that were there before."""

    best: ModelParams
    validation_loss: float
    trials: pd.DataFrame
    n_resumed: int


def search(
    train: GraphSet,
    validation: GraphSet,
    params: ModelParams,
    search: NetworkSearchParams,
    *,
    journal: Path | None = None,
) -> SearchResult:
    """The best of n_trials configurations of the variant's space, by the least validation loss of any epoch.

    No test graph has any part in it. journal: Optuna's file; a search that was killed goes on from it, finished trials
    are not repeated, other graphs and settings stand side by side in it, and more trials may be asked for. Without one
    nothing is kept. The same values twice are two trials: the sampler is free to propose them. With the runner `here`
    the same graphs, parameters and seed give the same trials. Raises BadSetting if a Ray does not answer, MissingTool
    if it is not installed, BadInput if a set of graphs is empty."""
    if search.runner == "ray":
        check_ray(search.ray_address, setting=RAY_SETTING, otherwise=WITHOUT_RAY)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)  # no line for each trial
    with tempfile.TemporaryDirectory(prefix="search-") as folder:
        kept = journal or Path(folder) / "journal.log"
        kept.parent.mkdir(parents=True, exist_ok=True)
        name = study_name(train, validation, params)
        study = _open_study(name, params, kept)
        n_resumed = len(_finished(study))
        if n_resumed < search.n_trials and search.runner == "here":
            _run_here(study, train, validation, params, search)
        elif n_resumed < search.n_trials:
            _run_on_ray(name, kept, (train, validation), params, search, n_resumed)
            study = _open_study(name, params, kept)
        trials = _finished(study)
        # the earliest of equal ones; one that was given up may be it
        best = min(trials, key=lambda trial: (math.inf if trial.value is None else trial.value, trial.number))
        rows = [
            {"number": place, LOSS: trial.value, "epochs": trial.user_attrs.get(EPOCH, trial.last_step), **trial.params}
            for place, trial in enumerate(trials)
        ]
        return SearchResult(with_values(params, best.params), float(best.value or 0.0), pd.DataFrame(rows), n_resumed)


def space_of(params: ModelParams) -> Space:
    """What is searched in a variant, by `part.name`: all of Table II in the paper's; in ours what of it has an effect,
    and the batches and the rate that it learns with when nobody searches."""
    return dict(TABLE_II) if params.is_paper else OURS


def with_values(params: ModelParams, values: Mapping[str, object]) -> ModelParams:
    """The parameters with some replaced. values: by `part.name`; raises KeyError for a part that there is not."""
    content = params.model_dump()
    for name, value in values.items():
        part, key = name.split(".")
        content[part][key] = value
    return ModelParams.model_validate(content)


def study_name(train: GraphSet, validation: GraphSet, params: ModelParams) -> str:
    """One study for the same graphs, settings and values to try, however many trials and wherever they run."""
    digest = hashlib.sha256()
    for content in (train.inputs, train, validation.inputs, validation):
        for field in fields(content):
            value = getattr(content, field.name)
            if isinstance(value, np.ndarray):
                digest.update(f"{field.name} {value.shape} {value.dtype}".encode())
                digest.update(np.ascontiguousarray(value).tobytes())
            elif isinstance(value, tuple):
                digest.update(repr(value).encode())
    digest.update(repr(space_of(params)).encode())
    digest.update(params.model_dump_json().encode())
    return f"{params.variant}-{digest.hexdigest()[:DIGEST_LENGTH]}"


def grace_of(params: ModelParams) -> int:
    """Epochs that every trial is given: GRACE_EPOCHS, but at most half of all, or no trial would be given up."""
    return min(GRACE_EPOCHS, max(params.epochs // 2, 1))


def trial_loss(
    train: GraphSet, validation: GraphSet, params: ModelParams, report: Callable[[int, float], None]
) -> float:
    """The least validation loss of all epochs of a fit, at most WORST.

    report: called after each epoch with its number, from 1, and the least loss so far; what it raises ends all."""
    from tasks.nodes.perona.training import Diverged, fit_network

    try:
        fitted = fit_network(train, validation, params, report=lambda epoch, loss: report(epoch, min(loss, WORST)))
        return min(fitted.validation_loss, WORST)
    except Diverged:
        return WORST


def _open_study(name: str, params: ModelParams, journal: Path) -> "optuna.Study":
    """A new study, or the one of that name in the journal; trials that a killed search left open are closed.

    Its pruner is ASHA: after the grace, and then at each power of REDUCTION times that, the best of REDUCTION
    trials goes on."""
    import optuna

    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=grace_of(params), reduction_factor=REDUCTION)
    study = optuna.create_study(
        storage=_storage(journal), study_name=name, pruner=pruner, direction="minimize", load_if_exists=True
    )
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def _storage(journal: Path) -> "optuna.storages.JournalStorage":
    import optuna
    from optuna.storages.journal import JournalFileBackend

    return optuna.storages.JournalStorage(JournalFileBackend(str(journal)))


def _finished(study: "optuna.Study") -> list["optuna.trial.FrozenTrial"]:
    """Trials that ended with a loss, given up or not, in the order of their start."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def _run_here(
    study: "optuna.Study", train: GraphSet, validation: GraphSet, params: ModelParams, search: NetworkSearchParams
) -> None:
    """Trials until the study has as many finished ones as are asked for."""
    import optuna

    def objective(trial: optuna.Trial) -> float:
        def report(epoch: int, loss: float) -> None:
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        values = {name: trial.suggest_categorical(name, choices) for name, choices in space_of(params).items()}
        return trial_loss(train, validation, with_values(params, values), report)

    while (n_done := len(_finished(study))) < search.n_trials:
        study.sampler = optuna.samplers.TPESampler(seed=SEED + n_done, n_startup_trials=WARM_UP_TRIALS)
        study.optimize(objective, n_trials=1)


def _run_on_ray(
    name: str,
    journal: Path,
    graphs: tuple[GraphSet, GraphSet],
    params: ModelParams,
    search: NetworkSearchParams,
    n_done: int,
) -> None:
    """Trials until the study of that name has as many as are asked for, n_done of which it has. graphs: of training and
    of validation. Raises BadInput if no trial ended."""
    shared = None if search.ray_address == LOCAL else journal.parent
    with (
        connected(search.ray_address, search.concurrency, setting=RAY_SETTING, otherwise=WITHOUT_RAY) as n_at_once,
        tempfile.TemporaryDirectory(prefix="ray-", dir=shared, ignore_cleanup_errors=True) as folder,
    ):
        os.environ.update(TUNE_SETTINGS)  # before Tune is imported
        from ray import tune
        from ray.tune.schedulers import ASHAScheduler

        scheduler = ASHAScheduler(max_t=params.epochs, grace_period=grace_of(params), reduction_factor=REDUCTION)
        trainable = tune.with_parameters(_fit_trial, train=graphs[0], validation=graphs[1], params=params)
        results = tune.Tuner(
            tune.with_resources(trainable, {"cpu": 1}),
            tune_config=tune.TuneConfig(
                metric=LOSS,
                mode="min",
                search_alg=_proposals(name, journal, params, n_done),
                scheduler=scheduler,
                num_samples=search.n_trials - n_done,
                max_concurrent_trials=n_at_once,
                reuse_actors=True,  # 0.55 s a trial against 2.2 s
            ),
            run_config=tune.RunConfig(
                name=name, storage_path=folder, verbose=0, failure_config=tune.FailureConfig(max_failures=0)
            ),
        ).fit()
    if results.errors:
        logger.warning("%d of %d trials failed, the first: %r", len(results.errors), len(results), results.errors[0])
    if len(results.errors) == len(results):
        last_line = str(results.errors[0]).strip().splitlines()[-1]
        raise BadInput("search", f"no trial ended ({last_line})", "a network that can be fitted", "set runner: here")


def _proposals(name: str, journal: Path, params: ModelParams, n_done: int) -> Any:
    """Optuna's proposals for Ray Tune, with the number of epochs of each trial kept beside its loss."""
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    class Proposals(OptunaSearch):
        """OptunaSearch does not tell Optuna of the last epoch of a trial, only of its loss."""

        def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
            if result and EPOCH in result:
                self._ot_trials[trial_id].set_user_attr(EPOCH, result[EPOCH])
            super().on_trial_complete(trial_id, result, error)

    return Proposals(
        {
            parameter: optuna.distributions.CategoricalDistribution(choices)
            for parameter, choices in space_of(params).items()
        },
        metric=LOSS,
        mode="min",
        sampler=optuna.samplers.TPESampler(seed=SEED + n_done, n_startup_trials=WARM_UP_TRIALS, constant_liar=True),
        study_name=name,
        storage=_storage(journal),
    )


def _fit_trial(config: Mapping[str, Choice], train: GraphSet, validation: GraphSet, params: ModelParams) -> None:
    """What a worker of Ray does: one report an epoch, each with the least loss so far."""
    from ray import tune

    fitted = with_values(params, config)
    if trial_loss(train, validation, fitted, lambda epoch, least: tune.report({LOSS: least, EPOCH: epoch})) >= WORST:
        logger.info("a trial diverged: %s", dict(config))
