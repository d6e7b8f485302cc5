"""All that is predicted to follow from one change: measures, moves between shapes, and how far it can be trusted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.control.companions import find_companions
from tasks.jobs.control.edits import apply, changed_columns
from tasks.jobs.control.measures import changes, measure, tokens_of
from tasks.jobs.control.migration import Migration, group_labels, migrate, moves
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.scenarios import Scenario
from tasks.jobs.control.support import Leaves, Support, support_of
from tasks.jobs.distribution import Floats, Predicted
from tasks.jobs.shape_params import Kind

Predict = Callable[[pd.DataFrame], Predicted]
Classify = Callable[[pd.DataFrame], Floats]


@dataclass(frozen=True)
class ShapeModel:
    """classify: (n, p) features -> (n, k) probabilities of the shapes; table: Table 2, one row a shape."""

    classify: Classify
    table: pd.DataFrame


@dataclass(frozen=True)
class ShapeMoves:
    """Moves of runs, by their most probable shape, and of jobs, by that of all their runs; tables of `moves`."""

    runs: Migration
    groups: Migration
    run_moves: pd.DataFrame
    group_moves: pd.DataFrame


@dataclass(frozen=True)
class Outcome:
    """before, after: `measure` of each instance; changes: their means with intervals; moves: by normalisation.

    features: the names that were changed; support: which of the changed rows the training data do not reach;
    companions: of `find_companions`; both None without training data."""

    scenario: Scenario
    features: list[str]
    before: pd.DataFrame
    after: pd.DataFrame
    changes: pd.DataFrame
    moves: dict[Kind, ShapeMoves]
    support: Support | None
    companions: pd.DataFrame | None


def assess(
    scenario: Scenario,
    frame: pd.DataFrame,
    predict: Predict,
    groups: Any,
    medians_s: Any,
    params: WhatIfParams,
    rng: np.random.Generator,
    *,
    models: Mapping[Kind, ShapeModel] | None = None,
    training: pd.DataFrame | None = None,
    leaves: Leaves | None = None,
) -> Outcome:
    """What `predict` says of the frame with the change made, beside what it says of it as it is.

    frame: (n, p) features in order of submission; groups, medians_s: (n,); training: the features that the model was
    trained on, without which nothing is said of support; leaves: of its trees. Raises BadInput as `apply` does."""
    edited = apply(scenario, frame)
    before = measure(predict(frame), medians_s, tokens_of(frame, params), params)
    after = measure(predict(edited), medians_s, tokens_of(edited, params), params)
    support = None if training is None else support_of(frame, edited, training, params, rng, leaves=leaves)
    companions = None if training is None else find_companions(frame, edited, training, params)
    return Outcome(
        scenario,
        changed_columns(frame, edited),
        before,
        after,
        changes(before, after, groups, params, rng),
        {kind: _moves(model, frame, edited, groups) for kind, model in (models or {}).items()},
        support,
        companions,
    )


def _moves(model: ShapeModel, frame: pd.DataFrame, edited: pd.DataFrame, groups: Any) -> ShapeMoves:
    old, new = model.classify(frame), model.classify(edited)
    k = old.shape[1]
    runs = migrate(old.argmax(axis=1), new.argmax(axis=1), k)
    jobs = migrate(group_labels(old, groups), group_labels(new, groups), k)
    return ShapeMoves(runs, jobs, moves(runs, model.table), moves(jobs, model.table))
