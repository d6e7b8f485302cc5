"""What the last training and the last evaluation of workloads measured, in words, tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.choices import said
from tasks.quantities import number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Column, Figure, Table, count, figure, numbers, one_line, sentence
from tasks.warehouse.connection import Connection
from tasks.workloads.telemetry import FloatArray

METHOD = (
    "Method, tables and figures after Hossain et al., CWD: A Machine Learning based Approach to Detect Unknown Cloud "
    "Workloads, 2022; where they differ, tasks/workloads/README.md says why. A phase is a stretch of samples between "
    "two change points."
)
MEASURES = ("accuracy", "precision", "recall", "macro_f1", "confirmed")
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
PART = "known."
UNNAMED = "model"  # what a key without a method is of


def known_table(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a split and method that has figures: split, method, and each measure (None where there is none).

    figures: keys `known.<measure>.<split>[.<method>]`, in any order of the last two; without a method it is that of
    the model. Keys without a split repeat one of them and do not count."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for key, value in figures.items():
        read = _read(key)
        if read is not None and value is not None:
            measure, split, method = read
            row = rows.setdefault((split, method or UNNAMED), {})
            row[measure] = value if method else row.get(measure, value)
    order = [(split, method) for split in SLICES for method in METHODS if (split, method) in rows]
    return [
        {"split": SLICES[split], "method": METHODS[method], **dict.fromkeys(MEASURES), **rows[split, method]}
        for split, method in order
    ]


def _read(key: str) -> tuple[str, str, str | None] | None:
    """Measure, split and method (None: not named) of a key; None for any other, deviations and reasons among them."""
    if not key.startswith(PART):
        return None
    words = key.removeprefix(PART).split(".")
    found = [next((word for word in words if word in names), None) for names in (MEASURES, SLICES, METHODS)]
    measure, split, method = found
    if measure is None or split is None or len(words) != sum(word is not None for word in found):
        return None
    return measure, split, method


def missing_splits(figures: Mapping[str, Any]) -> list[str]:
    """One line for each split that could not be made, with its reason."""
    lines = []
    for split, words in SLICES.items():
        reasons = [
            str(value)
            for key, value in figures.items()
            if key.startswith(PART) and key.endswith(".reason") and split in key.split(".")
        ]
        if reasons:
            lines.append(f"{words}: {reasons[0]}")
    return list(dict.fromkeys(lines))


REASONS_SHOWN = 4


WORDS = {
    "unknown.auroc": ("AUROC of unknown against known workloads", ratio),
    "unknown.false_known_at_95": ("unknown runs called known, where 95 % of the known ones are", share),
    "threshold.false_reject": ("own runs that the distance threshold rejects", share),
    "threshold.false_accept": ("runs of other workloads that it accepts", share),
    "held_out.accuracy": ("held-out runs called right by the model", share),
    "held_out.macro_f1": ("macro-F1 of the same", ratio),
    "held_out.false_unknown": ("held-out runs of known workloads that it calls unknown", share),
    "held_out.nearest_accuracy": ("held-out runs nearest to their own workload", share),
    "held_out.confidence": ("its mean confidence in them", share),
    "held_out.n": ("held-out runs or windows of known workloads", count),
    "held_out.n_windows": ("of these windows of longer runs", count),
    "held_out.n_new": ("held-out runs of workloads that it has never seen", count),
    "held_out.n_new_unknown": ("of these called unknown", count),
    "trained.n": ("runs or windows that it learned from", count),
    "trained.n_windows": ("of these windows of longer runs", count),
    "trained.classes": ("workloads that it knows", count),
    "unknown.auroc.least": ("the least AUROC of any two held-out workloads", ratio),
    "unknown.auroc.nearest": ("AUROC by the distance to the nearest run alone", ratio),
    "unknown.said_known": ("unknown runs that the model's own limit calls known", share),
    "unknown.known_said_unknown": ("known runs that the model's own limit calls unknown", share),
    "unknown.pairs": ("choices of two workloads held out", count),
    "window.accuracy": ("called right from the middle half of a run", share),
    "window.macro_f1": ("macro-F1 of the same", ratio),
    "pairs.accuracy": ("pairs of runs rightly called the same or different workloads", share),
    "pairs.f1": ("F1 of the same workload among pairs", ratio),
    "adf.determined_share": ("phases with a determined Dickey–Fuller statistic", share),
    "phases.mean": ("phases of a workload as a count, mean", number),
    "phases.mean_of_counters": ("phases of a counter, mean", number),
    "phases.most": ("most phases of a counter", count),
    "counters.n": ("counters compared", count),
    "counters.giveaways": ("counters left out, as they give the session away", count),
    "counters.not_common": ("counters left out, as not every run has them", count),
}
NAME_CHARS = 60
ONLINE_KEY = "online.accuracy."


def called(row: Mapping[Any, Any]) -> str:
    """What a run was called: its workload, or unknown with what it is most like."""
    if row["is_known"] and isinstance(row["workload"], str):
        present = row.get("present")  # missing, or no list, where an older whorl said it
        kept = present if isinstance(present, list | np.ndarray) else None
        return one_line(said({**row, "present": kept}), NAME_CHARS)
    return f"unknown, most like {one_line(str(row['nearest']), NAME_CHARS)}"


def reasons_of(row: Mapping[Any, Any]) -> list[str]:
    """The first reasons of an identification, each on one line."""
    return [sentence(reason) for reason in list(row["reasons"])[:REASONS_SHOWN]]


def other_figures(figures: Mapping[str, Any]) -> list[dict[str, str]]:
    """A row a figure beside those of known workloads that has words: words and value, or why there is none."""
    rows = []
    for key, (words, show) in WORDS.items():
        if key in figures:
            value = figures[key]
            reason = figures.get(f"{key}.reason", "not measured")
            rows.append({"words": words, "value": show(value) if value is not None else sentence(reason)})
    for after_s, value in online_accuracy(figures).items():
        rows.append({"words": f"called right after {number(after_s)} s", "value": share(value)})
    return rows


def online_accuracy(figures: Mapping[str, Any], method: str = "") -> dict[float, float]:
    """Accuracy by seconds seen, rising. method: keys `online.accuracy.<n>s.<method>`; without one that of the model."""
    found = {}
    for key, value in figures.items():
        if key.startswith(ONLINE_KEY) and value is not None:
            after, _, told_by = key.removeprefix(ONLINE_KEY).partition("s")
            if told_by.strip(".") == method and after.replace(".", "", 1).isdigit():
                found[float(after)] = float(value)
    return dict(sorted(found.items()))


BINS = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 29), (30, 99), (100, None))


@dataclass(frozen=True)
class AdfShares:
    """lengths: (n,) samples of each phase; is_determined: (n,) whether it has the statistic."""

    lengths: NDArray[np.int64]
    is_determined: NDArray[np.bool_]

    @property
    def share(self) -> float | None:
        """Of all phases; None without any."""
        return float(self.is_determined.mean()) if len(self.lengths) else None

    @property
    def rows(self) -> list[tuple[str, int, int]]:
        """Words, phases and those determined of each length that occurs."""
        found = []
        for least, most in BINS:
            inside = (self.lengths >= least) & (self.lengths <= (most or np.inf))
            if inside.any():
                words = "1 sample" if most == 1 else f"{least} or more" if most is None else f"{least} to {most}"
                found.append((words, int(inside.sum()), int(self.is_determined[inside].sum())))
        return found

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {len(self.lengths):,} phases of all counters, {share(self.share)} determined"


@dataclass(frozen=True)
class WorkloadConfusion:
    """counts: (k, k) runs, rows what ran, columns what it was called, in the order of `workloads`; by: what called it.

    (k, k + 1): the last column holds runs that were called unknown. Runs of repeated splits count each time."""

    workloads: tuple[str, ...]
    counts: NDArray[np.int64]
    by: str = "the model"

    @property
    def n(self) -> int:
        """Runs that were called something."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float | None:
        """Share that were called what they are; None without any."""
        return float(np.trace(self.counts)) / self.n if self.n else None

    @property
    def shares(self) -> FloatArray:
        """Of what ran: (k, k); NaN for a workload without a run."""
        return np.asarray(charts.row_shares(self.counts))

    @property
    def worst(self) -> tuple[int, int] | None:
        """Row and column of the error with the largest share of its row; None without an error."""
        wrong = np.nan_to_num(self.shares)
        np.fill_diagonal(wrong, 0.0)
        if not wrong.any():
            return None
        row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
        return int(row), int(column)

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n:,} runs called by {self.by}, {share(self.accuracy)} right; percent of what ran"


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
FIGURES = (
    "SELECT key, value, reason FROM workloads.model_figures WHERE source = $source AND model_id = $model ORDER BY key"
)
CONFUSION = """
    SELECT workload AS actual, identified_as AS predicted, n_runs AS n FROM workloads.confusions
    WHERE source = $source AND model_id = $model ORDER BY ALL
"""
EVALUATION = (
    "SELECT key, value, reason, data_version FROM workloads.evaluation_figures WHERE source = $source ORDER BY key"
)
UNKNOWN = ""  # identified_as of a run that was called none of the known workloads

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """model_id: whose figures and confusion these are, None without any. evaluation: figures of the last evaluation.

    Figures are by key, None with `<key>.reason` beside it where one cannot be had; evaluated_version: data version."""

    model_id: str | None
    figures: Figures
    confusion: WorkloadConfusion | None
    evaluation: Figures
    evaluated_version: str | None


