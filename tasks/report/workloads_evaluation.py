"""How well workloads are told apart, as training and evaluation measured it: known and unknown ones, thresholds on the
distance, and how soon a run is known (Hossain et al., Tables II to IV and their figures)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tasks.quantities import ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.evaluation import Given, Measures, list_table, matrix, missing_lines
from tasks.report.result import Column, Fact, Figure, Result, Section, Table, alone, count, plot, records, table
from tasks.report.workloads_runs import short_number
from tasks.warehouse.connection import Connection
from tasks.workloads.models import by_key

if TYPE_CHECKING:
    from tasks.report.evaluation import Evaluation

METHOD = (
    "Method, tables and figures after Hossain et al., CWD: A Machine Learning based Approach to Detect Unknown Cloud "
    "Workloads, 2022; where they differ, tasks/workloads/README.md says why. A phase is a stretch of samples between "
    "two change points."
)
SLICES = {
    "random": "random runs",
    "by_time": "later runs",
    "by_round": "a round left out",
    "by_input": "another input",
    "by_machine": "another machine",
}
METHODS = {
    "model": "the model: sums of known fingerprints",
    "trees": "boosted trees on phases",
    "ed": "distance of phases (ED)",
    "dtw": "distance of phases (DTW)",
    "nearest": "nearest run, logarithm of means",
    "nnls": "non-negative least squares on means",
    "forest": "random forest, no phases",
}
KNOWN: Measures = {
    "accuracy": ("accuracy", share),
    "precision": ("precision", ratio),
    "recall": ("recall", ratio),
    "macro_f1": ("F1", ratio),
    "confirmed": ("right and confirmed", share),
}
OTHERS: Measures = {
    "unknown.auroc": ("AUROC of unknown against known workloads", ratio),
    "unknown.false_known_at_95": ("unknown runs called known, where 95 % of the known ones are", share),
    "threshold.false_reject": ("own runs that the distance threshold rejects", share),
    "threshold.false_accept": ("runs of other workloads that it accepts", share),
    "held_out.accuracy": ("held-out runs called right by the model", share),
    "held_out.macro_f1": ("macro-F1 of the same", ratio),
    "held_out.false_unknown": ("held-out runs of known workloads that it calls unknown", share),
    "held_out.n": ("held-out runs or windows of known workloads", count),
    "held_out.n_new": ("held-out runs of workloads that it has never seen", count),
    "held_out.n_new_unknown": ("of these called unknown", count),
    "unknown.said_known": ("unknown runs that the model's own limit calls known", share),
    "unknown.known_said_unknown": ("known runs that the model's own limit calls unknown", share),
    "window.accuracy": ("called right from the middle half of a run", share),
}
ONLINE = {"": "first seconds", "whole": "whole runs"}  # what was learned from: as many seconds, or whole runs
RECALL = 0.95  # of known runs, where the line between known and unknown is drawn
N_BINS, VERSION_CHARS = 30, 12
KNOWN_WORDS = (
    "The model learns from some runs and calls the others: means over the splits of each kind. The model, "
    "sums of known fingerprints, is what identifies; boosted trees on phases are the method of the paper. Beside them "
    "stand the runs that are nearest, by several distances, and plain baselines that know no phases. Confirmed: "
    "named rightly, and within the threshold on the distance."
)
NEVER_SEEN = (
    "Workloads that were not learned from, and which known one the trees take their runs for, since trees must "
    "choose. The last column is what the model says that need not choose."
)
SHARED = (
    "The same questions while something else runs: telemetry of two runs added up, and conditions that were "
    "recorded as such. The share stands between the ends of its 95 % interval."
)
DISTANCE_WORDS = (
    "How far fingerprints lie apart: mean and deviation of the distance between runs of a workload, and of its runs to "
    "those of others. The less they overlap, the better a threshold on the distance works; the mean is the radius that "
    "the paper proposes."
)


def evaluation_result(evaluation: "Evaluation", name: str) -> Result:
    """What an evaluation measured, the answer first. name: of the data."""
    figures = evaluation.figures
    sha256 = str(figures.get("data_sha256") or "")[:VERSION_CHARS]
    made_of = f"data {sha256}" if sha256 else f"{name}, seed {figures.get('seed')}"
    best = [(split, method) for split in SLICES for method in METHODS if f"known.accuracy.{split}.{method}" in figures]
    answer = "No split could be made"
    for split, method in sorted(best, key=lambda one: one[1] != "model")[:1]:
        right = share(figures[f"known.accuracy.{split}.{method}"])
        answer = f"{right} of the held-out runs are called right ({SLICES[split]}, {METHODS[method]})"
    if (auroc := figures.get("unknown.auroc")) is not None:
        answer += f"; unknown workloads are told from known ones with an AUROC of {ratio(auroc)}"
    first = ("unknown.auroc", "threshold.false_reject", "threshold.false_accept")
    return Result(
        f"How well workloads are told apart: {name}",
        f"{answer}.",
        f"{figures['n']:,} runs or windows of {figures['classes']:,} workloads, each called from its telemetry by "
        "what was learned from others.",
        made_of=made_of,
        again="whorl workloads evaluate PATH… --out DIR",
        facts=tuple(
            Fact(f"workloads.evaluation.{key}", figures[key], *OTHERS[key])
            for key in first
            if figures.get(key) is not None
        ),
        sections=tuple(_sections(figures, evaluation.tables, f"n = {figures['n']:,} · {made_of}")),
        method=METHOD,
    )


def _sections(figures: Given, tables: Mapping[str, pd.DataFrame], evidence: str) -> Iterator[Section]:
    rows = {name: tables.get(name, pd.DataFrame()) for name in (*TABLES, "confusion", "thresholds")}
    missing = tuple(missing_lines(figures, "known."))
    known, nothing = known_table(figures), "No split could be made."
    yield Section("Known workloads", KNOWN_WORDS, evidence, missing, (known,), nothing=nothing, is_open=True)
    confusion = rows["confusion"]
    if len(confusion):
        confusion = confusion[(confusion["slice"] == figures.get("known.base")) & (confusion["method"] == "model")]
    yield alone(confusion_figure(confusion, "the model"), is_open=True)
    if len(rows["table_iii"]):
        yield Section("What never-seen workloads are taken for", NEVER_SEEN, tables=(_called_table(rows["table_iii"]),))
    yield alone(_open_set_figure(rows["unknown_scores"], figures.get("unknown.auroc")))
    yield alone(_online_figure(figures, rows["online"]))
    if len(rows["table_iv"]):
        distances = (_distances_table(rows["table_iv"]),)
        yield Section("Distances within workloads and to others", DISTANCE_WORDS, tables=distances)
    yield Section("On machines that others use as well", SHARED, tables=(shared_table(rows["shared"]),))
    yield Section("Further figures", tables=(list_table(figures, OTHERS),))


TABLES = ("table_iii", "table_iv", "online", "unknown_scores", "shared")


def known_table(figures: Given) -> Table:
    """Table II: how well known workloads are told apart, by how runs were split and what tells them."""
    rows = {(split, method): (METHODS[method], words) for split, words in SLICES.items() for method in METHODS}
    words = "F1, precision and recall are means over the workloads."
    return matrix(figures, "told by", rows, KNOWN, lambda row, key: f"known.{key}.{'.'.join(row)}", words)


def shared_table(shared: pd.DataFrame) -> Table:
    """What was called right while something else ran. shared: condition, view, method, measure, value, low, high, n."""
    rows = [
        row | {"measure": row["measure"].replace("_", " ")} for row in records(shared) if row["measure"] != "names"
    ]  # names are a number, not a share
    return table(
        rows, ("condition", "condition", "name"), ("view", "counters of", "name"), ("method", "method", "name"),
        ("measure", "measure", "name"), ("value", "share", share), ("low", "from", share), ("high", "to", share),
        ("n", "runs", count),
    )  # fmt: skip


def online_accuracy(figures: Given, method: str = "") -> dict[float, float]:
    """Accuracy by seconds seen, rising. method: keys `online.accuracy.<n>s.<method>`; without one that of the model."""
    start, by_seconds = "online.accuracy.", {}
    for key, value in figures.items():
        after, _, of_method = key.removeprefix(start).partition("s")
        if key.startswith(start) and value is not None and of_method == (f".{method}" if method else ""):
            by_seconds[float(after)] = float(value)
    return dict(sorted(by_seconds.items()))


# The champion if it has figures, else the model that was trained last.
MODEL_OF = """
WITH measured AS (
    SELECT DISTINCT model_id FROM workloads.model_figures WHERE source = $source
    UNION SELECT DISTINCT model_id FROM workloads.confusions WHERE source = $source
),
champion AS (
    SELECT model_id FROM ops.champions WHERE word = 'workloads' AND kind = 'identity' AND source = $source
    ORDER BY decided_at DESC, sequence DESC LIMIT 1
),
final AS (
    SELECT measured.model_id, measured.model_id IN (SELECT model_id FROM champion) AS is_champion, models.trained_at
    FROM measured LEFT JOIN ops.models AS models USING (model_id)
)
SELECT model_id FROM final ORDER BY is_champion DESC, trained_at DESC NULLS LAST, model_id LIMIT 1
"""
MODEL_FIGURES = (
    "SELECT key, value, reason FROM workloads.model_figures WHERE source = $source AND model_id = $model ORDER BY key"
)
CONFUSION = """
    SELECT workload AS actual, identified_as AS predicted, n_runs AS n FROM workloads.confusions
    WHERE source = $source AND model_id = $model ORDER BY ALL
