"""How well the runtimes of a log are predicted: predictors side by side, calibration, and one job followed (Zhu et al.,
Figure 7)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tasks.jobs.distribution import Empirical
from tasks.jobs.normalisation import Floats
from tasks.quantities import duration, number, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.evaluation import Given
from tasks.report.jobs_variation import METHOD, shapes_figure
from tasks.report.result import Fact, Figure, Result, Section, Table, count, one_line, plot, table

if TYPE_CHECKING:
    from tasks.jobs.evaluate import Evaluation

LEFT_OUT = "own.left_out."
PREDICTORS = {
    "model": "the model",
    "history": "the job's own earlier runs",
    "user_request": "its user's runs with the same request",
    "lightgbm": "boosted quantiles",
    "stacked": "these and the job's runs, by its number of runs",
    "global": "one shape for all jobs",
    "paper_ratio": "the paper's: most probable shape × median",
    "paper_delta": "the paper's: most probable shape + median",
}
MEASURES = {
    "crps": ("CRPS", duration),
    "coverage90": ("in the 90 % interval", share),
    "width90_s": ("its mean width", duration),
    "ks_group": ("KS by job", number),
    "ks_pooled": ("KS of all runs", number),
}
LABELS = {
    "accuracy": "the model",
    "history_baseline": "the job's history",
    "ceiling": "if the shape were known",
}
NO_TEST = "No run of the test period has a prediction to compare it with."
Z = 1.645  # of a 90 % band around what chance alone would give
LEAST_S = 1e-3  # of an interval on a logarithmic axis
N_BINS, MOST_PAST, ENOUGH_RUNS = 20, 150, 20
SIDE_BY_SIDE = (
    "CRPS: mean distance of the predicted distribution from the runtime that came; of a sure prediction it is the "
    "absolute error. KS: distance of "
    "distributions, by job over jobs with enough such runs. 90 % intervals should hold 90 % of the runs."
)
LABELS_WORDS = (
    "The share of the runs whose job's shape was predicted right, beside the shape that the job had before, and "
    "how often one who knew the shape would be right: few runs make a noisy label."
)
FAN_WORDS = (
    "Before each run its runtime was predicted from what was known when it was submitted: light, the interval that "
    "should hold 90 % of the runs, darker 50 %, and the median. Points are the runs as they came, orange outside "
    "the 90 % interval."
)
CALIBRATION_WORDS = (
    "Where in its predicted distribution each run fell; if the probabilities are right, every bar is alike. High ends "
    "mean that the predictions were too sure."
)
INSIDE, OUTSIDE = "inside it", "outside the 90 % interval"
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
COLUMNS = ["submitted_at", "runtime_s", "p05_s", "p25_s", "p50_s", "p75_s", "p95_s"]


def evaluation_result(evaluation: "Evaluation", name: str) -> Result:
    """What an evaluation measured, the answer first. name: of the log."""
    figures = evaluation.figures
    side_by_side = Section(
        "Predictors side by side", SIDE_BY_SIDE, f"n = {figures['predict.n']:,} runs",
        tables=(predictors_table(figures), labels_table(figures)), is_open=True,
    )  # fmt: skip
    return Result(
        f"How well runtimes are predicted: {name}",
        predictor_words(figures),
        f"{figures['n']:,} runs of {figures['groups']:,} jobs. The first {figures['split.n.D1']:,} are history, the "
        f"next {figures['split.n.D2']:,} training, and the last {figures['split.n.D3']:,} are predicted, each from "
        "what was known when it was submitted.",
        made_of=f"seed {figures['seed']}, data {str(figures['data_sha256'])[:12]}",
        again="whorl jobs evaluate PATH --out DIR",
        facts=(Fact("jobs.evaluation.n", figures["predict.n"], "predicted runs", count),),
        sections=(side_by_side, *_sections(evaluation)),
        method=METHOD,
    )


def predictor_words(figures: Given) -> str:
    """Whether the model is ahead of everything beside it, in a sentence."""
    crps = {row["name"]: row["crps"] for row in predictor_rows(figures)}
    known = {name: float(value) for name, value in crps.items() if value is not None and value == value}
    ours = known.pop(PREDICTORS["model"], None)
    if ours is None or not known:
        return "Nothing beside the model was measured."
    best = min(known, key=lambda name: known[name])
    gap = 1 - ours / known[best] if known[best] else 0.0
    way = f"{share(gap)} less than" if gap > 0 else f"{share(-gap)} more than" if gap < 0 else "as much as"
    theirs = duration(known[best])
    return (
        f"The model misses runtimes by {duration(ours)} on average (CRPS), {way} the best beside it, {best} ({theirs})."
    )


def predictors_table(figures: Given) -> Table:
    """A row a predictor that was measured: name, and each of MEASURES."""
    measures = ((key, *measure) for key, measure in MEASURES.items())
    return table(predictor_rows(figures), ("name", "predicted by"), *measures)


def predictor_rows(figures: Given) -> list[dict[str, Any]]:
    """One row a predictor that was measured, from keys predict.<measure>.<predictor>; missing measures are None."""
    return [
        {"name": words, **{measure: figures.get(f"predict.{measure}.{key}") for measure in MEASURES}}
        for key, words in PREDICTORS.items()
        if figures.get(f"predict.crps.{key}") is not None
    ]


def own_facts(figures: Given) -> dict[str, str]:
    """Which columns of one's own table predictions use, and which they do not and why; nothing where there are none."""
    if "own.used" not in figures:
        return {}
    facts = {"own columns": f"predictions use {', '.join(figures['own.used']) or 'none'}"}
    left_out = [key for key in figures if key.startswith(LEFT_OUT)]
    return facts | {f"not {key.removeprefix(LEFT_OUT)}": f"it {figures[key]} (--known-before)" for key in left_out}


