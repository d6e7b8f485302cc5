"""The parameters of a classifier, searched with Optuna on the last part of the training rows."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tasks.errors import BadInput, BadSetting
from tasks.jobs.pmf import Floats
from tasks.jobs.predict.calibration import LEAST_PROBABILITY, log_loss
from tasks.jobs.predict.classifier_params import ClassifierParams, SearchParams
from tasks.jobs.predict.classifiers import fit_classifier
from tasks.jobs.predict.holdout import hold_out
from tasks.jobs.predict.search_study import finished_trials, open_study, quiet, trial_table
from tasks.jobs.predict.soft_labels import soften
from tasks.jobs.shapes import Labels

if TYPE_CHECKING:
    import optuna

ROUNDS = "n_rounds"
MOST_FAILURES = 3


@dataclass(frozen=True)
class Sweep:
    """params: the best that were found; log_loss: theirs on the validation rows; table: one row a finished trial:
    number, state (COMPLETE or PRUNED), log_loss and the parameters; n_resumed: trials that were there before."""

    params: ClassifierParams
    log_loss: float
    table: pd.DataFrame
    n_resumed: int
    n_training: int
    n_validation: int


@dataclass(frozen=True)
class _Rows:
    """What every trial sees."""

    training: tuple[pd.DataFrame, Labels, Floats | None]  # features, labels, weights
    validation: tuple[pd.DataFrame, Labels]
    k: int
    n_training: int


def sweep(
    frame: pd.DataFrame,
    labels: ArrayLike,
    groups: ArrayLike,
    k: int,
    params: ClassifierParams,
    search: SearchParams,
    *,
    journal: Path | None = None,
    posteriors: ArrayLike | None = None,
) -> Sweep:
    """The parameters with the least log loss on the last rows, of which some jobs are new to the trials.

    frame: (n, p) training rows in the order of submission, no test row among them; groups: (n,) their jobs; labels:
    (n,) of labels_by_part for the cut of `is_validation`, since with one label for both parts a trial would be
    scored on what it was told; -1 for rows that are left out; posteriors: (n, k) of the same parts, if labels are to
    be learnt as sure as they are (the scores are of the labels). The sampler (TPE) is seeded trial by trial, so a
    sweep that was killed and goes on with its journal ends where an unbroken one does; finished trials are not
    repeated, and a journal serves other data or settings side by side. LightGBM's number of rounds is the best of
    each trial. Raises BadSetting for the ensemble, BadInput if a part is empty. Source: section 5.2 (2)."""
    rows = _split(frame, np.asarray(labels, dtype=np.intp), np.asarray(groups), k, params, search, posteriors)
    if params.method == "ensemble":
        raise BadSetting("method ensemble: nothing to search; expected lightgbm or forest, whose parameters it uses")
    import optuna

    with quiet():
        study = open_study(_name(rows, params, search), search, journal)
        n_resumed = len(finished_trials(study))
        objective, n_failed = _objective(rows, params, search), 0
        while (n_done := len(finished_trials(study))) < search.n_trials:
            study.sampler = optuna.samplers.TPESampler(
                seed=search.seed + n_done, n_startup_trials=search.warm_up_trials, multivariate=False
            )
            study.optimize(objective, n_trials=1)
            n_failed += study.trials[-1].state == optuna.trial.TrialState.FAIL
            if n_failed > MOST_FAILURES:
                problem = f"{n_failed} trials without a log loss"
                raise BadInput("search", problem, "finite features and labels that differ", "look at the features")
        best = study.best_trial
    chosen = _params_of(best.params, params)
    if params.method == "lightgbm":
        chosen = chosen.model_copy(update={ROUNDS: int(best.user_attrs[ROUNDS])})
    sizes = rows.n_training, len(rows.validation[1])
    return Sweep(chosen, float(best.value or 0.0), trial_table(study), n_resumed, *sizes)


def is_validation(groups: ArrayLike, search: SearchParams) -> Any:
    """The rows that trials are scored on, (n,): what labels_by_part takes. groups: (n,) by time of submission."""
    return hold_out(groups, search.validation_share, search.unseen_share, search.seed).is_later


def _split(
    frame: pd.DataFrame,
    labels: Labels,
    groups: Any,
    k: int,
    params: ClassifierParams,
    search: SearchParams,
    posteriors: ArrayLike | None,
) -> _Rows:
    """Training and validation rows with a label; of many rows a sample."""
    held = hold_out(groups, search.validation_share, search.unseen_share, search.seed)
    n_rows = max(search.min_rows, round(search.row_share * len(frame)))
    rng, parts = np.random.default_rng(search.seed), []
    for is_part, share in ((held.is_training, 1 - search.validation_share), (held.is_later, search.validation_share)):
        rows = np.flatnonzero(is_part & (labels >= 0))
        rows = np.sort(rng.permutation(rows)[: max(1, round(share * n_rows))])
        if not len(rows):
            problem = f"no labelled row in one part of {len(frame)}"
            raise BadInput("training rows", problem, "some to train and to score trials on", "search on more rows")
        parts.append(rows)
    first, later = parts
    training: tuple[pd.DataFrame, Labels, Floats | None] = (frame.iloc[first], labels[first], None)
    if posteriors is not None:
        known = np.asarray(posteriors, dtype=float)[first]
        training = soften(frame.iloc[first], labels[first], known, None, least=params.least_posterior)
    return _Rows(training, (frame.iloc[later], labels[later]), k, len(first))


def _objective(rows: _Rows, params: ClassifierParams, search: SearchParams) -> Callable[["optuna.Trial"], float]:
    """The log loss of a trial on the validation rows."""

    def forest(trial: "optuna.Trial") -> float:
        x, labels, weights = rows.training
        fitted = fit_classifier(x, labels, rows.k, _suggest(trial, params), weights=weights)
        return log_loss(fitted.predict_proba(rows.validation[0]), rows.validation[1])

    def lightgbm(trial: "optuna.Trial") -> float:
        if len(np.unique(rows.training[1])) < 2:  # nothing to learn, all trials alike
            trial.set_user_attr(ROUNDS, 1)
            return forest(trial)
        return _boosted(trial, rows, _suggest(trial, params).model_copy(update={ROUNDS: search.max_rounds}), search)

    return lightgbm if params.method == "lightgbm" else forest


def _boosted(trial: "optuna.Trial", rows: _Rows, params: ClassifierParams, search: SearchParams) -> float:
    """The best log loss over the rounds; the pruner looks every report_every rounds."""
    import optuna

    from tasks.jobs.predict.classifier_lightgbm import fit_lightgbm

    losses: list[float] = []
    present = np.isin(rows.validation[1], rows.training[1])
    n_new, n_known = int((~present).sum()), int(present.sum())
    impossible = -np.log(LEAST_PROBABILITY) * n_new

    def look(environment: Any) -> None:
        known = environment.evaluation_result_list[0][2] if n_known else 0.0
        losses.append((known * n_known + impossible) / (n_known + n_new))
        if len(losses) % search.report_every == 0:
            trial.report(min(losses), len(losses))
            if trial.should_prune():
                raise optuna.TrialPruned

    look.order = 30  # type: ignore[attr-defined]  # after LightGBM's own
    # without a row of a known shape the log loss is the same whatever is done; one row keeps LightGBM going
    at = np.flatnonzero(present) if n_known else np.arange(1)
    later = rows.validation[0].iloc[at], rows.validation[1][at]
    x, labels, weights = rows.training
    fit_lightgbm(x, labels, rows.k, params, weights=weights, validation=later, callbacks=[look])
    trial.set_user_attr(ROUNDS, int(np.argmin(losses)) + 1)
    return float(min(losses))


def _suggest(trial: "optuna.Trial", params: ClassifierParams) -> ClassifierParams:
    """What the sampler proposes, within ranges that suit some thousand to some million rows."""
    if params.method == "forest":
        found: dict[str, Any] = {
            "forest_trees": trial.suggest_int("forest_trees", 50, 400, log=True),
            "forest_min_leaf": trial.suggest_int("forest_min_leaf", 1, 50, log=True),
            "forest_feature_share": trial.suggest_float("forest_feature_share", 0.05, 1),
        }
    else:
        found = {
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "n_leaves": trial.suggest_int("n_leaves", 4, 64, log=True),
            "min_leaf": trial.suggest_int("min_leaf", 5, 200, log=True),
            "feature_share": trial.suggest_float("feature_share", 0.2, 1),
            "row_share": trial.suggest_float("row_share", 0.4, 1),
            "l2": trial.suggest_float("l2", 1e-3, 100, log=True),
        }
    return _params_of(found, params)


def _params_of(found: dict[str, Any], params: ClassifierParams) -> ClassifierParams:
    return ClassifierParams(**{**params.model_dump(), **found})


def _name(rows: _Rows, params: ClassifierParams, search: SearchParams) -> str:
    """One study for the same rows and settings, whatever the number of trials."""
    digest = hashlib.sha256()
    for frame, labels, weights in (rows.training, (*rows.validation, None)):
        digest.update(repr(list(frame)).encode())
        digest.update(np.ascontiguousarray(frame.to_numpy(dtype=float)).tobytes())
        digest.update(labels.tobytes() + (b"" if weights is None else weights.tobytes()))
    settings = search.model_dump_json(exclude={"n_trials"}) + params.model_dump_json() + str(rows.k)
    digest.update(settings.encode())
    return f"{params.method}-{digest.hexdigest()[:16]}"
