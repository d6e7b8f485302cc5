"""The parameters of Perona's model, searched with Optuna on graphs that it is not fitted on."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tasks.nodes.graph.graph_set import GraphSet
from tasks.nodes.model.params import ModelParams
from tasks.nodes.training.ray_address import check_ray
from tasks.nodes.training.search_here import run_here
from tasks.nodes.training.search_params import SearchParams
from tasks.nodes.training.search_space import with_values
from tasks.nodes.training.search_study import (
    best_trial,
    finished_trials,
    journal_storage,
    open_study,
    quiet,
    study_name,
    trial_table,
)


@dataclass(frozen=True)
class SearchResult:
    """best: the parameters with the least validation loss, the same as given in all that is not searched.
    validation_loss: theirs, the least of their epochs. trials: one row a finished trial: number, validation_loss,
    epochs, and its values by `part.name`. n_resumed: trials that were there before."""

    best: ModelParams
    validation_loss: float
    trials: pd.DataFrame
    n_resumed: int


def search(
    train: GraphSet, validation: GraphSet, params: ModelParams, search: SearchParams, *, journal: Path | None = None
) -> SearchResult:
    """The best of n_trials configurations of the variant's space, by the least validation loss of any epoch.

    No test graph has any part in it. journal: Optuna's file; a search that was killed goes on from it, finished trials
    are not repeated, other graphs and settings stand side by side in it, and more trials may be asked for. Without one
    nothing is kept. The same values twice are two trials: the sampler is free to propose them. With the runner `here`
    the same graphs, parameters and seed give the same trials. Raises BadSetting if a Ray does not answer, MissingTool
    if it is not installed, BadInput if a set of graphs is empty. Source: Perona, IV-B."""
    if search.runner == "ray":
        check_ray(search.ray_address)
    with quiet():
        if journal is not None:
            return _searched(train, validation, params, search, journal)
        with tempfile.TemporaryDirectory(prefix="search-") as folder:
            return _searched(train, validation, params, search, Path(folder) / "journal.log")


def _searched(
    train: GraphSet, validation: GraphSet, params: ModelParams, search: SearchParams, journal: Path
) -> SearchResult:
    journal.parent.mkdir(parents=True, exist_ok=True)
    name = study_name(train, validation, params, search)
    storage = journal_storage(journal)
    study = open_study(name, params, search, storage)
    n_resumed = len(finished_trials(study))
    if n_resumed < search.n_trials and search.runner == "here":
        run_here(study, train, validation, params, search)
    elif n_resumed < search.n_trials:
        from tasks.nodes.training.search_ray import run_on_ray

        run_on_ray(name, journal, (train, validation), params, search, n_resumed)
        study = open_study(name, params, search, journal_storage(journal))
    best = best_trial(study)
    return SearchResult(with_values(params, best.params), float(best.value or 0.0), trial_table(study), n_resumed)
