"""Which executions are degraded: a linear and a tree model of deviations for each benchmark type, or, where no stress
is known, how much worse its headline metrics are than usual.

    score = (logit of a logistic regression + 2 · logit of extremely randomised trees) / 3  stress of the type is known
    score = STEEPNESS · (√(w · recent² + (1 - w) · level²) - HALF)                               none is

so that 0 is even odds either way. recent and level are one-sided robust z-scores of the headline metrics, from the last
executions that looked normal and from the level, each over its scale: (mean √deviation)² of what is worse over calm
executions, so that a type with two levels of its own does not stand above all others, and what nobody knew to be
stressed moves it little. Features are the deviations of each metric from the level of its node and from the node's
last 20 and 50 executions (deviations.py). What it was chosen among: tasks/nodes/README.md."""

import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from tasks.nodes.detect.deviations import (
    RECENT,
    Centre,
    Normal,
    Rows,
    Windows,
    clean_deviations,
    headline_score,
    headline_signs,
    is_cold,
    is_settled,
    learn_normal,
    level_deviations,
    level_of,
    logarithms,
    positive_metrics,
    recent_deviations,
    squashed,
    windows_of,
    without_fleet_drift,
)
from tasks.nodes.params import DetectorParams
from tasks.nodes.type_tables import FEWEST, Bools, Floats, Ints, NodeTables, TypeTable

EVEN_ODDS = 0.0  # score, in logits, from which an execution is more likely degraded than not
PENALTY = 0.05  # C of the logistic regression
TREES, LEAF, FEATURES = 100, 4, 0.3
TREE_WEIGHT = 2 / 3  # of the trees' logit beside that of the logistic regression
FEW_STRESSED = 8  # known stressed executions up to which a leaf may hold one
STRETCHES = 5  # in which training executions are scored by what the others taught
STEEPNESS, HALF = 0.85, 3.1  # of the score without labels: logits a scale, scales at even odds
RECENT_WEIGHT = 2 / 3  # w: what a node did lately counts twice as much as its level
SUPPOSED = 20  # executions that are one deviation worse: what stands for the scale of a type that hardly ran
SOFTENED = 0.01  # of a tree's share, so that its logit is finite
TINY_SPREAD = 1e-9
COLD = -3.0  # score, at most, of an execution that nothing is known to compare with


@dataclass(frozen=True)
class Linear:
    """A logistic regression on standardised features: (f,) each."""

    mean: Floats
    spread: Floats
    weights: Floats
    intercept: float

    def logits(self, features: Floats) -> Floats:
        """(n, f) to (n,)."""
        return np.asarray((features - self.mean) / self.spread @ self.weights + self.intercept)


