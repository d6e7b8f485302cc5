"""What each feature adds to a prediction, exactly additive: by the paths of the trees, by SHAP values of classifiers.

The runtime is that of the whole pool: the mean of its logarithm is the weighted mean of its parts, so what the trees'
features add counts by the trees' weight, and what peers took stands beside it as a feature of theirs. Log-odds of
several shapes are no sum of scores and are integrated along the way. Features that mean the same are summed within
families. Source: Lundberg et al. 2020; Sundararajan et al. 2017."""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import logsumexp, softmax

from tasks.boosters import matrix
from tasks.jobs.distribution import Floats, Rows
from tasks.jobs.predict.classifier import LEAST, LightGbm, evidence_of
from tasks.jobs.predict.mixture import N_CLASSES
from tasks.jobs.predict.peers import MOST_RUNS, SOME_RUNS, Histories
from tasks.jobs.predict.predictor import ALL_RUNS, BOOSTED, POOLED, RELATIVE, Boosted, Predictor, support_of

FEW = 100  # runs up to which one thread is faster than starting more: 8 ms instead of 18 ms of CPU for one
MIN_RUNS = 3  # of a job: the median of two is no habit
STEPS = 16  # Gauss-Legendre points: scores of ±10 are then added up to within 1e-4
Family = Literal[
    "input", "tokens", "spare tokens", "SKU", "load", "queue", "plan", "history", "calendar", "memory",
    "requested time", "other",
]  # fmt: skip
FAMILIES: tuple[Family, ...] = get_args(Family)
# The first pattern that fits, from the start of the name. Within the jobs of a recording, estimated cost follows the
# input (Spearman 0.93), since the plan of a job is the same; free tokens of a SKU follow the spare tokens on offer
# (0.45 to 0.56) rather than its load (-0.12 to -0.18).
PATTERNS: tuple[tuple[str, Family], ...] = (
    (r"input_|read_bytes|estimated_|cost_ratio", "input"),
    (r"spare_tokens|sku_free_tokens", "spare tokens"),
    (r"(requested_|min_|mean_|peak_)?tokens|(requested|used)_cpus", "tokens"),
    (r"(sku_)?load_", "load"),
    (r"offered_|vertices_|vertex_share_", "SKU"),
    (r"queue_|wait_", "queue"),
    (r"op_|n_operators|n_vertices", "plan"),
    (r"hour_of_day|day_of_week", "calendar"),
    (r"requested_memory|peak_memory|temp_bytes", "memory"),
    (r"requested_runtime", "requested time"),
    (r"n_before|last_|ewma_|p25_p75|outlier_share|hours_since|shape_|recent_shape_", "history"),
    (r"(job|user|user_request|request|log)_", "history"),
)


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
        return np.asarray(self.base + self.added.sum(axis=1))

    @property
    def single(self) -> Floats:
        """added where there is one score, (n, p)."""
        return np.asarray(self.added[:, :, 0])

    def rows(self, which: Rows) -> "Contributions":
        """The same for some of the runs."""
        return Contributions(self.added[which], self.base[which], self.features)

    def mean(self) -> "Contributions":
        """One row, the mean over all: still additive."""
        return Contributions(self.added.mean(axis=0)[None], self.base.mean(axis=0)[None], self.features)


def contributions(booster: Any, values: Floats, features: Sequence[str], k: int) -> Contributions:
    """What each feature adds to the k raw scores of each run.

    booster: lightgbm.Booster of k scores; values: (n, p) in the order of its features, whose names are `features`."""
    flat = np.asarray(booster.predict(values, pred_contrib=True, num_threads=1 if len(values) <= FEW else 0))
    parts = flat.reshape(len(values), k, len(features) + 1).transpose(0, 2, 1)  # (n, p + 1, k)
    return Contributions(parts[:, :-1], parts[:, -1], tuple(features))


def runtime_parts(model: Predictor, features: pd.DataFrame, known: Histories) -> Contributions:
    """What each feature adds to the mean log of the predicted runtime in seconds: one score.

    features, known: of Trained.features and Trained.histories, n rows each. What peers took counts as the feature that
    says what they usually take (job_median10, …). The pool's width and the time limit are left out, and what putting
    quantiles in order moves stands in the base."""
    columns = features[list(model.columns)]
    by_trees, root = boosted_parts(model.boosted, columns)
    expected = model.expected_log_s(features)
    start = root + model.is_relative * model.usual_log_s
    share, of_peers, of_all_runs = _shares(model, features, known, start)
    names = list(dict.fromkeys([*model.columns, *of_peers, *(name for name in RELATIVE if name in features)]))
    added = np.zeros((len(columns), len(names)))
    added[:, : len(model.columns)] = by_trees * share[:, None]
    for name, gain in of_peers.items():
        added[:, names.index(name)] += gain
    by_usual = np.zeros(len(columns))
    if model.is_relative:
        is_open = np.ones(len(columns), dtype=bool)
        for name in [name for name in RELATIVE if name in features]:  # the first that is known
            usual = features[name].to_numpy(dtype=float)
            is_first = is_open & np.isfinite(usual)
            by_usual[is_first] = usual[is_first] - model.usual_log_s
            added[is_first, names.index(name)] += (share * by_usual)[is_first]
            is_open &= ~is_first
    base = start + of_all_runs + share * (expected - start - by_trees.sum(axis=1) - by_usual)
    return Contributions(added[:, :, None], base[:, None], tuple(names))


