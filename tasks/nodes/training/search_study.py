"""Where a search keeps its trials: in memory, or in Optuna's journal, from which a killed search goes on."""

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tasks.nodes.graph.graph_set import GraphSet
from tasks.nodes.model.params import ModelParams
from tasks.nodes.training.search_params import SearchParams
from tasks.nodes.training.search_space import space_of

if TYPE_CHECKING:
    import optuna

DIGEST_LENGTH = 16
EPOCHS = "epochs"  # of a trial, where its last report does not tell
HOW_IT_RUNS = {"n_trials", "runner", "ray_address", "concurrency"}  # a search may go on with others of these


def journal_storage(journal: Path) -> "optuna.storages.JournalStorage":
    """Optuna's storage in a file, made where there is none."""
    import optuna
    from optuna.storages.journal import JournalFileBackend

    return optuna.storages.JournalStorage(JournalFileBackend(str(journal)))


def open_study(
    name: str, params: ModelParams, search: SearchParams, storage: "optuna.storages.BaseStorage | None"
) -> "optuna.Study":
    """A new study, or the one of that name in the storage; trials that a killed search left open are closed.

    Its pruner is ASHA: after the grace, and then at each power of `reduction` times that, the best of `reduction`
    trials goes on."""
    import optuna

    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=grace_of(params, search), reduction_factor=search.reduction
    )
    study = optuna.create_study(
        storage=storage, study_name=name, pruner=pruner, direction="minimize", load_if_exists=True
    )
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def grace_of(params: ModelParams, search: SearchParams) -> int:
    """Epochs that every trial is given: grace_epochs, but at most half of all, or no trial would be given up."""
    return min(search.grace_epochs, max(params.fit.epochs_in(params.variant) // 2, 1))


def finished_trials(study: "optuna.Study") -> list["optuna.trial.FrozenTrial"]:
    """Trials that ended with a loss, given up or not, in the order of their start."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def best_trial(study: "optuna.Study") -> "optuna.trial.FrozenTrial":
    """The finished trial with the least loss, the earliest of equal ones; one that was given up may be it."""

    def by_loss(trial: "optuna.trial.FrozenTrial") -> tuple[float, int]:
        return math.inf if trial.value is None else trial.value, trial.number

    return min(finished_trials(study), key=by_loss)


def trial_table(study: "optuna.Study") -> pd.DataFrame:
    """One row a finished trial: number from 0, validation_loss (the least of its epochs), epochs, and its values."""
    rows = []
    for place, trial in enumerate(finished_trials(study)):
        epochs = trial.user_attrs.get(EPOCHS, trial.last_step)
        rows.append({"number": place, "validation_loss": trial.value, "epochs": epochs, **trial.params})
    return pd.DataFrame(rows)


def study_name(train: GraphSet, validation: GraphSet, params: ModelParams, search: SearchParams) -> str:
    """One study for the same graphs, settings and values to try, however many trials and wherever they run."""
    digest = hashlib.sha256()
    for graphs in (train, validation):
        for content in (graphs.inputs, graphs):
            for one in fields(content):
                value = getattr(content, one.name)
                if isinstance(value, np.ndarray):
                    digest.update(f"{one.name} {value.shape} {value.dtype}".encode())
                    digest.update(np.ascontiguousarray(value).tobytes())
                elif isinstance(value, tuple):
                    digest.update(repr(value).encode())
    digest.update(repr(space_of(params)).encode())
    digest.update(params.model_dump_json().encode() + search.model_dump_json(exclude=HOW_IT_RUNS).encode())
    return f"{params.variant}-{digest.hexdigest()[:DIGEST_LENGTH]}"


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna without a line for each trial."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
