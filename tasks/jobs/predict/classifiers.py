"""Classifiers of shapes: LightGBM, a random forest, and an ensemble that votes with probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tasks.errors import BadInput
from tasks.jobs.pmf import Floats
from tasks.jobs.predict.calibration import fit_temperature, tempered
from tasks.jobs.predict.classifier_params import ClassifierParams
from tasks.jobs.predict.holdout import hold_out
from tasks.jobs.predict.soft_labels import soften
from tasks.jobs.shapes import Labels

UNSEEN_SHARE = 0.5  # of the jobs of a tail that sets the temperature: new and known jobs count about the same


class Fitted(Protocol):
    """A classifier that has learnt. classes: (k,) 0 … k - 1, those without training rows among them."""

    @property
    def classes(self) -> Labels: ...

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        """(n, k), rows sum to 1; 0 for a shape that no training row has. frame: the features of the training."""
        ...


@dataclass(frozen=True)
class Frequencies:
    """The share of each shape among the training rows, whatever the features: where there is nothing to learn."""

    shares: Floats

    @property
    def classes(self) -> Labels:
        return np.arange(len(self.shares))

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        return np.tile(self.shares, (len(frame), 1))


@dataclass(frozen=True)
class Tempered:
    """Another classifier with probabilities p ** (1 / temperature), scaled to sum 1: above 1 is less sure."""

    inner: Fitted
    temperature: float

    @property
    def classes(self) -> Labels:
        return self.inner.classes

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        return tempered(self.inner.predict_proba(frame), self.temperature)


@dataclass(frozen=True)
class Vote:
    """The mean of the probabilities of several classifiers, each by its name. Source: section 5.2 (soft voting)."""

    members: tuple[tuple[str, Fitted], ...]

    @property
    def classes(self) -> Labels:
        return self.members[0][1].classes

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        return np.asarray(np.mean([member.predict_proba(frame) for _, member in self.members], axis=0))


def fit_classifier(
    frame: pd.DataFrame,
    labels: ArrayLike,
    k: int,
    params: ClassifierParams,
    *,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    posteriors: ArrayLike | None = None,
) -> Fitted:
    """A classifier of k shapes by params.method; the same rows, parameters and seed give the same model.

    frame: (n, p) features, NaN where unknown, in the order of submission; labels: (n,) 0 … k - 1, -1 for a row that
    is left out; groups: (n,) the job of each row, needed for params.calibration_share; weights: (n,) of the rows;
    posteriors: (n, k) of posterior_instances, to learn labels as sure as they are instead of as certain.
    With one shape only, or no feature that varies, the answer is Frequencies. One thread.
    Raises BadInput without a labelled row, or for labels that do not fit. Source: Zhu et al. 2023, section 5.2."""
    rows = _checked(frame, labels, k, weights, posteriors)
    if params.calibration_share > 0:
        if groups is None:
            raise BadInput("training rows", "no jobs of the rows", "groups, to hold out some of them", "give groups")
        return _fit_tempered(rows, k, params, np.asarray(groups)[np.asarray(labels) >= 0])
    return _fit(rows, k, params)


def calibrate(fitted: Fitted, frame: pd.DataFrame, labels: ArrayLike) -> Fitted:
    """The classifier with the temperature that makes these labels, of rows that it did not learn from, most likely."""
    classes = np.asarray(labels, dtype=np.intp)
    is_labelled = classes >= 0
    temperature = fit_temperature(fitted.predict_proba(frame[is_labelled]), classes[is_labelled])
    return with_temperature(fitted, temperature)


def with_temperature(fitted: Fitted, temperature: float) -> Fitted:
    """The classifier with a temperature, in place of the one that it may have had."""
    from tasks.jobs.predict.classifier_lightgbm import LightGbm

    if isinstance(fitted, LightGbm):
        return replace(fitted, temperature=temperature)
    if isinstance(fitted, Frequencies):
        return fitted
    return Tempered(fitted.inner if isinstance(fitted, Tempered) else fitted, temperature)


@dataclass(frozen=True)
class _Rows:
    """Training rows that all have a label."""

    frame: pd.DataFrame
    labels: Labels
    weights: Floats | None
    posteriors: Floats | None

    def where(self, is_used: NDArray[np.bool_]) -> "_Rows":
        weights = None if self.weights is None else self.weights[is_used]
        posteriors = None if self.posteriors is None else self.posteriors[is_used]
        return _Rows(self.frame[is_used], self.labels[is_used], weights, posteriors)


def _checked(
    frame: pd.DataFrame, labels: ArrayLike, k: int, weights: ArrayLike | None, posteriors: ArrayLike | None
) -> _Rows:
    """The rows that have a label."""
    found = np.asarray(labels, dtype=np.intp)
    for name, values in (("labels", found), ("weights", weights), ("posteriors", posteriors)):
        if values is not None and len(np.asarray(values)) != len(frame):
            raise BadInput(
                name, f"{len(np.asarray(values))} rows", f"one for each of the {len(frame)} rows of features"
            )
    if found.size and int(found.max()) >= k:
        raise BadInput("labels", f"shape {int(found.max())}", f"shapes 0 to {k - 1}, or -1 for none")
    if not (found >= 0).any():
        problem = "no row has a label"
        raise BadInput("training rows", problem, "jobs with enough runs in the period", "lower min_support")
    floats = [None if values is None else np.asarray(values, dtype=float) for values in (weights, posteriors)]
    return _Rows(frame, found, floats[0], floats[1]).where(found >= 0)


def _fit_tempered(rows: _Rows, k: int, params: ClassifierParams, groups: ArrayLike) -> Fitted:
    """Fitted on all rows, with the temperature that suits a model of the rows before the tail."""
    held = hold_out(groups, params.calibration_share, UNSEEN_SHARE, params.seed)
    first, tail = _fit(rows.where(held.is_training), k, params), rows.where(held.is_later)
    return with_temperature(_fit(rows, k, params), fit_temperature(first.predict_proba(tail.frame), tail.labels))


def _fit(rows: _Rows, k: int, params: ClassifierParams) -> Fitted:
    frame, labels, weights = rows.frame, rows.labels, rows.weights
    if rows.posteriors is not None:
        frame, labels, weights = soften(frame, labels, rows.posteriors, weights, least=params.least_posterior)
    is_varying = any(len(np.unique(column)) > 1 for column in frame.to_numpy(dtype=float).T)
    if len(np.unique(labels)) == 1 or not is_varying:
        counts = np.bincount(labels, weights, minlength=k).astype(float)
        return Frequencies(counts / counts.sum())
    if params.method == "lightgbm":
        from tasks.jobs.predict.classifier_lightgbm import fit_lightgbm

        return fit_lightgbm(frame, labels, k, params, weights=weights)
    from tasks.jobs.predict.classifier_members import ENSEMBLE, fit_member

    names: Sequence[str] = ("forest",) if params.method == "forest" else ENSEMBLE
    members = tuple((name, fit_member(name, frame, labels, k, params, weights)) for name in names)
    return members[0][1] if len(members) == 1 else Vote(members)
