"""What each feature adds to a prediction, exactly additive: SHAP values of the forest and of the classifiers."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats, Rows
from tasks.jobs.predict.classifier_lightgbm import LightGbm
from tasks.jobs.predict.evidence import LEAST, evidence_of
from tasks.jobs.predict.trained import Trained

FEW = 100  # runs up to which one thread is faster than starting more: 8 ms instead of 18 ms of CPU for one
NAMELESS = "Column_"  # what LightGBM calls the features of a model that was trained without names


class Booster(Protocol):
    """What is asked of a lightgbm.Booster."""

    def predict(self, data: Any, *, pred_contrib: bool, num_threads: int) -> Any:
        """Contributions, (n, (p + 1) * m) for m scores of a run, the last of each p + 1 being the base.

        num_threads: 0 for as many as LightGBM likes."""
        ...

    def feature_name(self) -> list[str]:
        """Names of the p features, in their order."""
        ...


@dataclass(frozen=True)
class Contributions:
    """added: (n, p, k), what each of p features adds to each of k raw scores; base: (n, k), the score without any.

    base + added summed over features = raw scores (n, k). A class that the model never saw has base -inf and adds 0.
    The k scores are those of k shapes (log-probabilities up to a constant), or one for a regression or log-odds."""

    added: Floats
    base: Floats
    features: tuple[str, ...]

    @property
    def k(self) -> int:
        """Number of scores."""
        return int(self.added.shape[2])

    @property
    def knows(self) -> NDArray[np.bool_]:
        """Whether the model saw each class, (k,)."""
        return np.asarray(np.isfinite(self.base).all(axis=0), dtype=np.bool_)

    @property
    def raw(self) -> Floats:
        """Raw scores of the model, (n, k)."""
        total: Floats = self.base + self.added.sum(axis=1)
        return total

    @property
    def single(self) -> Floats:
        """added where there is one score, (n, p). Raises ValueError for several: say which is meant by `towards`."""
        if self.k != 1:
            raise ValueError(f"contributions: {self.k} scores; expected one; use odds.towards first")
        return self.to_score(0)

    def to_score(self, which: int) -> Floats:
        """What each feature adds to one of the scores, (n, p)."""
        added: Floats = self.added[:, :, which]
        return added

    def rows(self, which: Rows) -> "Contributions":
        """The same for some of the runs."""
        return Contributions(self.added[which], self.base[which], self.features)


def contributions(
    booster: Booster, frame: pd.DataFrame, k: int, *, classes: Sequence[int] | None = None
) -> Contributions:
    """What each feature adds to the raw scores of each run, exactly additive.

    frame: (n, p) float64, NaN for unknown; columns in any order. k: number of shapes, 1 for a regression. classes: of
    each score of a multiclass model, or of both outcomes of a binary one, its shape; needed where the model saw fewer
    than k. The log-odds v of a binary model are split into -v / 2 and v / 2, so that softmax gives its probabilities.
    Raises BadInput if the frame lacks a feature, ValueError if classes do not fit. Source: Lundberg et al. 2020."""
    names = booster.feature_name()
    columns = _columns(frame, names)
    if not len(columns):
        return Contributions(np.zeros((0, len(names), k)), np.zeros((0, k)), tuple(map(str, frame.columns)))
    threads = 1 if len(columns) <= FEW else 0
    flat = np.asarray(booster.predict(columns, pred_contrib=True, num_threads=threads), dtype=np.float64)
    parts = flat.reshape(len(columns), -1, len(names) + 1).transpose(0, 2, 1)  # (n, p + 1, m)
    if k > 1 and parts.shape[2] == 1:
        parts = np.concatenate([-parts / 2, parts / 2], axis=2)
    parts = _placed(parts, k, classes)  # (n, p + 1, k)
    used = names if _is_named(frame, names) else list(map(str, frame.columns))
    return Contributions(parts[:, :-1], parts[:, -1], tuple(used))


def _is_named(frame: pd.DataFrame, names: list[str]) -> bool:
    return not (names == [f"{NAMELESS}{place}" for place in range(len(names))] and frame.shape[1] == len(names))


def _columns(frame: pd.DataFrame, names: list[str]) -> Floats:
    """Values in the order of the model's features, (n, p)."""
    if not _is_named(frame, names):
        return frame.to_numpy(dtype=np.float64)
    missing = [name for name in names if name not in frame]
    if missing:
        shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise BadInput(
            "features",
            f"{len(missing)} of the model's {len(names)} are missing ({shown})",
            "all of them, NaN where unknown",
            "make the features with the columns of the model",
        )
    return frame[names].to_numpy(dtype=np.float64)