def fetch_measured(connection: Connection, source: str) -> Measured:
    """What was measured in a source."""
    evaluation = connection.execute(EVALUATION, {"source": source}).df()
    version = str(evaluation["data_version"].iloc[0]) if len(evaluation) else None
    told = connection.execute(MODEL_OF, {"source": source}).fetchone()
    if told is None:
        return Measured(None, {}, None, _by_key(evaluation), version)
    asked = {"source": source, "model": str(told[0])}
    figures = _by_key(connection.execute(FIGURES, asked).df())
    confusion = confusion_of_rows(connection.execute(CONFUSION, asked).df(), f"model {told[0]}")
    return Measured(asked["model"], figures, confusion, _by_key(evaluation), version)


def _by_key(rows: pd.DataFrame) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value, reason in zip(rows["key"], rows["value"], rows["reason"], strict=True):
        found[str(key)] = None if pd.isna(value) else float(value)
        if not pd.isna(reason):
            found[f"{key}.reason"] = str(reason)
    return found


def confusion_of_rows(rows: pd.DataFrame, by: str) -> WorkloadConfusion | None:
    """Counts by pair of workloads (actual, predicted, n) as a table; None without any.

    predicted: empty for runs that were called unknown, which then have the last column."""
    if rows.empty:
        return None
    names = sorted({*rows["actual"], *rows["predicted"]} - {UNKNOWN})
    place = {name: at for at, name in enumerate(names)} | {UNKNOWN: len(names)}
    has_unknown = bool((rows["predicted"] == UNKNOWN).any())
    counts = np.zeros((len(names), len(names) + has_unknown), dtype=np.int64)
    for actual, predicted, n in zip(rows["actual"], rows["predicted"], rows["n"], strict=True):
        counts[place[actual], place[predicted]] += int(n)
    return WorkloadConfusion(tuple(names), counts, by)


