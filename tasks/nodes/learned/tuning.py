"""Hyperparameters searched on the executions of a source (IV-B, Table II), on training and validation ones alone."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.nodes.evaluate.network import drawn_graphs, prepare_case, why_not
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.history import History
from tasks.nodes.learned.cases import case_by_time
from tasks.nodes.perona.params import ModelParams, SearchParams
from tasks.nodes.perona.search import search


@dataclass(frozen=True)
class Tuning:
    """best: parameters with the least validation loss. trials: one row a finished one. n_resumed: from before."""

    best: ModelParams
    validation_loss: float
    trials: pd.DataFrame
    n_resumed: int


def tune(history: History, params: EvaluateParams, asked: SearchParams, journal: Path, *, source: str) -> Tuning:
    """Search; the latest executions, which models are measured on, have no part in it.

    journal: Optuna's file, from which a search that was stopped goes on. Raises BadInput with too few executions."""
    model = params.learned.model
    case, _ = case_by_time(history, params)
    prepared = prepare_case(case, model, params)
    if reason := why_not(prepared):
        raise BadInput(f"source {source!r}", reason, "more executions of benchmarks", "record more, and tune again")
    rng = np.random.default_rng(model.fit.seed)
    train = drawn_graphs(prepared.train, 1.0, params.learned.most_graphs, rng)
    validation = drawn_graphs(prepared.validation, 1.0, params.learned.most_graphs, rng)
    found = search(train, validation, model, asked, journal=journal)
    return Tuning(found.best, found.validation_loss, found.trials, found.n_resumed)