def _placed(parts: Floats, k: int, classes: Sequence[int] | None) -> Floats:
    """Scores of the classes that the model knows put in their places among k."""
    m = parts.shape[2]
    places = list(range(m)) if classes is None else list(classes)
    if len(places) != m or len(set(places)) != m or not all(0 <= place < k for place in places):
        raise ValueError(f"classes: {places} for a model of {m} scores; expected {m} different ones from 0 to {k - 1}")
    if classes is None and m != k:
        raise ValueError(f"model: {m} scores for {k} shapes; expected `classes` to say which shapes they are")
    placed = np.zeros((*parts.shape[:2], k))
    placed[:, -1] = -np.inf
    placed[:, :, places] = parts
    return placed


STEPS = 16  # Gauss-Legendre points: scores of ±10 are then added up to within 1e-4
BLOCK = 4000  # runs worked on together


def log_odds(raw: Floats, shapes: Collection[int]) -> Floats:
    """log(P(shapes) / P(others)) from raw scores (n, k): (n,)."""
    is_asked = _asked(raw.shape[1], shapes)
    difference: Floats = np.logaddexp.reduce(raw[:, is_asked], axis=1) - np.logaddexp.reduce(raw[:, ~is_asked], axis=1)
    return difference


def towards(parts: Contributions, shapes: Collection[int]) -> Contributions:
    """Contributions to the log-odds of `shapes` against the others, one score: values (n, p, 1), base (n, 1).

    Log-odds are no sum of raw scores, so the change from the base s0 to the scores s of a run is followed on the
    straight line between them, and each feature given its part of each step:

        value_j = sum_c phi_jc * integral over t in [0, 1] of d log_odds(s0 + t (s - s0)) / d s_c,

    which adds up to log_odds(s) - log_odds(s0); for two shapes it is phi_j1 - phi_j0. Nothing is added where the
    model knows only shapes of one side. Raises ValueError for no shape, all of them, or one that is none of the k.
    Source: Aumann & Shapley 1974; Sundararajan et al. 2017, proposition 1."""
    n, p, k = parts.added.shape
    is_asked = _asked(k, shapes)
    values = np.zeros((n, p, 1))
    known = parts.knows
    if (known & is_asked).any() and (known & ~is_asked).any():
        for first in range(0, n, BLOCK):
            block = slice(first, first + BLOCK)
            slopes = _mean_slopes(parts.base[block][:, known], parts.raw[block][:, known], is_asked[known])
            values[block, :, 0] = np.einsum("npk,nk->np", parts.added[block][:, :, known], slopes)
    return Contributions(values, log_odds(parts.base, shapes)[:, None], parts.features)


def _mean_slopes(start: Floats, end: Floats, is_asked: NDArray[np.bool_]) -> Floats:
    """d log_odds / d scores averaged on the line from start to end, (n, k): softmax within each side, its sign."""
    points, weights = np.polynomial.legendre.leggauss(STEPS)
    slopes = np.zeros(start.shape)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        scores = start + point * (end - start)
        slopes[:, is_asked] += weight * softmax(scores[:, is_asked], axis=1)
        slopes[:, ~is_asked] -= weight * softmax(scores[:, ~is_asked], axis=1)
    return slopes


def _asked(k: int, shapes: Collection[int]) -> NDArray[np.bool_]:
    wrong = [shape for shape in shapes if not 0 <= shape < k]
    if wrong or not 0 < len(set(shapes)) < k:
        raise ValueError(f"shapes: {sorted(shapes)} of {k}; expected some, but not all, of 0 to {k - 1}")
    is_asked = np.zeros(k, dtype=bool)
    is_asked[list(shapes)] = True
    return is_asked


def runtime_parts(trained: Trained, features: pd.DataFrame) -> Contributions:
    """What each feature adds to the log of expected runtime over the median of the job's earlier runs: one score.

    features: of Trained.features, (n, p)."""
    return contributions(trained.model.location.booster, features[list(trained.model.columns)], 1)


def shape_parts(classifier: LightGbm, features: pd.DataFrame) -> Contributions:
    """What each feature adds to the log-probability of each shape, up to a constant: k scores.

    Their softmax is what the classifier predicts. The trees' scores are divided by its temperature, and a shape that no
    training run had has base -inf. Where earlier runs are evidence, log-probabilities are added by their powers: that
    of a shape counts from the same for all shapes, and the least that the trees' word counts for stands in the base.
    features: a frame with its columns, and those of the evidence, among others."""
    k, present = len(classifier.present), np.array(classifier.present)
    frame = pd.DataFrame(classifier.prepare(features), columns=classifier.booster.feature_name())
    raw = contributions(classifier.booster, frame, k)
    added = np.stack([raw.to_score(shape) for shape in range(k)], axis=2) / classifier.temperature  # (n, p, k)
    added = np.where(present, added, 0.0)
    base = np.where(present, raw.base / classifier.temperature, -np.inf)
    of_trees = Contributions(added, base, classifier.columns)
    return _with_evidence(of_trees, classifier, features) if classifier.evidence else of_trees