"""
EVALUATION = (
    "SELECT key, value, reason, data_version FROM workloads.evaluation_figures WHERE source = $source ORDER BY key"
)


@dataclass(frozen=True)
class MeasuredModel:
    """model_id: whose figures and confusion (actual, predicted, n) these are, None without any; evaluation: figures of
    the last evaluation, of `evaluated_version` of the data.

    Figures are by key, None with `<key>.reason` beside it where one cannot be had."""

    model_id: str | None
    figures: Given
    confusion: pd.DataFrame
    evaluation: Given
    evaluated_version: str | None


def fetch_measured(connection: Connection, source: str) -> MeasuredModel:
    """What was measured in a source."""
    evaluation = connection.execute(EVALUATION, {"source": source}).df()
    version = str(evaluation["data_version"].iloc[0]) if len(evaluation) else None
    model_row = connection.execute(MODEL_OF, {"source": source}).fetchone()
    values = {"source": source, "model": str(model_row[0]) if model_row else ""}
    figures, confusion = (connection.execute(sql, values).df() for sql in (MODEL_FIGURES, CONFUSION))
    return MeasuredModel(values["model"] or None, by_key(figures), confusion, by_key(evaluation), version)


def confusion_figure(rows: pd.DataFrame, by: str) -> Figure:
    """What was taken for what. rows: actual, predicted (empty: unknown, the last column), n; by: what called them."""
    title, nothing = "What runs were taken for", "No run was held out and called by a model yet."
    if rows.empty:
        return Figure("confusion", title, nothing, "n = 0")
    names = sorted({*rows["actual"], *rows["predicted"]} - {""})
    called = names + (["unknown"] if (rows["predicted"] == "").any() else [])
    pairs = rows.assign(predicted=rows["predicted"].replace("", "unknown"))
    pairs = pairs.pivot_table(index="actual", columns="predicted", values="n", aggfunc="sum", fill_value=0)
    counts = pairs.reindex(index=names, columns=called, fill_value=0).to_numpy(dtype=np.int64)
    shares = np.nan_to_num(charts.row_shares(counts))
    np.fill_diagonal(shares, 0.0)
    worst = "every run was called what it is"
    if shares.any():
        row, column = np.unravel_index(int(shares.argmax()), shares.shape)
        worst = f"worst: {share(float(shares[row, column]))} of the runs of {names[row]} called {called[column]}"
    words = f"Runs that were held out: of those in a row, which percentage was called what the column says; {worst}."
    right = share(float(np.trace(counts)) / int(counts.sum()))
    evidence = f"n = {int(counts.sum()):,} runs called by {by}, {right} right; percent of what ran"
    cells = charts.cells_of(counts, names, called, of="ran", to="called")
    axes = Axis("ran", "what ran", "name"), Axis("called", "what it was called", "name")
    return plot("confusion", title, words, evidence, charts.heatmap, cells, *axes, "share")


def _called_table(rows: pd.DataFrame) -> Table:
    """Table III: of the runs of a workload that was never learned, the share that was called each known one."""
    shares = rows.pivot_table(index="unknown", columns="known", values="share", sort=False).fillna(0.0)
    about = rows.groupby("unknown", sort=False)[["n", "said_unknown"]].first()
    shown = about.rename(columns={"n": "n_runs", "said_unknown": "said"}).join(shares.add_prefix("as "))
    shown = shown.rename_axis("workload").reset_index()
    return table(
        records(shown), ("workload", "unknown workload"), ("n_runs", "runs", count),
        *((f"as {name}", name, share) for name in sorted(map(str, shares))), ("said", "said to be unknown", share),
    )  # fmt: skip


def _open_set_figure(scores: pd.DataFrame, auroc: float | None) -> Figure:
    """Scores of known and unknown workloads, of all choices of held-out ones, with one line for all of them."""
    title = "Known and unknown workloads"
    scored = scores if len(scores) else pd.DataFrame({"is_unknown": [], "score": []})
    known, unknown = (scored.loc[scored["is_unknown"] == kind, "score"].to_numpy() for kind in (False, True))
    if not (len(known) and len(unknown)):
        return Figure("open-set", title, "Too few workloads to hold some out as unknown.", "n = 0")
    limit = float(np.quantile(known, RECALL, method="higher"))
    n_choices = len(scores[["first", "second"]].drop_duplicates())
    words = "Workloads are held out in turn, unseen by the model, and their runs are scored beside known ones."
    if n_choices > 1:
        words += " Scores of all choices stand here together; the AUROC is the mean over choices."
    words += (
        f" Above the dashed line a run is called unknown: with {share(float(np.mean(known <= limit)))} of the known "
        f"runs called known, so are {share(float(np.mean(unknown <= limit)))} of the unknown ones. AUROC: how often an "
        f"unknown run scores above a known one, here {ratio(auroc)}."
    )
    times = "" if n_choices == 1 else f", over {n_choices:,} choices of held-out workloads"
    evidence = f"n = {len(known):,} scores of known runs, {len(unknown):,} of unknown ones{times}"
    edges = np.linspace(scores["score"].min(), scores["score"].max() + 1e-9, N_BINS + 1)
    rows = pd.concat(
        [charts.binned(values, edges).assign(runs=name) for name, values in (("known", known), ("unknown", unknown))]
    )
    axes = Axis("low", "score, larger: less known"), Axis("share", "share of runs", "share")
    return plot("open-set", title, words, evidence, charts.histogram, rows, *axes, panel="runs", rule=limit)


def _online_figure(figures: Given, measured: pd.DataFrame) -> Figure:
    """Accuracy after so many seconds."""
    lines = {words: online_accuracy(figures, method) for method, words in ONLINE.items()}
    rows = pd.DataFrame(
        [
            {"seconds": after_s, "accuracy": value, "learned from": name}
            for name, line in lines.items()
            for after_s, value in line.items()
        ]
    )
    n_workloads = int(figures["classes"])
    words = (
        "The share of held-out runs that are called right from their first seconds alone, by what was learned from "
        f"as many first seconds, and from whole runs. Guessing would reach {share(1 / max(n_workloads, 1))}."
    )
    n = int(measured.groupby(["method", "seconds"])["n"].sum().max()) if len(measured) else 0
    evidence = f"n = {n:,} held-out runs of {n_workloads} workloads"
    axes = Axis("seconds", "seconds seen"), Axis("accuracy", "called right", "share")
    nothing = "No run was called from its first seconds."
    return plot("online", "How soon a run is known", words, evidence, charts.lines, rows, *axes, series="learned from",
                nothing=nothing)  # fmt: skip


def _distances_table(spreads: pd.DataFrame) -> Table:
    """Table IV: of each workload mean and deviation of its own distances, by ED and DTW, and of those to others."""
    ends = ["mean", "deviation", "others_mean", "others_deviation"]
    wide = spreads.pivot_table(index="workload", columns="measure", values=ends, aggfunc="first").astype(float)
    wide.columns = wide.columns.map("{0[1]} {0[0]}".format)
    titles = dict(zip(ends, ("own runs: mean", "deviation", "to others: mean", "deviation"), strict=True))
    shown = [
        Column(f"{kind} {end}", f"{kind.upper()}, {title}", short_number, kind="number")
        for kind in ("dtw", "ed")
        for end, title in titles.items()
        if f"{kind} {end}" in wide
    ]
    return table(records(wide.reset_index()), ("workload", "workload"), *shown)
