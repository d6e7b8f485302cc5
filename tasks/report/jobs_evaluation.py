"""How well the runtimes of a log are predicted: predictors side by side, calibration, and one job followed (Zhu et al.,
Figures 7 and 8)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.distribution import Empirical
from tasks.jobs.normalisation import Counts, Floats
from tasks.jobs.params import Kind
from tasks.jobs.scores import GroupDistance, Pooled
from tasks.quantities import duration, number, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.jobs_shapes import METHOD, cov_figure, find_cov_faults, shapes_figure
from tasks.report.result import Column, Fact, Figure, Result, Section, Table, count, figure, numbers, one_line

if TYPE_CHECKING:
    from tasks.jobs.evaluate import Evaluation
    from tasks.jobs.predict.labels import LabelEvaluation

PREDICTORS = {
    "model": "the model",
    "history": "the job's own earlier runs",
    "user_request": "its user's runs with the same request",
    "lightgbm": "boosted quantiles",
    "global": "one shape for all jobs",
    "paper_ratio": "the paper's: most probable shape × median",
    "paper_delta": "the paper's: most probable shape + median",
}
SHOWN = ("model", "history", "lightgbm", "global")
MEASURES = ("crps", "coverage90", "width90_s", "ks_group", "ks_pooled")
NO_TEST = "No run of the test period has a prediction to compare it with."
Z = 1.645  # of a 90 % band around what chance alone would give
COVERED = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
N_BINS, N_SHOWN, MOST_DOTS, MOST_PAST, ENOUGH_RUNS = 20, 15, 250, 150, 20
SIDE_BY_SIDE = (
    "CRPS: mean distance of the predicted distribution from the runtime that came; of a sure prediction it is the "
    "absolute error.  KS: distance of "
    "distributions, by job over jobs with enough such runs. 90 % intervals should hold 90 % of the runs."
)


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
COLUMNS = ["submitted_at", "runtime_s", "p05_s", "p25_s", "p50_s", "p75_s", "p95_s"]


@dataclass(frozen=True)
class Fan:
    """One job. runs: COLUMNS, in order of submission, runtime_s missing for a run that is yet to end.

    past: submitted_at, runtime_s of runs before the first prediction; may be empty."""

    group_key: str
    runs: pd.DataFrame
    past: pd.DataFrame

    @property
    def is_outside(self) -> NDArray[np.bool_]:
        """Runs outside their 90 % interval: (n_runs,)."""
        actual = self.runs["runtime_s"].to_numpy(dtype=float)
        return np.asarray((actual < self.runs["p05_s"].to_numpy()) | (actual > self.runs["p95_s"].to_numpy()))

    @property
    def n_ended(self) -> int:
        """Runs with a runtime."""
        return int(self.runs["runtime_s"].notna().sum())

    @property
    def inside_share(self) -> float | None:
        """Share of the ended runs inside their 90 % interval; None without any."""
        return 1 - float(self.is_outside.sum()) / self.n_ended if self.n_ended else None

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        before = f", {len(self.past):,} before them" if len(self.past) else ""
        held = "" if self.inside_share is None else f"; the 90 % interval held {share(self.inside_share)}"
        return f"n = {self.n_ended:,} predicted runs of one job{before}{held}"


def fan_of(group_key: str, runs: pd.DataFrame, predicted: Empirical, past: pd.DataFrame) -> Fan:
    """The fan of one job from what was predicted for its runs.

    runs: submitted_at, runtime_s (missing for a run that is yet to end), row i that of instance i of `predicted`;
    past: submitted_at, runtime_s of earlier runs. Raises ValueError if the numbers of runs and instances differ."""
    if len(runs) != predicted.n:
        raise ValueError(f"runs: {len(runs)}; expected {predicted.n}, one for each predicted instance")
    shape = (predicted.n, len(LEVELS))
    quantiles = predicted.quantile(np.broadcast_to(LEVELS, shape)) if len(runs) else np.zeros(shape)
    frame = runs[["submitted_at", "runtime_s"]].reset_index(drop=True)
    frame[COLUMNS[2:]] = quantiles
    in_order = frame.sort_values("submitted_at", kind="stable", ignore_index=True)
    return Fan(group_key, in_order, past.sort_values("submitted_at", kind="stable", ignore_index=True))


def evaluation_result(found: "Evaluation", name: str) -> Result:
    """What an evaluation measured, the answer first. name: of the log."""
    from tasks.jobs.predict.runtime_evaluation import table_of

    figures = found.figures
    table = table_of(found.runtimes).set_index("predictor")
    rows: list[dict[str, Any]] = [
        {"name": words, **{str(column): value for column, value in table.loc[key].items()}}
        for key, words in PREDICTORS.items()
        if key in table.index
    ]
    return Result(
        f"How well runtimes are predicted: {name}",
        predictor_words({row["name"]: row["crps"] for row in rows}),
        f"{figures['n']:,} runs of {figures['groups']:,} jobs. The first {figures['split.n.D1']:,} are history, the "
        f"next {figures['split.n.D2']:,} training, and the last {figures['split.n.D3']:,} are predicted, each from "
        "what was known when it was submitted.",
        made_of=f"log with SHA-256 {figures['data_sha256']}, seed {figures['seed']}",
        again="whorl jobs evaluate PATH --out DIR",
        facts=(Fact("jobs.evaluation.n", figures["predict.n"], "predicted runs", count),),
        sections=(
            Section(
                "Predictors side by side",
                SIDE_BY_SIDE,
                f"n = {figures['predict.n']:,} runs",
                tables=(predictors_table(rows),),
                is_open=True,
            ),
            *_sections(found),
        ),
        method=METHOD,
    )


def predictor_words(crps: Mapping[str, float | None]) -> str:
    """Whether the model is ahead of everything beside it, in a sentence. crps: by predictor."""
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


def predictors_table(rows: list[dict[str, Any]]) -> Table:
    """A row a predictor: name, and each of MEASURES."""
    columns = (
        Column("name", "predicted by"),
        *numbers(
            ("crps", "CRPS", duration),
            ("coverage90", "in the 90 % interval", share),
        ),
        *numbers(("width90_s", "its mean width", duration), ("ks_group", "KS by job", number)),
        *numbers(("ks_pooled", "KS of all runs", number)),
    )
    return Table("", "", columns, rows)


def predictor_rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a predictor that was measured, from keys predict.<measure>.<predictor>; missing measures are None."""
    return [
        {"name": words, **{measure: figures.get(f"predict.{measure}.{key}") for measure in MEASURES}}
        for key, words in PREDICTORS.items()
        if f"predict.crps.{key}" in figures
    ]


