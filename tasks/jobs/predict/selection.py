"""Which features a classifier gets: passive-aggressive importances, without copies and without noise."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from tasks.errors import BadInput
from tasks.jobs.pmf import Floats
from tasks.jobs.predict.classifier_params import SelectionParams
from tasks.jobs.predict.filling import Filling, learn_filling
from tasks.jobs.shapes import Labels


@dataclass(frozen=True)
class Selection:
    """kept: names by falling importance. table: one row a feature, by name: importance (Euclidean length of its
    weights over the shapes, 1 in sum over all features), reason (kept, constant, correlated or noise), because (the
    feature that it follows, or what it did not reach) and correlation (with that feature). noise: importance of the
    noise that a feature had to exceed."""

    kept: tuple[str, ...]
    table: pd.DataFrame
    noise: float


def select_features(frame: pd.DataFrame, labels: ArrayLike, groups: ArrayLike, params: SelectionParams) -> Selection:
    """The features that tell shapes apart, of those that rise and fall together only the most important.

    frame: (n, p), NaN where unknown; labels: (n,), -1 for a row that is left out; groups: (n,) the job of each row.
    A linear passive-aggressive classifier (PA-I, one shape against the rest, averaged) sees the features standardised,
    a missing value as the median with a column that says so. First, features whose ranks correlate above
    max_correlation with a more important one go; then those below noise_quantile of copies of the features in which
    each job has the values of another: jobs keep their values together, so what only tells jobs apart does not count.
    Being linear, it cannot see a feature that matters only together with another. min_features stay in any case.
    Raises BadInput without a labelled row or a feature. Source: Zhu et al. 2023, section 5.2 (1); the noise is ours."""
    used, classes, jobs = _sample(frame, labels, groups, params)
    filling = learn_filling(used, indicator_share=params.indicator_share, clip_sd=params.clip_sd)
    varying = list(dict.fromkeys(filling.feature))
    names = [str(name) for name in frame]
    if not varying or len(np.unique(classes)) < 2:
        nothing = pd.Series(0.0, index=varying, dtype=float)
        return Selection(tuple(varying), _table(names, nothing, nothing, {}, varying, 0.0), 0.0)
    x = filling.apply(used)
    first, _ = _importances(x, filling, classes, jobs, params, with_noise=False)
    followed = _copies(used, first, params.max_correlation)
    is_unique = np.array([name not in followed for name in filling.feature])
    part = _part(filling, is_unique)
    second, noise = _importances(x[:, is_unique], part, classes, jobs, params, with_noise=True)
    kept = [name for place, name in enumerate(second.index) if second[name] > noise or place < params.min_features]
    return Selection(tuple(kept), _table(names, first, second, followed, kept, noise), noise)


def _table(
    names: list[str],
    first: pd.Series,
    second: pd.Series,
    followed: dict[str, tuple[str, float]],
    kept: list[str],
    noise: float,
) -> pd.DataFrame:
    """What became of each feature, in their order; importances before the copies went for the copies."""
    rows: list[tuple[float, str, str, float]] = []
    for name in names:
        if name in followed:
            rows.append((float(first[name]), "correlated", *followed[name]))
        elif name in kept:
            rows.append((float(second[name]), "kept", "", np.nan))
        elif name in second.index:
            rows.append(
                (float(second[name]), "noise", f"not above {noise:.3g}, which copies without meaning reach", np.nan)
            )
        else:
            rows.append((0.0, "constant", "", np.nan))
    columns = ["importance", "reason", "because", "correlation"]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(names, name="feature"))


def _sample(
    frame: pd.DataFrame, labels: ArrayLike, groups: ArrayLike, params: SelectionParams
) -> tuple[pd.DataFrame, Labels, NDArray[np.intp]]:
    """Labelled rows, at most max_rows, in order; their labels and numbers of their jobs."""
    classes = np.asarray(labels, dtype=np.intp)
    rows = np.flatnonzero(classes >= 0)
    if not len(rows) or not len(frame.columns):
        problem = f"{len(rows)} rows with a label, {len(frame.columns)} features"
        raise BadInput("training rows", problem, "at least one of each", "give more runs, or lower min_support")
    rows = np.sort(np.random.default_rng(params.seed).permutation(rows)[: params.max_rows])
    return frame.iloc[rows], classes[rows], pd.factorize(np.asarray(groups)[rows])[0]


def _importances(
    x: Floats,
    filling: Filling,
    classes: Labels,
    jobs: NDArray[np.intp],
    params: SelectionParams,
    *,
    with_noise: bool,
) -> tuple[pd.Series, float]:
    """The importance of each feature, the mean over the rounds, by falling importance; and that of the noise."""
    rng = np.random.default_rng(params.seed)
    own, noise = np.zeros(x.shape[1]), []
    for _ in range(params.n_rounds):
        columns = np.hstack([x, x[_other_jobs(jobs, rng)]]) if with_noise else x
        weights = _weights(columns, classes, params, int(rng.integers(2**31)))
        own += weights[: x.shape[1]] / params.n_rounds
        noise.append(weights[x.shape[1] :])
    by_feature = pd.Series(own**2).groupby(np.array(filling.feature), sort=False).sum() ** 0.5  # with its indicator
    total = float(by_feature.sum()) or 1.0
    threshold = float(np.quantile(np.mean(noise, axis=0), params.noise_quantile)) / total if with_noise else 0.0
    return (by_feature / total).sort_values(ascending=False, kind="stable"), threshold


def _weights(x: Floats, classes: Labels, params: SelectionParams, seed: int) -> Floats:
    """The Euclidean length of the weights of each column over the shapes: (p,).

    SGDClassifier with hinge loss and rate pa1 is the former PassiveAggressiveClassifier; eta0 is its C."""
    from sklearn.linear_model import SGDClassifier  # type: ignore[import-untyped, unused-ignore]

    model = SGDClassifier(
        loss="hinge",
        penalty=None,
        learning_rate="pa1",
        eta0=params.aggressiveness,
        max_iter=params.n_epochs,
        tol=None,
        average=True,
        random_state=seed,
    )
    return np.asarray(np.sqrt((model.fit(x, classes).coef_ ** 2).sum(axis=0)))


def _other_jobs(jobs: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """For each row a row of another job, the same other job for all rows of a job: (n,). One job: any row."""
    n_jobs = int(jobs.max()) + 1
    if n_jobs == 1:
        return rng.permutation(len(jobs))
    around = rng.permutation(n_jobs)
    other = np.empty(n_jobs, dtype=np.intp)
    other[around] = np.roll(around, 1)  # a cycle: no job is its own other
    order, sizes = np.argsort(jobs, kind="stable"), np.bincount(jobs)
    starts = np.cumsum(sizes) - sizes
    target = other[jobs]
    return np.asarray(order[starts[target] + (rng.random(len(jobs)) * sizes[target]).astype(np.intp)])


def _copies(frame: pd.DataFrame, importances: pd.Series, max_correlation: float) -> dict[str, tuple[str, float]]:
    """Features that follow a more important one that stays: name to that one and their rank correlation."""
    names = list(importances.index)
    raw = np.array(frame[names], dtype=float)
    raw[~np.isfinite(raw)] = np.nan
    lowest = np.nanmin(raw, axis=0, initial=0.0)
    ranks = rankdata(np.where(np.isnan(raw), lowest - 1 - np.abs(lowest), raw), axis=0)  # missing: below all others
    ranks = ranks - ranks.mean(axis=0)
    ranks /= np.sqrt((ranks**2).sum(axis=0)) + np.finfo(float).tiny
    rho = ranks.T @ ranks  # (p, p)
    kept: list[int] = []
    found: dict[str, tuple[str, float]] = {}
    for place, name in enumerate(names):
        close = [other for other in kept if abs(rho[place, other]) > max_correlation]
        if close:
            leader = max(close, key=lambda other: abs(rho[place, other]))
            found[name] = (names[leader], float(rho[place, leader]))
        else:
            kept.append(place)
    return found


def _part(filling: Filling, is_used: NDArray[np.bool_]) -> Filling:
    """The filling of some of its columns."""
    at = np.flatnonzero(is_used)
    names, features = (tuple(values[i] for i in at) for values in (filling.names, filling.feature))
    means, sds, medians = filling.means[at], filling.sds[at], filling.medians[at]
    return Filling(names, features, medians, means, sds, filling.clip_sd)