def known_rows(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Table II: how well known workloads are told apart, by what tells them and how runs were split."""
    columns = (
        Column("split", "tested on"),
        Column("method", "told by"),
        *numbers(("accuracy", "accuracy", share), ("precision", "precision", ratio), ("recall", "recall", ratio)),
        Column("macro_f1", "F1", ratio, is_number=True),
    )
    if any(row["confirmed"] is not None for row in rows):
        columns += numbers(("confirmed", "right and confirmed", share))
    return Table("", "F1, precision and recall are means over the workloads." if rows else "", columns, rows)


def figures_table(rows: Sequence[Mapping[str, str]]) -> Table:
    """Figures in words with their values."""
    return Table("", "", (Column("words", "figure"), Column("value", "value")), rows)


def confusion_figure(confusion: WorkloadConfusion | None) -> Figure:
    """What was taken for what."""
    title, nothing = "What runs were taken for", "No run was held out and called by a model yet."
    if confusion is None or not confusion.n:
        return figure("confusion", title, "", "", None, nothing)
    columns = [*confusion.workloads, "unknown"][: confusion.counts.shape[1]]
    worst = "every run was called what it is"
    if confusion.worst is not None:
        row, column = confusion.worst
        part = share(float(confusion.shares[row, column]))
        worst = f"worst: {part} of the runs of {confusion.workloads[row]} called {columns[column]}"
    words = f"Runs that were held out: of those in a row, which percentage was called what the column says; {worst}."
    cells = charts.cells_of(confusion.counts, confusion.workloads, columns, of="ran", to="called")
    ran, called_as = Axis("ran", "what ran", "name"), Axis("called", "what it was called", "name")
    return Figure(
        "confusion", title, words, confusion.evidence, partial(charts.heatmap, cells, ran, called_as, "share")
    )


def adf_figure(shares: AdfShares, least: int | None = None) -> Figure:
    """Share of the phases with a determined Dickey–Fuller statistic."""
    title = "Where the Dickey–Fuller statistic is determined"
    if not len(shares.lengths):
        return figure("adf", title, "", "", None, "No run has been cut into phases yet.")
    below = f" below {number(least)} samples and" if least else ""
    words = (
        f"The augmented Dickey–Fuller statistic is undetermined{below} in constant phases, which have the value 0 in a "
        f"fingerprint. It is determined in {share(shares.share)} of the phases."
    )
    rows = pd.DataFrame([{"samples": f"{name}", "share": n_known / n, "phases": n} for name, n, n_known in shares.rows])
    draw = partial(charts.bars, rows, Axis("share", "share of phases of that length", "share"), "samples")
    return Figure("adf", title, words, shares.evidence, draw)