@dataclass(frozen=True)
class StressTrees:
    """Trees as arrays over all their nodes: feature and threshold of a split, its two children, the share of stressed
    executions in it. roots: where each tree begins. A leaf is its own child."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    share: Floats
    roots: Ints

    def logits(self, features: Floats) -> Floats:
        """The logit of the mean share over the trees: (n, f) to (n,)."""
        at = np.repeat(self.roots[None], len(features), axis=0)  # (n, trees)
        rows = np.arange(len(features))[:, None]
        values = features.astype(np.float32)  # as they were grown
        while True:
            goes_left = values[rows, self.feature[at]] <= self.threshold[at]
            following = np.where(goes_left, self.left[at], self.right[at])
            if (following == at).all():
                break
            at = following
        share = SOFTENED + (1 - 2 * SOFTENED) * self.share[at].mean(axis=1)
        return np.asarray(np.log(share / (1 - share)))


@dataclass(frozen=True)
class TypeDetector:
    """What was learned of one benchmark type. linear, trees: None without a known stressed execution of it.

    signs: (m,) of the headline metrics. scales: of their deviations in PreparedDeviations, of calm executions."""

    name: str
    metrics: tuple[str, ...]
    normal: Normal
    signs: Floats
    scales: tuple[float, float]
    linear: Linear | None = None
    trees: StressTrees | None = None

    @property
    def knows_stress(self) -> bool:
        """Whether it learned from executions that were known to be stressed."""
        return self.linear is not None


@dataclass(frozen=True)
class Scores:
    """score: (n_executions,) logits of being degraded, NaN where no metric is known. is_cold: there is nothing to
    compare the execution with. by_labels: told by a model that knows stress of the type."""

    score: Floats
    is_cold: Bools
    by_labels: Bools

    @property
    def probability(self) -> Floats:
        """(n_executions,) 1 / (1 + exp(-score))."""
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(-self.score)))


@dataclass(frozen=True)
class FittedDetector:
    """types: by name. in_training: (n_executions,) scores of the training executions by what the other stretches
    taught, NaN elsewhere; thresholds are chosen by them. is_plain: see fit_detector."""

    types: dict[str, TypeDetector]
    in_training: Floats
    is_plain: bool = False

    def score(self, tables: NodeTables, at_h: Floats) -> Scores:
        """Score executions; a type that training did not have has no score.

        tables: of the same preprocessing, with all that the nodes did before. at_h: (n_executions,) hours."""
        score = np.full(tables.n_executions, np.nan)
        cold, by_labels = np.zeros((2, tables.n_executions), dtype=bool)
        for table in tables.tables:
            known = self.types.get(table.name)
            if known is None or known.metrics != table.metrics:
                continue
            rows = rows_of(table, tables, at_h)
            windows = windows_of(table, known.normal.is_positive)
            prepared = prepare(rows, known.normal, windows, known.signs, self.is_plain)
            score[table.executions] = _scores(known, prepared)
            cold[table.executions], by_labels[table.executions] = prepared.is_cold, known.knows_stress
        return Scores(score, cold, by_labels)


@dataclass(frozen=True)
class PreparedDeviations:
    """features: (n, f) squashed deviations, those from the level first. level, clean: (n, m) deviations that headlines
    are read in: from the level, and from the last executions that looked normal."""

    features: Floats
    level: Floats
    clean: Floats
    is_settled: Bools
    is_cold: Bools

    def where(self, is_kept: Bools | Ints) -> "PreparedDeviations":
        """The rows of the mask (n,), or of these numbers."""
        return PreparedDeviations(*(values[is_kept] for values in vars(self).values()))


def fit_detector(
    tables: NodeTables,
    at_h: Floats,
    is_train: Bools,
    is_stressed: Bools,
    is_calm: Bools,
    params: DetectorParams,
    *,
    is_plain: bool = False,
    seed: int = 0,
) -> FittedDetector:
    """Learn from the training executions of the mask (n_executions,); all others stand in windows alone.

    is_stressed: known to be. is_calm: nothing is known against them. is_plain: the baseline, which sees deviations from
    the level alone and has no trees: one logistic regression a type. Each type learns alone; one without FEWEST calm
    training executions is left out, and its executions have no score."""
    types: dict[str, TypeDetector] = {}
    in_training = np.full(tables.n_executions, np.nan)
    for table in tables.tables:
        of = table.executions
        is_learned, calm = is_train[of], is_train[of] & is_calm[of]
        if calm.sum() < FEWEST or not table.metrics:
            continue
        rows = rows_of(table, tables, at_h)
        learner = _Learner(rows, windows_of(table, positive_metrics(table.natural, calm)), is_plain, params, seed)
        types[table.name], in_training[of[is_learned]] = learner.fit(is_learned, calm, is_stressed[of])
    return FittedDetector(types, in_training, is_plain)


def rows_of(table: TypeTable, tables: NodeTables, at_h: Floats) -> Rows:
    """The executions of a table with their nodes and times. at_h: (n_executions,)."""
    return Rows(table, tables.nodes, tables.machine_types, at_h[table.executions])


def prepare(rows: Rows, normal: Normal, windows: Windows, signs: Floats, is_plain: bool) -> PreparedDeviations:
    """The deviations of all rows, by what normal executions are like. signs: (m,) of the headline metrics."""
    usual = level_of(rows, normal, windows)
    level = np.asarray((logarithms(rows.table.natural, normal.is_positive) - usual.median) / usual.deviation)
    parts = [level]
    if not is_plain:
        shorter, longer = (recent_deviations(rows, normal, windows, length) for length in RECENT)
        parts += [shorter, without_fleet_drift(longer, rows)]
    features = np.hstack([squashed(part) for part in parts])
    clean = clean_deviations(rows, normal, windows, usual, signs)
    return PreparedDeviations(features, level, clean, is_settled(rows, normal), is_cold(rows, normal, windows))


@dataclass(frozen=True)
class _Learner:
    """One benchmark type."""

    rows: Rows
    windows: Windows
    is_plain: bool
    params: DetectorParams
    seed: int

    def fit(self, is_learned: Bools, is_calm: Bools, is_stressed: Bools) -> tuple[TypeDetector, Floats]:
        """The type's detector, and the scores of the learned rows by what the other stretches taught. All: (n,).

        The features of a learned row are its deviations from the level of the other stretches too: from a level that it
        is part of it would look more normal than what comes later."""
        normal, signs = learn_normal(self.rows, self.windows, is_calm), headline_signs(self.rows.table, self.params)
        prepared = prepare(self.rows, normal, self.windows, signs, self.is_plain)
        places = np.flatnonzero(is_learned)
        stretch = np.full(len(is_learned), -1)
        stretch[places] = np.arange(len(places)) * STRETCHES // max(len(places), 1)
        features, level = prepared.features.copy(), prepared.level.copy()
        for number in range(STRETCHES):
            is_held, others = stretch == number, is_calm & (stretch != number)
            if others.sum() >= FEWEST:
                apart = level_deviations(self.rows, learn_normal(self.rows, self.windows, others), self.windows)
                level[is_held] = apart[is_held]
                features[is_held, : level.shape[1]] = squashed(apart)[is_held]
        honest = replace(prepared, features=features, level=level)
        scales = _scale(level[is_calm], signs), _scale(prepared.clean[is_calm], signs)
        plain = TypeDetector(self.rows.table.name, self.rows.table.metrics, normal, signs, scales)
        outside = np.full(len(is_learned), np.nan)
        for number in range(STRETCHES):
            is_held, others = stretch == number, is_learned & (stretch != number)
            model = self._with_labels(plain, honest.where(others), is_stressed[others])
            outside[is_held] = _scores(model, honest.where(is_held))
        fitted = self._with_labels(plain, honest.where(is_learned), is_stressed[is_learned])
        return fitted, outside[is_learned]

    def _with_labels(self, plain: TypeDetector, learned: PreparedDeviations, is_stressed: Bools) -> TypeDetector:
        """With what labels teach; as it is where there is none of both kinds."""
        if not is_stressed.any() or is_stressed.all():
            return plain
        features = learned.features
        mean, spread = features.mean(axis=0), features.std(axis=0) + TINY_SPREAD
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an early end changes nothing that counts
            regression = LogisticRegression(C=PENALTY, max_iter=500).fit((features - mean) / spread, is_stressed)
        linear = Linear(mean, spread, regression.coef_[0], float(regression.intercept_[0]))
        if self.is_plain:
            return replace(plain, linear=linear)
        leaf = LEAF if is_stressed.sum() > FEW_STRESSED else 1
        forest = ExtraTreesClassifier(TREES, min_samples_leaf=leaf, max_features=FEATURES, random_state=self.seed)
        return replace(plain, linear=linear, trees=_as_arrays(forest.fit(features, is_stressed)))


def _scale(calm: Floats, signs: Floats) -> float:
    """(mean √deviation)² of what is worse in headline metrics over calm rows (k, m), and over SUPPOSED rows of 1."""
    roots = np.sqrt(np.maximum(headline_score(calm, signs), 0.0))
    return float(((roots.sum() + SUPPOSED) / (len(roots) + SUPPOSED)) ** 2)


def _as_arrays(forest: ExtraTreesClassifier) -> StressTrees:
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("feature", "threshold", "left", "right", "share")}
    roots, offset = [], 0
    for estimator in forest.estimators_:
        tree = estimator.tree_
        is_leaf = tree.children_left < 0
        index = np.arange(tree.node_count)
        parts["feature"].append(np.where(is_leaf, 0, tree.feature))
        parts["threshold"].append(tree.threshold)
        parts["left"].append(np.where(is_leaf, index, tree.children_left) + offset)
        parts["right"].append(np.where(is_leaf, index, tree.children_right) + offset)
        counts = tree.value[:, 0, :]
        parts["share"].append(counts[:, 1] / counts.sum(axis=1))
        roots.append(offset)
        offset += tree.node_count
    return StressTrees(
        **{name: np.concatenate(values) for name, values in parts.items()}, roots=np.array(roots, dtype=np.int64)
    )


def _scores(known: TypeDetector, prepared: PreparedDeviations) -> Floats:
    if known.linear is not None:
        logits = known.linear.logits(prepared.features)
        if known.trees is not None:
            logits += TREE_WEIGHT * (known.trees.logits(prepared.features) - logits)
    else:
        parts = zip((prepared.level, prepared.clean), known.scales, strict=True)
        level, recent = (np.maximum(headline_score(z, known.signs), 0.0) / scale for z, scale in parts)
        both = np.sqrt(RECENT_WEIGHT * recent**2 + (1 - RECENT_WEIGHT) * level**2)
        logits = STEEPNESS * (np.where(prepared.is_settled, both, recent) - HALF)
    return np.asarray(np.where(prepared.is_cold, np.minimum(logits, COLD), logits))


def contributions(known: TypeDetector, prepared: PreparedDeviations) -> Floats:
    """How far the score of each execution would fall if one metric were as usual: (n, m)."""
    score = _scores(known, prepared)
    fallen = np.zeros(prepared.level.shape)
    m = len(known.metrics)
    for metric in range(m):
        usual = {name: getattr(prepared, name).copy() for name in ("features", "level", "clean")}
        for values in usual.values():
            values[:, metric::m] = 0.0
        fallen[:, metric] = score - _scores(known, replace(prepared, **usual))
    return fallen


FILE, ARRAYS = "detector.json", "detector.npz"
VERSION = 2  # of what the numbers mean: earlier scales are of other scores


def save_detector(fitted: FittedDetector, folder: Path) -> None:
    """Write the detector to a folder: names as JSON, numbers as arrays. What it said in training is not kept."""
    arrays: dict[str, np.ndarray] = {}
    described: list[dict[str, Any]] = []
    for at, known in enumerate(fitted.types.values()):
        normal = known.normal
        arrays |= {f"{at}.is_positive": normal.is_positive, f"{at}.floor": normal.floor, f"{at}.pooled": normal.pooled}
        arrays[f"{at}.signs"] = known.signs
        groups = {"fleet": {"": normal.fleet}, "nodes": normal.nodes, "machines": normal.machines}
        for name, centres in groups.items():
            stacked = [np.stack(centre) for centre in centres.values()]
            arrays[f"{at}.{name}"] = np.array(stacked).reshape(len(stacked), 2, len(known.metrics))
        for name, model in (("linear", known.linear), ("trees", known.trees)):
            if model is not None:
                arrays |= {f"{at}.{name}.{key}": np.asarray(value) for key, value in vars(model).items()}
        described.append({
            "name": known.name, "metrics": list(known.metrics), "scales": known.scales, "nodes": list(normal.nodes),
            "machines": list(normal.machines), "settled": list(normal.settled), "knows_stress": known.knows_stress,
        })  # fmt: skip
    with (folder / ARRAYS).open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    contents = {"version": VERSION, "has_trees": not fitted.is_plain, "types": described}
    (folder / FILE).write_text(json.dumps(contents, indent=1))


def load_detector(folder: Path) -> FittedDetector:
    """The detector of a folder; it gives the same numbers. Nothing that executes is read. Raises OSError, ValueError,
    KeyError for a folder that holds none."""
    contents = json.loads((folder / FILE).read_text())
    if contents["version"] != VERSION:
        raise ValueError(f"{FILE} is of version {contents['version']}, not {VERSION}")
    types = {}
    with np.load(folder / ARRAYS, allow_pickle=False) as arrays:
        for at, entry in enumerate(contents["types"]):

            def centres(name: str, keys: list[str], at: int = at) -> dict[str, Centre]:
                return {key: Centre(*pair) for key, pair in zip(keys, arrays[f"{at}.{name}"], strict=True)}

            normal = Normal(
                arrays[f"{at}.is_positive"], arrays[f"{at}.floor"], arrays[f"{at}.pooled"], centres("fleet", [""])[""],
                centres("nodes", entry["nodes"]), centres("machines", entry["machines"]), tuple(entry["settled"]),
            )  # fmt: skip
            models: dict[str, Any] = {}
            if entry["knows_stress"]:
                mean, spread, weights = (arrays[f"{at}.linear.{key}"] for key in ("mean", "spread", "weights"))
                models["linear"] = Linear(mean, spread, weights, float(arrays[f"{at}.linear.intercept"]))
                if contents["has_trees"]:
                    models["trees"] = StressTrees(
                        *(arrays[f"{at}.trees.{key}"] for key in StressTrees.__dataclass_fields__)
                    )
            known = entry["name"], tuple(entry["metrics"]), normal, arrays[f"{at}.signs"], (*entry["scales"],)
            types[entry["name"]] = TypeDetector(*known, **models)
    return FittedDetector(types, np.empty(0), is_plain=not contents["has_trees"])