def label_rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a normalisation of which shapes were predicted: how often the label is right, beside its references."""
    measures = ("accuracy", "history_baseline", "ceiling", "split_half")
    rows = [
        {"kind": kind, **{name: figures.get(f"label.{name}.{kind}") for name in ("n", *measures)}}
        for kind in ("ratio", "delta")
    ]
    return [row for row in rows if row["accuracy"] is not None]


def labels_table(rows: list[dict[str, Any]]) -> Table:
    """How often the shape of a job is predicted right, beside its references."""
    columns = (
        Column("kind", "shapes"),
        *numbers(
            ("n", "runs", count), ("accuracy", "the model", share), ("history_baseline", "the job's history", share)
        ),
        *numbers(("ceiling", "who knows the shape", share), ("split_half", "two halves agree", share)),
    )
    words = (
        "The share of the runs whose job's shape was predicted right, beside the shape that the job had before, and "
        "how often one who knew the shape would be right: few runs make a noisy label."
    )
    return Table("Right shapes", words, columns, rows)


def _sections(found: "Evaluation") -> Iterator[Section]:
    runtimes = found.runtimes
    fan = _largest(found)
    parts = [
        fan_figure(fan) if fan else figure("fan", "What was predicted, and what came", "", "", None, NO_TEST),
        calibration_figure(np.asarray(runtimes.scored["model"].pit)),
        quantiles_figure({name: runtimes.scored[name].pooled for name in SHOWN}),
        distances_figure({name: runtimes.scored[name].ks_group for name in SHOWN}),
        *(
            shapes_figure(shapes, found.prepared.tables.get(kind), kind)
            for kind, shapes in found.prepared.shapes.items()
        ),
    ]
    for kind, labels in found.labels.items():
        parts += _label_figures(kind, labels)
    parts.append(cov_figure(find_cov_faults(found.prepared.runs)))
    for at, one in enumerate(parts):
        yield Section(one.title, figures=(one,), is_open=at < 2)


def _label_figures(kind: Kind, labels: "LabelEvaluation") -> Iterator[Figure]:
    from tasks.jobs.predict.features import feature_of

    yield accuracy_figure(labels.occurrences, kind)
    yield confusion_figure(labels.report.confusion, kind)
    if kind == "ratio" and len(labels.importances):
        words = [feature_of(name).words for name in labels.importances["feature"]]
        yield importance_figure(labels.importances.assign(words=words), labels.report.n)


def _largest(found: "Evaluation") -> Fan | None:
    """The job that took most time in the test period, of those with enough runs there."""
    runs, rows = found.prepared.runs, found.runtimes.rows
    tested = runs.iloc[rows]
    sizes, sums = tested.groupby("group_key").size(), tested.groupby("group_key")["runtime_s"].sum()
    enough = sums[sizes >= min(ENOUGH_RUNS, int(sizes.max()))]
    if enough.empty:
        return None
    job = str(enough.idxmax())
    at = np.flatnonzero((tested["group_key"] == job).to_numpy())
    before: pd.DataFrame = runs[(runs["group_key"] == job) & (runs["submitted_at"] < tested["submitted_at"].min())]
    return fan_of(job, tested.iloc[at], found.runtimes.predicted.rows(at), before[["submitted_at", "runtime_s"]])


def fan_figure(fan: Fan, name: str = "fan") -> Figure:
    """What was predicted for each run of one job, and what came."""
    words = (
        "Before each run its runtime was predicted from what was known when it was submitted: light, the interval that "
        "should hold 90 % of the runs, darker 50 %, and the median. Points are the runs as they came, orange outside "
        "the 90 % interval."
    )
    title, evidence = "What was predicted, and what came", f"{one_line(fan.group_key, 60)}; {fan.evidence}"
    return figure(name, title, words, evidence, partial(_draw_fan, fan) if len(fan.runs) else None, NO_TEST)


def _draw_fan(fan: Fan) -> charts.Chart:
    past = fan.past[fan.past["runtime_s"] > 0].tail(MOST_PAST)
    rows = pd.concat([past.assign(is_outside=False), fan.runs.assign(is_outside=fan.is_outside)], ignore_index=True)
    rows[COLUMNS[2:]] = rows[COLUMNS[2:]].clip(lower=1e-3)
    return charts.fan(rows)


def calibration_figure(pit: Floats) -> Figure:
    """Whether intervals hold what they say. pit: (n,) probability that was predicted to lie below each run."""
    title, n = "Can the probabilities be believed", len(pit)
    if not n:
        return figure("calibration", title, "", "", None, NO_TEST)
    words = (
        "First: where in its predicted distribution each run fell; if the probabilities are right, every bar is "
        "alike. High ends mean that the predictions were too sure. Second: how many runs lay inside the interval "
        f"that should hold so many. The 90 % interval held {share(covered(pit, 0.9))}."
    )
    chance = Z * float(np.sqrt(1 / N_BINS * (1 - 1 / N_BINS) / n))
    evidence = (
        f"n = {n:,} runs; by chance alone bars differ from {share(1 / N_BINS)} by up to {share(chance)} in nine of ten"
    )
    return Figure("calibration", title, words, evidence, partial(_draw_calibration, pit))


def covered(pit: Floats, level: float) -> float:
    """Share of the runs inside their central interval of this level."""
    return float((np.abs(np.asarray(pit) - 0.5) <= level / 2).mean())


def _draw_calibration(pit: Floats) -> charts.Chart:
    edges = np.linspace(0, 1, N_BINS + 1)
    n = np.histogram(pit, edges)[0]
    bars = pd.DataFrame({"low": edges[:-1], "end": edges[1:], "share": n / len(pit), "expected": 1 / N_BINS})
    held = pd.DataFrame({"said": COVERED, "held": [covered(pit, level) for level in COVERED], "line": "the model"})
    right = pd.DataFrame({"said": COVERED, "held": COVERED, "line": "as it should be"})
    return charts.beneath(
        charts.histogram(bars, Axis("low", "probability predicted below the run", "share"),
                         Axis("share", "share of runs", "share"), overlay="expected", height=140),
        charts.lines(pd.concat([held, right]), Axis("said", "the interval should hold", "share"),
                     Axis("held", "it held", "share"), series="line", height=200),
    )  # fmt: skip


def quantiles_figure(pooled: Mapping[str, Pooled]) -> Figure:
    """Figure 8: percentiles of all predicted runtimes against those of all actual ones."""
    shown = {name: one for name, one in pooled.items() if one.n and (one.actual_s > 0).any()}
    errors = ", ".join(f"{PREDICTORS[name]} {duration(one.mae_s)}" for name, one in shown.items())
    words = (
        "Percentiles of all predicted runtimes together against those of all actual ones: on the line they agree. "
        f"Mean miss over the percentiles: {errors}. This comparison ignores which job a run belongs to, and so rewards "
        "predicting the same for all; the next one does not."
    )
    n = max((one.n for one in shown.values()), default=0)
    title, evidence = (
        "Predicted and actual percentiles of all runs",
        f"n = {n:,} runs, percentiles 1 to 99 of all together",
    )
    return figure("quantiles", title, words, evidence, partial(_draw_quantiles, shown) if shown else None, NO_TEST)


def _draw_quantiles(shown: Mapping[str, Pooled]) -> charts.Chart:
    rows = pd.concat(
        [
            pd.DataFrame({"actual_s": one.actual_s, "predicted_s": one.predicted_s, "predictor": PREDICTORS[name]})
            for name, one in shown.items()
        ]
    )
    rows = rows[(rows[["actual_s", "predicted_s"]] > 0).all(axis=1)]
    tones = dict(zip((PREDICTORS[name] for name in shown), charts.SERIES, strict=False))
    return charts.scatter(rows, Axis("actual_s", "actual percentile", "seconds"),
                          Axis("predicted_s", "predicted percentile", "seconds"), colour="predictor", colours=tones,
                          lines={"they agree": 1.0})  # fmt: skip


def distances_figure(distances: Mapping[str, GroupDistance]) -> Figure:
    """How far what was predicted for a job lies from how its runs were distributed."""
    shown = {name: one for name, one in distances.items() if one.n_groups}
    words = (
        "How far what was predicted for a job lies from how its runs were distributed: the largest difference of the "
        "two cumulative distributions, 0 if they are the same. One dot is one job, the tick is the mean. Even a "
        "perfect prediction is not at 0, since a job has few runs."
    )
    title, nothing = "Distance of each job's runs from their prediction", "No job has enough runs in the test period."
    if not shown:
        return figure("distances", title, words, "", None, nothing)
    one = max(shown.values(), key=lambda found: found.n_groups)
    small = f"; {one.n_small:,} jobs with too few runs left out" if one.n_small else ""
    rows = pd.concat(
        [
            charts.sampled(
                pd.DataFrame({"distance": np.sort(np.asarray(found.by_group, dtype=float))}), MOST_DOTS
            ).assign(predictor=PREDICTORS[name])
            for name, found in shown.items()
        ]
    )
    draw = partial(charts.dots, rows, Axis("distance", "KS distance", "share"), "predictor")
    return Figure("distances", title, words, f"n = {one.n_groups:,} jobs, {one.n_runs:,} runs{small}", draw)


def accuracy_figure(bands: pd.DataFrame, kind: str) -> Figure:
    """Figure 7(b): accuracy of labels by the number of earlier runs. bands: slice, n_runs, model, ceiling,
    history_baseline."""
    words = (
        "Share of right labels by how often the job had run before. The ceiling is what somebody who knows the job's "
        "distribution would get, since a label from few runs is partly chance; history gives each job the label of "
        "its past, and is what must be beaten."
    )
    names = {"model": "the model", "ceiling": "ceiling", "history_baseline": "the job's history"}
    rows = pd.concat(
        [
            pd.DataFrame({"earlier runs": bands["slice"].astype(str) + " · n = " + bands["n_runs"].map("{:,}".format),
                          "share": bands[key].astype(float), "label by": name})
            for key, name in names.items()
        ]
    ).dropna()  # fmt: skip
    rows = rows.assign(low=rows["share"], high=rows["share"])
    tones = dict(zip(names.values(), charts.SERIES, strict=False))
    draw = partial(
        charts.intervals, rows, Axis("share", "right labels", "share"), "earlier runs", tone="label by", colours=tones
    )
    title, evidence = f"Right labels by number of earlier runs ({kind})", f"n = {int(bands['n_runs'].sum()):,} runs"
    return figure(f"accuracy-{kind}", title, words, evidence, draw if len(rows) else None, NO_TEST)


def confusion_figure(counts: Counts, kind: str) -> Figure:
    """Figure 7(a): predicted against actual shapes. counts: (k, k), rows the actual shape."""
    words = (
        "Of the runs whose job had the shape of the row, the percent that were predicted to have that of the column; "
        "the diagonal is right. Shapes next to one another are alike, so misses beside it cost least."
    )
    n = int(np.sum(counts))
    names = [f"shape {at}" for at in range(len(counts))]
    cells = charts.cells_of(counts, names, names, of="actual", to="predicted")
    draw = partial(
        charts.heatmap,
        cells,
        Axis("actual", "actual shape", "name"),
        Axis("predicted", "predicted shape", "name"),
        "share",
    )
    title = f"Predicted and actual shape ({kind})"
    evidence = f"n = {n:,}, accuracy {share(float(np.trace(counts)) / n if n else None)}; percent of the actual shape"
    return figure(f"confusion-{kind}", title, words, evidence, draw if n else None, NO_TEST)


def importance_figure(table: pd.DataFrame, n_rows: int) -> Figure:
    """What the model looks at. table: words, importance."""
    words = (
        "How much each feature contributes to the decisions of the model over all training runs. These are reasons "
        "of the prediction, which need not be causes of the runtime."
    )
    values = table.set_index("words")["importance"].clip(lower=0).astype(float)
    total = float(values.sum())
    shares = (values / total if total > 0 else values).sort_values(ascending=False, kind="stable").head(N_SHOWN)
    evidence = f"n = {n_rows:,} runs; {len(shares)} of {len(table)} features hold {share(float(shares.sum()))}"
    rows = shares[shares > 0].rename("share").rename_axis("feature").reset_index()
    draw = partial(charts.bars, rows, Axis("share", "share of all gain", "share"), "feature")
    nothing = "The model uses no feature: every run is predicted alike."
    return figure("importance", "What the prediction looks at", words, evidence, draw if len(rows) else None, nothing)
