"""Why runs are predicted as they are, and what a change would do, as figures: SHAP values of shapes and of one run
(Zhu et al., Figure 9), moves between shapes, and prediction beside measurement (section 7)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadSetting, NotFound
from tasks.jobs.control.answering import Answer, Measured
from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions, push, shape_parts, towards
from tasks.jobs.explain.reasons import Explainer, words_of
from tasks.jobs.explain.reasons import RunReasons as Explained
from tasks.jobs.explain.whole_source import describe_held_out
from tasks.jobs.normalisation import Counts
from tasks.jobs.params import Kind
from tasks.jobs.predict.classifier import LEAST
from tasks.quantities import ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, figure

NO_FEATURE = "The model uses no feature: every run is predicted alike."
NOT_CAUSES = "These are reasons of the prediction, which need not be causes of the runtime."
NEXT = "the next run"
MOST_SWARM = 250  # runs of a feature in a figure


N_FEATURES = 10


@dataclass(frozen=True)
class Swarm:
    """added: (n, p) SHAP values in log-odds of what `towards` names; of_feature: (n, p) values, NaN if unknown.

    words: (p,) of the features; towards: such as "shape 6"."""

    added: Floats
    of_feature: Floats
    words: Sequence[str]
    towards: str

    @property
    def order(self) -> NDArray[np.intp]:
        """Features by their mean size, the largest first; those that add nothing are left out: at most N_FEATURES."""
        sizes = np.abs(self.added).mean(axis=0) if len(self.added) else np.zeros(self.added.shape[1])
        ranked = np.argsort(-sizes, kind="stable")[:N_FEATURES]
        return np.asarray(ranked[sizes[ranked] > 0], dtype=np.intp)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {len(self.added):,} runs; {len(self.order)} of {len(self.words)} features"


LOW, HIGH = 1 / 3, 2 / 3


@dataclass(frozen=True)
class TwoShapes:
    """difference: (n, p) what each feature adds to the log-odds of `one` over `other`: SHAP of one minus of the other.

    values: (n, p) of the features, NaN if unknown; words: (p,); one, other: such as "shape 0", "shape 2"."""

    difference: Floats
    values: Floats
    words: Sequence[str]
    one: str
    other: str

    @property
    def ends(self) -> Floats:
        """Mean addition over the runs whose feature is in its lowest and in its highest third: (p, 2).

        NaN for a feature that is constant or unknown. Ends that are tied with more runs hold them all."""
        n, p = self.difference.shape
        found = np.full((p, 2), np.nan)
        for feature in range(p if n else 0):
            values = self.values[:, feature]
            known = values[np.isfinite(values)]
            if len(np.unique(known)) < 2:
                continue
            low, high = np.quantile(known, [LOW, HIGH], method="nearest")
            is_low, is_high = values <= min(low, known[known < known.max()].max()), values >= high
            is_high &= ~is_low
            for side, mask in enumerate((is_low, is_high)):
                if mask.any():
                    found[feature, side] = self.difference[mask, feature].mean()
        return found

    @property
    def order(self) -> NDArray[np.intp]:
        """Features by how far apart their ends are, at most N_FEATURES; those without two ends are left out."""
        gaps = np.abs(self.ends[:, 1] - self.ends[:, 0])
        ranked = np.argsort(-np.nan_to_num(gaps), kind="stable")[:N_FEATURES]
        return np.asarray(ranked[np.nan_to_num(gaps)[ranked] > 0], dtype=np.intp)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {len(self.difference):,} runs; means over the lowest and the highest third of each feature"


EVIDENCE = {"shape": "earlier", "recent_shape": "last"}  # by the prefix of its columns: which of the job's own runs


@dataclass(frozen=True)
class ShapeReasons:
    """Of n held-out runs. parts: p features to k shapes; features: (n, p) their values; evidence: columns that tell how
    well the job's own runs fit each shape, (k,) each: they are shown as one."""

    model_id: str
    kind: Kind
    parts: Contributions
    features: pd.DataFrame
    evidence: tuple[tuple[str, ...], ...]

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the most variable shape that the model knows."""
        known = np.flatnonzero(self.parts.knows)
        return int(known[0]), int(known[-1])

    def swarm(self, shape: int) -> Swarm:
        """What each feature adds to the log-odds of one shape against the others. Raises BadSetting for no shape."""
        self._check(shape)
        one = towards(self.parts, [shape])
        fits = [self._fit(columns, shape) for columns in self.evidence]
        words = f"how well the job's {{which}} runs fit shape {shape}"
        return Swarm(*self._shown(one.single, fits, words), f"shape {shape}")

    def two(self, one: int, other: int) -> TwoShapes:
        """What each feature adds to the log-odds of one shape over the other. Raises BadSetting for no two shapes."""
        self._check(one, other)
        if one == other:
            raise BadSetting(f"shapes {one} and {other}: expected two different ones")
        fits = [self._fit(columns, one) - self._fit(columns, other) for columns in self.evidence]
        words = f"how much better its {{which}} runs fit shape {one}"
        return TwoShapes(*self._shown(push(self.parts, other, one), fits, words), f"shape {one}", f"shape {other}")

    def _fit(self, columns: tuple[str, ...], shape: int) -> Floats:
        """The logarithm of how well the own runs fit the shape, (n,), as the model takes it; none fit all alike."""
        probability = self.features[columns[shape]].fillna(1 / len(columns)).to_numpy(dtype=np.float64)
        return np.asarray(np.log(np.maximum(probability, LEAST)))

    def _shown(self, added: Floats, fits: Sequence[Floats], evidence: str) -> tuple[Floats, Floats, list[str]]:
        """Contributions, values and words, the columns of each evidence summed to one feature."""
        names = list(self.parts.features)
        plain = [place for place, name in enumerate(names) if not any(name in columns for columns in self.evidence)]
        values = self.features[names].to_numpy(dtype=np.float64)[:, plain]
        sums = [added[:, [names.index(name) for name in columns]].sum(axis=1) for columns in self.evidence]
        words = [words_of(names[place]) for place in plain]
        words += [evidence.format(which=EVIDENCE[columns[0].rsplit("_", 2)[0]]) for columns in self.evidence]
        return np.column_stack([added[:, plain], *sums]), np.column_stack([values, *fits]), words

    def _check(self, *shapes: int) -> None:
        known = np.flatnonzero(self.parts.knows)
        for shape in shapes:
            if shape not in known:
                numbers = ", ".join(str(number) for number in known)
                raise BadSetting(f"shape {shape}: the model {self.model_id} knows the {self.kind} shapes {numbers}")


def find_shape_reasons(explainer: Explainer, kind: Kind) -> ShapeReasons:
    """SHAP values of the held-out runs for every shape of one kind, by LightGBM's pred_contrib.

    Raises BadInput if the model has seen all runs, NotFound if it does not tell at least two shapes of it apart."""
    classifier, model_id = explainer.trained.classifiers.get(kind), explainer.model_id
    if classifier is None or sum(classifier.present) < 2:
        raise NotFound(f"model {model_id}: it tells no two {kind} shapes apart; train it on more of the log")
    held_out = describe_held_out(explainer.trained, explainer.runs)
    features = held_out.features.iloc[held_out.test].reset_index(drop=True)
    return ShapeReasons(model_id, kind, shape_parts(classifier, features), features, tuple(classifier.evidence))


N_REASONS = 8
NO_CHANGE = 0.005  # a factor within half a percent of 1 is none


@dataclass(frozen=True)
class Reason:
    """words: such as "input 3.1 times its usual size"; factor: by which it multiplies, above 0."""

    words: str
    factor: float


@dataclass(frozen=True)
class RunReasons:
    """run: its name; what: is multiplied, such as "odds of a slow run"; start, end: before and after all reasons.

    reasons: in any order; what they leave of end / start is drawn as "all else". is_worse_up: more of it is worse."""

    run: str
    what: str
    start: float
    end: float
    reasons: Sequence[Reason]
    n_runs: int
    start_words: str = "usual"
    is_worse_up: bool = True

    @property
    def shown(self) -> list[Reason]:
        """The largest reasons, at most N_REASONS, and last all else; those that change nothing are left out."""
        ranked = sorted(self.reasons, key=lambda reason: -abs(np.log(reason.factor)))[:N_REASONS]
        kept = [reason for reason in ranked if abs(np.log(reason.factor)) > NO_CHANGE]
        rest = self.end / self.start / float(np.prod([reason.factor for reason in kept]))
        return [*kept, Reason("all else", rest)] if abs(np.log(rest)) > NO_CHANGE else kept

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n = len(self.shown)
        return f"one run, against {self.n_runs:,} others; {n} step{'' if n == 1 else 's'} from {self.start_words} to it"


MOST_DOTS = 400
N_BINS, LEAST_IN_BIN = 6, 5


@dataclass(frozen=True)
class PairChanges:
    """predicted, measured: (n,) runtime after over before, above 0; 1 is no change. right_share: of the n_directed
    pairs that changed notably, those whose direction was right, with its interval (low, high); None if unknown."""

    predicted: Floats
    measured: Floats
    scenario: str
    right_share: float | None = None
    right_interval: tuple[float, float] | None = None
    n_directed: int | None = None

    @property
    def n(self) -> int:
        """Pairs."""
        return len(self.measured)

    @property
    def bins(self) -> list[tuple[float, float, float, float]]:
        """Of pairs in order of prediction, cut into parts alike in size: median predicted; 25 %, median, 75 % measured.

        As many parts as have LEAST_IN_BIN pairs, at most N_BINS; none for fewer pairs."""
        n_bins = min(N_BINS, self.n // LEAST_IN_BIN)
        if not n_bins:
            return []
        order = np.argsort(self.predicted, kind="stable")
        found = []
        for part in np.array_split(order, n_bins):
            low, middle, high = np.quantile(self.measured[part], [0.25, 0.5, 0.75])
            found.append((float(np.median(self.predicted[part])), float(low), float(middle), float(high)))
        return found

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        drawn = f", {MOST_DOTS:,} of them drawn" if self.n > MOST_DOTS else ""
        return f"n = {self.n:,} matched pairs{drawn}; thick: median and middle half of pairs predicted alike"


@dataclass(frozen=True)
class MigrationMap:
    """counts: (k, k) runs or jobs, rows the shape before, columns after the change that `scenario` names."""

    counts: Counts
    scenario: str
    what: str = "runs"

    @property
    def n(self) -> int:
        """Runs or jobs with a shape before and after."""
        return int(self.counts.sum())

    @property
    def shares(self) -> Floats:
        """Of those that were in the shape of the row: (k, k); NaN for a shape that had none."""
        return np.asarray(charts.row_shares(self.counts))

    @property
    def moved(self) -> float | None:
        """Share in another shape than before; None without any."""
        return 1 - float(np.trace(self.counts)) / self.n if self.n else None

    @property
    def largest(self) -> tuple[int, int] | None:
        """The move from one shape to another that most make: (before, after). None if nobody moves."""
        moves = np.where(np.eye(len(self.counts), dtype=bool), 0, self.counts)
        if not moves.any():
            return None
        before, after = np.unravel_index(int(moves.argmax()), moves.shape)
        return int(before), int(after)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n:,} {self.what}, {share(self.moved)} moved; percent of the shape before"


def shape_reason_figures(reasons: ShapeReasons, numbers: Sequence[int]) -> list[Figure]:
    """A beeswarm for each of the shapes, and of two what tells them apart.

    Raises BadSetting for a shape that the model does not know, or the same one twice."""
    kind = reasons.kind
    compared = []
    if len(numbers) == 2:
        one, other = numbers
        compared = [two_shapes_figure(reasons.two(one, other), f"two-shapes-{kind}-{one}-{other}")]
    return [swarm_figure(reasons.swarm(number), f"beeswarm-{kind}-{number}") for number in numbers] + compared


def swarm_figure(swarm: Swarm, name: str) -> Figure:
    """What speaks for one shape."""
    words = (
        f"Each dot is a run: how much the feature added to, or took from, the log-odds of {swarm.towards} (SHAP "
        f"values). Orange: the feature is high, blue: low. {NOT_CAUSES}"
    )
    drawn = f", {MOST_SWARM} of them drawn" if len(swarm.added) > MOST_SWARM else ""
    title, evidence = f"What speaks for {swarm.towards}", f"{swarm.evidence}{drawn}"
    return figure(name, title, words, evidence, partial(_draw_swarm, swarm) if len(swarm.order) else None, NO_FEATURE)


def _draw_swarm(swarm: Swarm) -> charts.Chart:
    parts = []
    for feature in swarm.order:
        added, values = swarm.added[:, feature], pd.Series(swarm.of_feature[:, feature])
        rows = pd.DataFrame({"feature": str(swarm.words[feature]), "added": added, "level": values.rank(pct=True)})
        parts.append(charts.sampled(rows.sort_values("added"), MOST_SWARM))
    title = f"added to the log-odds of {swarm.towards}"
    return charts.dots(pd.concat(parts), Axis("added", title), "feature", low_to_high="level", mean=False)


def two_shapes_figure(shapes: TwoShapes, name: str) -> Figure:
    """What tells two shapes apart."""
    pair = f"{shapes.one} and {shapes.other}"
    words = (
        "Mean addition to the log-odds of one shape over the other, where the feature is in its lowest third (blue) "
        f"and in its highest (orange). The further apart, the more it tells {pair} apart. {NOT_CAUSES}"
    )
    order = shapes.order
    title = f"What tells {pair} apart"
    return figure(name, title, words, shapes.evidence, partial(_draw_two, shapes) if len(order) else None, NO_FEATURE)


def _draw_two(shapes: TwoShapes) -> charts.Chart:
    ends = shapes.ends
    rows = pd.DataFrame(
        [
            {
                "feature": str(shapes.words[at]),
                "added": ends[at, side],
                "low": ends[at].min(),
                "high": ends[at].max(),
                "third": third,
            }
            for at in shapes.order
            for side, third in enumerate(("lowest third", "highest third"))
        ]
    )
    tones = {"lowest third": charts.BLUE, "highest third": charts.ORANGE}
    title = f"← {shapes.other} · log-odds of {shapes.one} over {shapes.other} · {shapes.one} →"
    return charts.intervals(rows, Axis("added", title), "feature", tone="third", colours=tones)


def run_reason_figure(found: Explained, name: str) -> Figure:
    """From the usual time of its job to what was expected of one run."""
    reasons = [
        Reason(f"{one.family}: {words_of(one.feature)}", math.exp(one.contribution)) for one in found.runtime.reasons
    ]
    start_s, words = found.usual_s, "usual"
    if not start_s > 0:
        start_s, words = found.expected_s / math.prod(reason.factor for reason in reasons), "all runs"
    title = f"{found.group_key}: {found.run_id or NEXT}"
    what = "expected runtime in seconds"
    return one_run_figure(RunReasons(title, what, start_s, found.expected_s, reasons, found.n_usual, words), name)


def one_run_figure(run: RunReasons, name: str) -> Figure:
    """Why one run is predicted as it is."""
    words = (
        f"From what is usual to the prediction for this run: each bar multiplies the {run.what} by its factor, "
        f"orange for the worse, blue for the better. {NOT_CAUSES}"
    )
    nothing = "Nothing about this run differs from what is usual."
    draw = partial(_draw_run, run) if run.shown else None
    return figure(name, "Why this run is predicted so", words, run.evidence, draw, nothing)


def _draw_run(run: RunReasons) -> charts.Chart:
    shown = run.shown
    places = run.start * np.cumprod([1.0, *(reason.factor for reason in shown)])
    rows = [
        {
            "reason": f"{run.start_words}",
            "from": run.start * 0.995,
            "end": run.start * 1.005,
            "factor": 1.0,
            "is": "level",
        }
    ]
    rows += [
        {"reason": f"{reason.words} ({ratio(reason.factor)} ×)", "from": float(before), "end": float(after)}
        | {"factor": reason.factor, "is": "worse" if (reason.factor > 1) == run.is_worse_up else "better"}
        for reason, before, after in zip(shown, places[:-1], places[1:], strict=True)
    ]
    rows.append({"reason": "this run", "from": run.end * 0.995, "end": run.end * 1.005, "factor": 1.0, "is": "level"})
    tones = {"better": charts.BLUE, "worse": charts.ORANGE, "level": charts.INK}
    return charts.spans(pd.DataFrame(rows), Axis("from", run.what, "seconds"), "reason", colour="is", colours=tones)


def what_if_figures(answer: Answer) -> list[Figure]:
    """A migration of runs for each normalisation, and predicted beside measured change; the latter says why if not."""
    name = str(answer.scenario)
    moves = [
        migration_figure(MigrationMap(one.runs.counts, f"{name} ({kind})"), f"migration-{kind}")
        for kind, one in answer.outcome.moves.items()
    ]
    return [*moves, pairs_figure(None if answer.measured is None else pair_changes(answer.measured, name))]


def pair_changes(measured: Measured, scenario: str) -> PairChanges:
    """The factors of each matched pair, with the share of right directions and its interval."""
    found = measured.comparison
    right, interval = found.score.directions, None
    if right is not None and right.low is not None and right.high is not None:
        interval = (right.low, right.high)
    told, real = np.exp(found.predicted), np.exp(found.measured)
    return PairChanges(told, real, scenario, right.share if right else None, interval, right.n if right else None)


def migration_figure(migration: MigrationMap, name: str = "migration") -> Figure:
    """Who moves where."""
    words = (
        "Percent of those predicted to have the shape of the row that would have that of the column after the "
        "change. Lower numbers are steadier shapes. What the change does to other jobs, and so to the load, is not "
        "in it."
    )
    if migration.largest:
        before, after = migration.largest
        words = (
            f"Most often {before} → {after}: {share(float(migration.shares[before, after]))} of shape {before}. {words}"
        )
    names = [f"shape {at}" for at in range(len(migration.counts))]
    draw = None
    if migration.n:
        cells = charts.cells_of(migration.counts, names, names, of="before", to="after", what=migration.what)
        draw = partial(charts.heatmap, cells, Axis("before", "before", "name"), Axis("after", "after", "name"), "share")
    nothing = "No run has a predicted shape both before and after the change."
    return figure(name, f"What would change: {migration.scenario}", words, migration.evidence, draw, nothing)


def pairs_figure(pairs: PairChanges | None, name: str = "pairs") -> Figure:
    """Prediction beside measurement."""
    nothing = "No run was done again with this change, so nothing was measured."
    if pairs is None or not pairs.n:
        return figure(name, "Predicted and measured change", "", "", None, nothing)
    right = "not known" if pairs.right_share is None else share(pairs.right_share)
    if pairs.right_interval is not None:
        right += f" ({share(pairs.right_interval[0])} to {share(pairs.right_interval[1])})"
    words = (
        "Each dot is a run that was done twice, as it was and with the change: by how much its runtime was predicted "
        "to change, and by how much it did. On the dashed line the prediction was right. Beneath: median and middle "
        f"half of pairs predicted alike. The direction was right for {right}."
    )
    return Figure(name, f"Predicted and measured: {pairs.scenario}", words, pairs.evidence, partial(_draw_pairs, pairs))


def _draw_pairs(pairs: PairChanges) -> charts.Chart:
    rows = charts.sampled(pd.DataFrame({"predicted": pairs.predicted, "measured": pairs.measured}), MOST_DOTS)
    dots = charts.scatter(rows, Axis("predicted", "predicted: runtime after over before", "log"),
                          Axis("measured", "measured", "log"), lines={"it was right": 1.0})  # fmt: skip
    bins = pd.DataFrame(pairs.bins, columns=["predicted", "low", "measured", "high"])
    if bins.empty:
        return dots
    alike = bins.assign(pairs=[f"predicted {ratio(value)} ×" for value in bins["predicted"]])
    return charts.beneath(
        dots, charts.intervals(alike, Axis("measured", "measured, median and middle half", "log"), "pairs")
    )