def _with_evidence(trees: Contributions, classifier: LightGbm, features: pd.DataFrame) -> Contributions:
    """The trees' contributions to the power of the trees, and those of the evidence: see predict/evidence.py."""
    power, k = classifier.evidence_powers[0], trees.k
    scores = trees.raw  # (n, k)
    floor = math.log(LEAST) + logsumexp(scores, axis=1, keepdims=True)
    names = [*trees.features, *(name for each in classifier.evidence for name in each if name not in trees.features)]
    added = np.zeros((len(scores), len(names), k))
    added[:, : len(trees.features)] = power * np.stack([trees.to_score(shape) for shape in range(k)], axis=2)
    base = power * np.maximum(scores, floor) - added.sum(axis=1)
    told = evidence_of(features, classifier.evidence)
    for strength, columns, likely in zip(classifier.evidence_powers[1:], classifier.evidence, told, strict=True):
        for shape, name in enumerate(columns):
            added[:, names.index(name), shape] += strength * np.log(np.maximum(likely[:, shape], LEAST) * k)
    return Contributions(added, base, tuple(names))


def variable_shapes(k: int) -> tuple[int, ...]:
    """The more variable half of k shapes, which are numbered by rising 25th-75th gap; of an odd number the smaller."""
    return tuple(range(k - k // 2, k))


def variable_parts(classifier: LightGbm, features: pd.DataFrame) -> Contributions | None:
    """What each feature adds to the log-odds of the variable shapes, one score; None where it knows no two sides."""
    parts = shape_parts(classifier, features)
    shapes, known = variable_shapes(parts.k), parts.knows
    is_variable = np.isin(np.arange(parts.k), shapes)
    if not (known & is_variable).any() or not (known & ~is_variable).any():
        return None
    return towards(parts, shapes)


MIN_RUNS = 3  # of a job: the median of two is no habit
CELLS = 4_000_000  # contributions sorted together


def against_usual(parts: Contributions, groups: Any, usual: Contributions, usual_groups: Any) -> Contributions:
    """Contributions less the median contributions of the usual runs of the same job; base plus the sum of those.

    groups: (n,), usual_groups: (m,) for the m runs of `usual`. Still additive: what a run's features add now leads
    from what is usual for its job to its own prediction. What is the same in all runs of a job adds nothing. Medians,
    not means: after one run with a huge input a usual input must not seem to make runs short.
    A job without usual runs is left as it is. One score only. Raises ValueError for other features or several."""
    _refuse_others(parts, usual)
    keys, number = np.unique(np.asarray(usual_groups), return_inverse=True)
    reference = np.zeros(parts.single.shape)
    for place, key in enumerate(keys):
        reference[np.asarray(groups) == key] = np.median(usual.single[number == place], axis=0)
    return _less(parts, reference)


def against_stretch(parts: Contributions, usual: Contributions, first: ArrayLike, n_usual: ArrayLike) -> Contributions:
    """The same where the usual runs of each run are a stretch of `usual`: rows first … first + n_usual - 1, (n,) each.

    So each run can be compared with the runs of its job before it. A run with fewer than MIN_RUNS is left as it is."""
    _refuse_others(parts, usual)
    start, n, values = np.asarray(first, dtype=np.int64), np.asarray(n_usual, dtype=np.int64), usual.single
    reference = np.zeros(parts.single.shape)
    for size in np.unique(n[n >= MIN_RUNS]):  # stretches of one length at a time: (rows, size, p)
        alike = np.flatnonzero(n == size)
        step = max(1, CELLS // (int(size) * values.shape[1]))
        for rows in np.array_split(alike, -(-len(alike) // step)):
            reference[rows] = np.median(values[start[rows][:, None] + np.arange(size)], axis=1)
    return _less(parts, reference)


def _refuse_others(parts: Contributions, usual: Contributions) -> None:
    if parts.features != usual.features:
        raise ValueError("usual runs: other features than the runs; expected the same model")


def _less(parts: Contributions, reference: Floats) -> Contributions:
    added = (parts.single - reference)[:, :, None]
    return Contributions(added, parts.base + reference.sum(axis=1, keepdims=True), parts.features)


def push(parts: Contributions, a: int, b: int) -> Floats:
    """What each feature adds to log(P(b) / P(a)) of each run, (n, p): above 0 it pushes from shape a to shape b.

    Exactly additive, since both raw scores are. Raises ValueError if a and b are the same, not of the k shapes, or if
    the model knows only one of them."""
    k = parts.k
    if a == b or not (0 <= a < k and 0 <= b < k):
        raise ValueError(f"shapes {a} and {b}: expected two different ones from 0 to {k - 1}")
    if not parts.knows[[a, b]].all():
        raise ValueError(f"shapes {a} and {b}: the model was not trained on both; expected shapes that it knows")
    return parts.to_score(b) - parts.to_score(a)
