"""Why runs are predicted as they are, and what a change would do, as figures: SHAP values of shapes and of one run
(Zhu et al., Figure 9), moves between shapes, and prediction beside measurement (section 7)."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tasks.jobs.control.answering import ChangeAnswer
from tasks.jobs.control.pairs import Comparison
from tasks.jobs.explain.reasons import RunReasons, words_of
from tasks.jobs.explain.shape_reasons import Reasons, ShapeReasons, ends_of
from tasks.jobs.normalisation import Counts
from tasks.quantities import ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.jobs_variation import NOT_CAUSES
from tasks.report.result import Figure, plot

NO_FEATURE = "The model uses no feature: every run is predicted alike."
MOST_SWARM, MOST_DOTS = 250, 400  # marks of a feature, of pairs
N_FEATURES, N_REASONS = 10, 8
THIRDS = {"lowest third": charts.BLUE, "highest third": charts.ORANGE}
NO_CHANGE = 0.005  # a factor within half a percent of 1 is none
LEVEL = 0.005  # half the width of a mark, as a share
SWARM_WORDS = (
    "Each dot is a run: how much the feature added to, or took from, the log-odds of {towards} (SHAP values). Orange: "
    f"the feature is high, blue: low. {NOT_CAUSES}"
)
TWO_WORDS = (
    "Mean addition to the log-odds of one shape over the other, where the feature is in its lowest third (blue) "
    f"and in its highest (orange). The further apart, the more it tells {{one}} and {{other}} apart. {NOT_CAUSES}"
)
RUN_WORDS = (
    "From what is usual to the prediction for this run: each bar multiplies the expected runtime in seconds by its "
    f"factor, orange for the worse, blue for the better. {NOT_CAUSES}"
)
MIGRATION_WORDS = (
    "Percent of those predicted to have the shape of the row that would have that of the column after the "
    "change. Lower numbers are steadier shapes. What the change does to other jobs, and so to the load, is not in it."
)
PAIRS_WORDS = (
    "Each dot is a run that was done twice, as it was and with the change: by how much its runtime was predicted "
    "to change, and by how much it did. On the dashed line the prediction was right. The direction was "
    "right for {right}."
)


def shape_reason_figures(reasons: ShapeReasons, numbers: Sequence[int]) -> list[Figure]:
    """A beeswarm for each of the shapes, and of two what tells them apart.

    Raises BadSetting for a shape that the model does not know, or the same one twice."""
    kind, shapes = reasons.kind, [f"shape {number}" for number in numbers]
    figures = [
        swarm_figure(reasons.swarm(number), shape, f"beeswarm-{kind}-{number}")
        for number, shape in zip(numbers, shapes, strict=True)
    ]
    if len(numbers) == 2:
        (first, other), name = numbers, "-".join(["two-shapes", kind, *map(str, numbers)])
        figures.append(two_shapes_figure(reasons.two(first, other), shapes[0], shapes[1], name))
    return figures


def swarm_figure(reasons: Reasons, of: str, name: str) -> Figure:
    """What speaks for one shape: the features by their mean size, those that add nothing left out."""
    n = len(reasons.added)
    sizes = np.abs(reasons.added).mean(axis=0) if n else np.zeros(len(reasons.words))
    order = [at for at in np.argsort(-sizes, kind="stable")[:N_FEATURES] if sizes[at] > 0]
    rows = [
        charts.sampled(
            pd.DataFrame({"feature": str(reasons.words[at]), "added": reasons.added[:, at]})
            .assign(level=pd.Series(reasons.of_feature[:, at]).rank(pct=True))
            .sort_values("added"),
            MOST_SWARM,
        )
        for at in order
    ]
    drawn = f", {MOST_SWARM} of them drawn" if n > MOST_SWARM else ""
    evidence = f"n = {n:,} runs; {len(order)} of {len(reasons.words)} features{drawn}"
    return plot(name, f"What speaks for {of}", SWARM_WORDS.format(towards=of), evidence, charts.swarm,
                pd.concat(rows) if rows else None, Axis("added", f"added to the log-odds of {of}"), "feature",
                "level", nothing=NO_FEATURE)  # fmt: skip


def two_shapes_figure(reasons: Reasons, of: str, other: str, name: str) -> Figure:
    """What tells two shapes apart: the features whose ends lie furthest apart."""
    ends = ends_of(reasons)
    gaps = np.nan_to_num(np.abs(ends[:, 1] - ends[:, 0]))
    rows = [
        {"feature": str(reasons.words[at]), "added": ends[at, side], "low": ends[at].min(), "high": ends[at].max()}
        | {"third": third}
        for at in np.argsort(-gaps, kind="stable")[:N_FEATURES]
        if gaps[at] > 0
        for side, third in enumerate(THIRDS)
    ]
    evidence = f"n = {len(reasons.added):,} runs; means over the lowest and the highest third of each feature"
    return plot(
        name, f"What tells {of} and {other} apart", TWO_WORDS.format(one=of, other=other), evidence, charts.intervals,
        pd.DataFrame(rows), Axis("added", f"← {other} · log-odds of {of} over {other} · {of} →"), "feature",
        tone="third", colours=THIRDS, nothing=NO_FEATURE,
    )  # fmt: skip


def run_reason_figure(run_reasons: RunReasons, name: str) -> Figure:
    """From the usual time of its job to what was expected of one run, the largest reasons first; what they leave is
    all else, and what changes nothing is left out."""
    factors = {
        f"{reason.family}: {words_of(reason.feature)}": math.exp(reason.contribution)
        for reason in run_reasons.runtime.reasons
    }
    start_s, begin = run_reasons.usual_s, "usual"
    if not start_s > 0:
        start_s, begin = run_reasons.expected_s / math.prod(factors.values()), "all runs"
    steps = leading_factors(factors, run_reasons.expected_s / start_s)
    places = start_s * np.cumprod([1.0, *steps.values()])
    rows = [
        {"reason": f"{words} ({ratio(factor)} ×)", "from": before, "end": after, "factor": factor}
        | {"is": "worse" if factor > 1 else "better"}
        for (words, factor), before, after in zip(steps.items(), places[:-1], places[1:], strict=True)
    ]
    first, last = (
        {"reason": words, "from": at * (1 - LEVEL), "end": at * (1 + LEVEL), "factor": 1.0, "is": "level"}
        for words, at in ((begin, start_s), ("this run", run_reasons.expected_s))
    )
    n = f"{len(steps)} step{'' if len(steps) == 1 else 's'}"
    return plot(
        name, "Why this run is predicted so", RUN_WORDS,
        f"one run, against {run_reasons.n_usual:,} others; {n} from {begin} to it", charts.spans,
        pd.DataFrame([first, *rows, last]) if rows else None, Axis("from", "expected runtime in seconds", "seconds"),
        "reason", colour="is", colours={"better": charts.BLUE, "worse": charts.ORANGE, "level": charts.INK},
        nothing="Nothing about this run differs from what is usual.",
    )  # fmt: skip


def leading_factors(factors: dict[str, float], total: float) -> dict[str, float]:
    """The largest factors by name, and what they leave of their product as all else."""
    ranked = sorted(factors.items(), key=lambda one: -abs(math.log(one[1])))[:N_REASONS]
    kept = {words: factor for words, factor in ranked if abs(math.log(factor)) > NO_CHANGE}
    rest = total / math.prod(kept.values())
    return kept | ({"all else": rest} if abs(math.log(rest)) > NO_CHANGE else {})


def what_if_figures(answer: ChangeAnswer) -> list[Figure]:
    """A migration of runs for each normalisation, and predicted beside measured change; the latter says why if not."""
    name = str(answer.scenario)
    moves = answer.outcome.moves.items()
    figures = [migration_figure(moved.runs.counts, f"{name} ({kind})", f"migration-{kind}") for kind, moved in moves]
    return [*figures, pairs_figure(answer.measured, name)]


def migration_figure(counts: Counts, scenario: str, name: str = "migration") -> Figure:
    """Who moves where. counts: (k, k) runs, rows the shape before, columns after the change."""
    n = int(counts.sum())
    others = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    words = MIGRATION_WORDS
    if others.any():
        before, after = np.unravel_index(int(others.argmax()), others.shape)
        part = share(float(charts.row_shares(counts)[before, after]))
        words = f"Most often {before} → {after}: {part} of shape {before}. {words}"
    names = [f"shape {at}" for at in range(len(counts))]
    evidence = (
        f"n = {n:,} runs, {share(1 - float(np.trace(counts)) / n if n else None)} moved; percent of the shape before"
    )
    cells = charts.cells_of(counts, names, names, of="before", to="after", what="runs") if n else None
    axes = Axis("before", "before", "name"), Axis("after", "after", "name")
    return plot(name, f"What would change: {scenario}", words, evidence, charts.heatmap, cells, *axes, "share",
                nothing="No run has a predicted shape both before and after the change.")  # fmt: skip


def pairs_figure(measured: Comparison | None, scenario: str) -> Figure:
    """Prediction beside measurement: by which factor the runtime of each matched pair changed."""
    nothing = "No run was done again with this change, so nothing was measured."
    if measured is None or not len(measured.measured):
        return Figure("pairs", "Predicted and measured change", nothing, "n = 0")
    rows = pd.DataFrame({"predicted": np.exp(measured.predicted), "measured": np.exp(measured.measured)})
    right, n = "not known", len(rows)
    if (directions := measured.score.directions) is not None:
        right = share(directions.share)
        if directions.low is not None and directions.high is not None:
            right += f" ({share(directions.low)} to {share(directions.high)})"
    drawn = f", {MOST_DOTS:,} of them drawn" if n > MOST_DOTS else ""
    axes = Axis("predicted", "predicted: runtime after over before", "log"), Axis("measured", "measured", "log")
    return plot("pairs", f"Predicted and measured: {scenario}", PAIRS_WORDS.format(right=right),
                f"n = {n:,} matched pairs{drawn}", charts.scatter, charts.sampled(rows, MOST_DOTS), *axes,
                {"it was right": 1.0})  # fmt: skip