def boosted_parts(boosted: Boosted, columns: pd.DataFrame) -> tuple[Floats, float]:
    """What each feature adds to the mean of the quantiles, (n, p), and that mean at the roots of the trees.

    A feature is given how far the mean of the training runs moves where a tree splits by it, on the way of a run to its
    leaf: exactly additive, and one product of sparse matrices, which SHAP values are not. Source: Palczewska et al.
    2014; Saabas 2014. columns: (n, p) in the order of training."""
    added, root = np.zeros(columns.shape), 0.0
    for booster, weight in zip(boosted.boosters, boosted.interpolation.mean(axis=1), strict=True):
        where: list[tuple[int, int]] = []
        steps: list[float] = []
        first = [0]
        for tree in booster.dump_model()["tree_info"]:
            root += weight * _walk(tree["tree_structure"], first[-1], where, steps)
            first.append(first[-1] + tree["num_leaves"])
        places = np.array(where, dtype=np.int64).reshape(-1, 2).T
        by_leaf = sparse.csr_matrix((steps, (places[0], places[1])), (first[-1], columns.shape[1]))  # sums up repeats
        leaves = np.asarray(booster.predict(matrix(columns), pred_leaf=True, num_threads=1), dtype=np.int64)
        leaves = leaves.reshape(len(columns), -1) + np.array(first[:-1])
        ends = np.arange(len(leaves) + 1) * leaves.shape[1]
        in_leaf = sparse.csr_matrix((np.full(leaves.size, weight), leaves.ravel(), ends), (len(leaves), first[-1]))
        added += (in_leaf @ by_leaf).toarray()
    return added, root


def _walk(root: dict[str, Any], first: int, where: list[tuple[int, int]], steps: list[float]) -> float:
    """The mean of the training runs at the root of a tree; adds (leaf, feature) and step of each split to the lists.

    first: the number of the first leaf. Means are of the leaves below: LightGBM's own are of its gradients."""

    def walk(node: dict[str, Any]) -> tuple[float, int, list[int]]:
        """Mean, runs and leaves of a node; its splits are in the lists."""
        if "leaf_value" in node:
            return float(node["leaf_value"]), int(node.get("leaf_count", 1)), [first + node.get("leaf_index", 0)]
        (left, n_left, left_leaves), (right, n_right, right_leaves) = (
            walk(node["left_child"]),
            walk(node["right_child"]),
        )
        n, feature = n_left + n_right, node["split_feature"]
        mean = (left * n_left + right * n_right) / n
        for leaves, step in ((left_leaves, left - mean), (right_leaves, right - mean)):
            where.extend((leaf, feature) for leaf in leaves)
            steps.extend([step] * len(leaves))
        return mean, n, left_leaves + right_leaves

    return walk(root)[0]


def _shares(
    model: Predictor, features: pd.DataFrame, known: Histories, start: float
) -> tuple[Floats, dict[str, Floats], Floats]:
    """The trees' weight for each run, with those of peers without runs: (n,); what each other part of peers adds, by
    name of the feature that says it; and what all runs add, (n,)."""
    n, none = len(features), np.zeros(N_CLASSES)
    support = support_of(known)
    share, of_all = (np.array(model.weights.get(part, none))[support] for part in (BOOSTED, ALL_RUNS))
    added: dict[str, Floats] = {}
    weighed = [part for part in POOLED if max(model.weights.get(part, none)) > 0]
    for part, quantiles in zip(weighed, model.parts(features, known, weighed), strict=True):
        (peers, most), weight = POOLED[part], np.array(model.weights[part])[support]
        has_runs = np.isfinite(known.log_s[peers][:, 0]) if peers in known.log_s else np.zeros(n, dtype=bool)
        share += np.where(has_runs, 0.0, weight)
        name = f"{peers}_median" + (str(SOME_RUNS) if most < MOST_RUNS else "")
        added[name] = added.get(name, 0.0) + np.where(has_runs, weight * (quantiles.mean(axis=1) - start), 0.0)
    return share, added, of_all * (model.typical_log_s.mean() - start)


def shape_parts(classifier: LightGbm, features: pd.DataFrame) -> Contributions:
    """What each feature adds to the log-probability of each shape, up to a constant: k scores.

    Their softmax is what the classifier predicts. A shape that no training run had
    has base -inf. Where earlier runs are evidence, log-probabilities are added by their powers: that
    of a shape counts from the same for all shapes, and the least that the trees' word counts for stands in the base.
    features: a frame with its columns, and those of the evidence, among others."""
    k, present = len(classifier.present), np.array(classifier.present)
    raw = contributions(classifier.booster, classifier.prepare(features), classifier.columns, k)
    added = np.where(present, raw.added, 0.0)
    base = np.where(present, raw.base, -np.inf)
    of_trees = Contributions(added, base, classifier.columns)
    return _with_evidence(of_trees, classifier, features) if classifier.evidence else of_trees