def labels_table(figures: Given) -> Table:
    """How often the shape of a job is predicted right, beside its references: a row a normalisation that was."""
    rows = [
        {"kind": kind, **{name: figures.get(f"label.{name}.{kind}") for name in ("n", *LABELS)}}
        for kind in ("ratio", "delta")
        if figures.get(f"label.accuracy.{kind}") is not None
    ]
    shown = ((key, words, share) for key, words in LABELS.items())
    return table(
        rows, ("kind", "shapes"), ("n", "runs", count), *shown, title="Right shapes", words=LABELS_WORDS if rows else ""
    )


def _sections(evaluation: "Evaluation") -> Iterator[Section]:
    parts = [_largest(evaluation), calibration_figure(np.asarray(evaluation.runtimes.scored["model"].pit))]
    parts += [
        shapes_figure(part, evaluation.prepared.tables.get(kind), kind)
        for kind, part in evaluation.prepared.shapes.items()
    ]
    for at, part in enumerate(parts):
        yield Section(part.title, figures=(part,), is_open=at < 2)


def _largest(evaluation: "Evaluation") -> Figure:
    """The fan of the job that took most time in the test period, of those with enough runs there."""
    runs, rows = evaluation.prepared.runs, evaluation.runtimes.rows
    tested = runs.iloc[rows]
    sizes, sums = tested.groupby("group_key").size(), tested.groupby("group_key")["runtime_s"].sum()
    enough = sums[sizes >= min(ENOUGH_RUNS, int(sizes.max()))] if len(sums) else sums
    if enough.empty:
        return fan_figure("", pd.DataFrame(columns=COLUMNS), pd.DataFrame())
    job = str(enough.idxmax())
    at = np.flatnonzero((tested["group_key"] == job).to_numpy())
    before: pd.DataFrame = runs[(runs["group_key"] == job) & (runs["submitted_at"] < tested["submitted_at"].min())]
    fan = fan_rows(tested.iloc[at], evaluation.runtimes.predicted.rows(at))
    return fan_figure(job, fan, before[["submitted_at", "runtime_s"]])


def fan_rows(runs: pd.DataFrame, predicted: Empirical) -> pd.DataFrame:
    """What was predicted for the runs of one job, in order of submission: COLUMNS.

    runs: submitted_at, runtime_s (missing for a run that is yet to end), row i that of instance i of `predicted`."""
    shape = (predicted.n, len(LEVELS))
    frame = runs[["submitted_at", "runtime_s"]].reset_index(drop=True)
    frame[COLUMNS[2:]] = predicted.quantile(np.broadcast_to(LEVELS, shape)) if len(runs) else np.zeros(shape)
    return frame.sort_values("submitted_at", kind="stable", ignore_index=True)


def fan_figure(job: str, fan: pd.DataFrame, past: pd.DataFrame) -> Figure:
    """What was predicted for each run of one job, and what came. fan: of `fan_rows`; past: submitted_at, runtime_s of
    runs before the first prediction; may be empty."""
    outside = (fan["runtime_s"] < fan["p05_s"]) | (fan["runtime_s"] > fan["p95_s"])
    n, before = int(fan["runtime_s"].notna().sum()), f", {len(past):,} before them" if len(past) else ""
    held = f"; the 90 % interval held {share(1 - float(outside.sum()) / n)}" if n else ""
    evidence = f"{one_line(job, 60)}; n = {n:,} predicted runs of one job{before}{held}"
    earlier = past[past["runtime_s"] > 0].sort_values("submitted_at", kind="stable").tail(MOST_PAST) if before else past
    rows = None
    if len(fan):
        seen = fan.assign(**{"is": np.where(outside, OUTSIDE, INSIDE)})
        rows = pd.concat([earlier.assign(**{"is": INSIDE}), seen], ignore_index=True)
        rows[COLUMNS[2:]] = rows[COLUMNS[2:]].clip(lower=LEAST_S)
    return plot("fan", "What was predicted, and what came", FAN_WORDS, evidence, charts.fan, rows,
                {INSIDE: charts.INK, OUTSIDE: charts.ORANGE}, nothing=NO_TEST)  # fmt: skip


def calibration_figure(pit: Floats) -> Figure:
    """Whether intervals hold what they say. pit: (n,) probability that was predicted to lie below each run."""
    title, n = "Can the probabilities be believed", len(pit)
    if not n:
        return Figure("calibration", title, NO_TEST, "n = 0")
    bars = charts.binned(pit, np.linspace(0, 1, N_BINS + 1)).assign(expected=1 / N_BINS)
    chance = Z * float(np.sqrt(1 / N_BINS * (1 - 1 / N_BINS) / n))
    evidence = (
        f"n = {n:,} runs; by chance alone bars differ from {share(1 / N_BINS)} by up to {share(chance)} in nine of ten"
    )
    axes = Axis("low", "probability predicted below the run", "share"), Axis("share", "share of runs", "share")
    return plot(
        "calibration", title, CALIBRATION_WORDS, evidence, charts.histogram, bars, *axes, overlay="expected", height=140
    )