def _with_evidence(trees: Contributions, classifier: LightGbm, features: pd.DataFrame) -> Contributions:
    """The trees' contributions to the power of the trees, and those of the evidence: see predict/classifier.py."""
    power, k = classifier.evidence_powers[0], trees.k
    scores = trees.raw  # (n, k)
    floor = math.log(LEAST) + logsumexp(scores, axis=1, keepdims=True)
    names = [*trees.features, *(name for each in classifier.evidence for name in each if name not in trees.features)]
    added = np.zeros((len(scores), len(names), k))
    added[:, : len(trees.features)] = power * trees.added
    base = power * np.maximum(scores, floor) - added.sum(axis=1)
    likelihoods = evidence_of(features, classifier.evidence)
    for strength, columns, likely in zip(classifier.evidence_powers[1:], classifier.evidence, likelihoods, strict=True):
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


def log_odds(raw: Floats, shapes: Collection[int]) -> Floats:
    """log(P(shapes) / P(others)) from raw scores (n, k): (n,)."""
    is_target = np.isin(np.arange(raw.shape[1]), list(shapes))
    return np.asarray(np.logaddexp.reduce(raw[:, is_target], axis=1) - np.logaddexp.reduce(raw[:, ~is_target], axis=1))


def towards(parts: Contributions, shapes: Collection[int]) -> Contributions:
    """Contributions to the log-odds of `shapes` against the others, one score: added (n, p, 1), base (n, 1).

    Log-odds are no sum of raw scores, so the change from the base s0 to the scores s of a run is followed on the
    straight line between them, and each feature given its part of each step:

        value_j = sum_c phi_jc * integral over t in [0, 1] of d log_odds(s0 + t (s - s0)) / d s_c,

    which adds up to log_odds(s) - log_odds(s0); for two shapes it is phi_j1 - phi_j0. shapes: some, but
    not all, of those that the model knows, and maybe others.
    Source: Aumann & Shapley 1974; Sundararajan et al. 2017, proposition 1."""
    is_target, known = np.isin(np.arange(parts.k), list(shapes)), parts.knows
    slopes = _mean_slopes(parts.base[:, known], parts.raw[:, known], is_target[known])
    added = np.einsum("npk,nk->np", parts.added[:, :, known], slopes)
    return Contributions(added[:, :, None], log_odds(parts.base, shapes)[:, None], parts.features)


def _mean_slopes(start: Floats, end: Floats, is_target: NDArray[np.bool_]) -> Floats:
    """d log_odds / d scores averaged on the line from start to end, (n, k): softmax within each side, its sign."""
    points, weights = np.polynomial.legendre.leggauss(STEPS)
    slopes = np.zeros(start.shape)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        scores = start + point * (end - start)
        slopes[:, is_target] += weight * softmax(scores[:, is_target], axis=1)
        slopes[:, ~is_target] -= weight * softmax(scores[:, ~is_target], axis=1)
    return slopes


def push(parts: Contributions, a: int, b: int) -> Floats:
    """What each feature adds to log(P(b) / P(a)) of each run, (n, p): above 0 it pushes from shape a to shape b.

    Exactly additive, since both raw scores are. a, b: two shapes that the model knows."""
    return np.asarray(parts.added[:, :, b] - parts.added[:, :, a])


def against_usual(parts: Contributions, usual: Contributions, first: ArrayLike, n_usual: ArrayLike) -> Contributions:
    """Contributions less the median contributions of the usual runs of the same job; base plus the sum of those.

    The usual runs of each run are a stretch of `usual`: rows first … first + n_usual - 1, (n,) each. Still additive:
    what a run's features add now leads from what is usual for its job to its own prediction. What is the same in all
    runs of a job adds nothing. Medians, not means: after one run with a huge input a usual input must not seem to make
    runs short. A run with fewer than MIN_RUNS is left as it is. One score only, of the same model."""
    start, n, values = np.asarray(first, dtype=np.int64), np.asarray(n_usual, dtype=np.int64), usual.single
    reference = np.zeros(parts.single.shape)
    for row in np.flatnonzero(n >= MIN_RUNS):
        reference[row] = np.median(values[start[row] : start[row] + n[row]], axis=0)
    added = (parts.single - reference)[:, :, None]
    return Contributions(added, parts.base + reference.sum(axis=1, keepdims=True), parts.features)


@cache
def family_of(feature: str) -> Family:
    """The family of a feature by its name; `other` for a name that no pattern fits."""
    return next((family for pattern, family in PATTERNS if re.match(pattern, feature)), "other")


def by_family(parts: Contributions) -> tuple[Floats, tuple[Family, ...]]:
    """Contributions of one score summed within families, (n, number of families), and these in order of FAMILIES."""
    each = [family_of(feature) for feature in parts.features]
    families = tuple(family for family in FAMILIES if family in each)
    member = np.array([[family == other for other in families] for family in each], dtype=np.float64)
    return np.asarray(parts.single @ member.reshape(len(each), len(families))), families
