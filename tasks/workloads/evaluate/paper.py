"""The paper's own method, so that it can be reproduced: boosted trees on padded fingerprints, distances between phases.

Tables III and IV, and the threshold of VI-C. What `whorl workloads identify`
answers with is another method, which stands beside it in every table (`known`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.boosters import ONE_THREAD, booster_from, lightgbm_alone
from tasks.report.evaluation import Figures, put
from tasks.workloads.evaluate.distances import (
    DISTANCES,
    Measure,
    distances_between,
    distances_of_pairs,
    nearest_workloads,
    radii_of,
)
from tasks.workloads.identify.phases import (
    ADF,
    STATISTICS,
    UNDETERMINED,
    CounterScale,
    Cut,
    Fingerprint,
    fingerprints_of,
    learn_scale,
)
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

COUNTS = ("n_own", "n_rejected", "n_other", "n_accepted")
MOST_RUNS = 600  # in Table IV; of more, an even sample
N_TREES = 60  # for each workload
TREES = {
    **ONE_THREAD,
    "force_row_wise": False,
    "force_col_wise": True,  # far more features than runs
    "objective": "multiclass",
    "learning_rate": 0.1,
    "num_leaves": 7,
    "min_data_in_leaf": 2,
    "min_sum_hessian_in_leaf": 1e-6,
    "feature_fraction": 0.1,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "extra_trees": True,  # few runs and thousands of features: one random threshold of each
    "max_bin": 63,
    "min_data_in_bin": 1,
    "feature_pre_filter": False,
}


@dataclass(frozen=True)
class PaperTrees:
    """classes: names of the workloads, sorted. booster: None where there is one class or no feature that varies."""

    classes: tuple[str, ...]
    booster: Any

    def workloads(self, features: FloatArray) -> list[str]:
        """The most probable workload of each run. features: (n_runs, n_features), as in training."""
        if self.booster is None or not len(features):
            return [self.classes[0]] * len(features)
        probabilities = self.booster.predict(np.ascontiguousarray(features), num_threads=1)
        return [self.classes[at] for at in np.asarray(probabilities).reshape(len(features), -1).argmax(axis=1)]


@dataclass(frozen=True)
class PaperModel:
    """counters and scale of the fingerprints; n_phases: q of the padded table; known: the training runs' fingerprints;
    radii: of each workload, by distance (VI-C)."""

    counters: tuple[Counter, ...]
    scale: CounterScale
    n_phases: int
    known: list[Fingerprint]
    trees: PaperTrees
    radii: dict[Measure, dict[str, float]]

    def describe(self, runs: Sequence[Telemetry], cuts: Mapping[str, Cut]) -> tuple[list[Fingerprint], FloatArray]:
        """The fingerprints of runs, and the padded table that the trees read, (n, p)."""
        made = fingerprints_of(runs, self.counters, self.scale, cuts)
        return made, np.array([padded(fingerprint, self.n_phases) for fingerprint in made])


def fit_paper(
    runs: Sequence[Telemetry],
    counters: tuple[Counter, ...],
    seed: int,
    cuts: Mapping[str, Cut],
) -> PaperModel:
    """Learn from labelled runs, whose order changes nothing. Raises ValueError without a run."""
    ordered = sorted(runs, key=lambda run: (str(run.workload), run.run_id))
    scale = learn_scale(ordered, counters)
    known = fingerprints_of(ordered, counters, scale, cuts)
    n_phases = max(fingerprint.most_phases for fingerprint in known)
    features = np.array([padded(fingerprint, n_phases) for fingerprint in known])
    labels = [str(run.workload) for run in ordered]
    radii = {measure: radii_of(distances_of_pairs(phases_of(known), measure), labels) for measure in DISTANCES}
    trees = fit_trees(features, labels, seed)
    return PaperModel(counters, scale, n_phases, known, trees, radii)


def padded(fingerprint: Fingerprint, n_phases: int) -> FloatArray:
    """The fingerprint as the table n × q × k, flat: (n_counters · n_phases · n_statistics,).

    Fewer phases are padded with zeros (V-C). A counter with more keeps its first n_phases − 1, and the mean of the
    rest, weighted by their lengths, as the last: a run longer than those of the training loses detail and no sample."""
    table = np.zeros((len(fingerprint.counters), n_phases, len(STATISTICS)))
    for row, bounds, summaries in zip(table, fingerprint.bounds, fingerprint.summaries, strict=True):
        if len(summaries) <= n_phases:
            row[: len(summaries)] = summaries
            continue
        row[: n_phases - 1] = summaries[: n_phases - 1]
        row[-1] = np.average(summaries[n_phases - 1 :], axis=0, weights=np.diff(bounds)[n_phases - 1 :])
    return table.ravel()


def phases_of(fingerprints: Sequence[Fingerprint]) -> list[FloatArray]:
    """The sequence of phases of each run: (n_phases, n_counters · n_statistics)."""
    return [fingerprint.workload_phases for fingerprint in fingerprints]


def fit_trees(features: FloatArray, labels: Sequence[str], seed: int) -> PaperTrees:
    """Learn to tell workloads apart (RQ1), every workload weighing the same. features: (n_runs, n_features)."""
    classes = tuple(sorted(set(labels)))
    if len(classes) == 1 or not (features.min(axis=0) < features.max(axis=0)).any():
        return PaperTrees(classes, None)
    lightgbm = lightgbm_alone()
    numbers = np.array([classes.index(label) for label in labels])
    counts = np.bincount(numbers, minlength=len(classes))
    weight = len(numbers) / (len(classes) * counts[numbers])
    data = lightgbm.Dataset(np.ascontiguousarray(features), numbers, weight=weight)
    text = lightgbm.train({**TREES, "num_class": len(classes), "seed": seed}, data, N_TREES).model_to_string()
    return PaperTrees(classes, booster_from(text, features.shape[1]))


def by_distance(
    model: PaperModel, described: Sequence[Fingerprint], measure: Measure
) -> tuple[list[str], NDArray[np.bool_]]:
    """The distance classifier of V-D: the workload of each run, and whether its threshold confirms it."""
    return nearest_workloads(
        distances_between(phases_of(described), phases_of(model.known), measure),
        [len(fingerprint.workload_phases) for fingerprint in described],
        [len(fingerprint.workload_phases) for fingerprint in model.known],
        [str(fingerprint.workload) for fingerprint in model.known],
        model.radii[measure],
    )


def table_iii(
    named: Mapping[str, Sequence[str]], known: Sequence[str], called_unknown: Mapping[str, Sequence[bool]]
) -> pd.DataFrame:
    """One row an unknown and a known workload: unknown, known, share (of its runs that the trees, which must choose,
    call so), said_unknown (of its runs, by the model, which need not), n.

    named, called_unknown: by unknown workload, of each of its runs."""
    rows = [
        {
            "unknown": workload,
            "known": name,
            "share": list(names).count(name) / len(names),
            "said_unknown": float(np.mean(called_unknown[workload])),
            "n": len(names),
        }
        for workload, names in named.items()
        for name in known
    ]
    return pd.DataFrame(rows)


def table_iii_figures(table: pd.DataFrame, reason: str = "") -> Figures:
    """`paper.share.<unknown>.<known>`, and how often the unknown ones were said to be unknown."""
    figures: Figures = {}
    if table.empty:
        put(figures, "paper.share", None, reason)
        put(figures, "paper.said_unknown", None, reason)
        return figures
    for row in table.to_dict("records"):
        put(figures, f"paper.share.{row['unknown']}.{row['known']}", row["share"])
        put(figures, f"paper.said_unknown.{row['unknown']}", row["said_unknown"])
    each = table.drop_duplicates("unknown")
    put(figures, "paper.said_unknown", float(each["said_unknown"].mean()))
    return figures


def similarity_of(fingerprints: Sequence[Fingerprint]) -> tuple[Figures, pd.DataFrame]:
    """Table IV and the phases behind it, over fingerprints on one scale: figures, and the table `table_iv`, a row a
    workload and measure."""
    statistics = np.concatenate([summary[:, ADF] for run in fingerprints for summary in run.summaries])
    figures: Figures = {
        "adf.determined_share": float((statistics != UNDETERMINED).mean()),
        "phases.n": len(statistics),
        "phases.mean": float(np.mean([len(fingerprint.workload_phases) for fingerprint in fingerprints])),
        "phases.mean_of_counters": len(statistics) / sum(len(fingerprint.summaries) for fingerprint in fingerprints),
        "phases.most": max(fingerprint.most_phases for fingerprint in fingerprints),
    }
    table = pd.DataFrame(_table_iv(fingerprints))
    for row in table.to_dict("records"):
        for name in ("mean", "deviation"):
            reason = "one run of this workload: no pair"
            put(figures, f"distance.{name}.{row['measure']}.{row['workload']}", row[name], reason)
    return figures, table


def _table_iv(fingerprints: Sequence[Fingerprint]) -> Iterator[dict[str, Any]]:
    """workload, measure, mean, deviation, n_pairs of the distances between its own runs, and the same with `others_`
    for those to runs of other workloads."""
    kept = np.unique(np.linspace(0, len(fingerprints) - 1, min(len(fingerprints), MOST_RUNS)).astype(int))
    labels = np.array([str(fingerprints[at].workload) for at in kept])
    for measure in DISTANCES:
        distances = distances_of_pairs(phases_of([fingerprints[at] for at in kept]), measure)
        for workload in np.unique(labels):
            is_it = labels == workload
            inner = distances[np.ix_(is_it, is_it)]
            yield {
                "workload": str(workload),
                "measure": measure,
                **_described(inner[np.triu_indices(len(inner), k=1)], ""),
                **_described(distances[np.ix_(is_it, ~is_it)].ravel(), "others_"),
            }


def _described(distances: FloatArray, prefix: str) -> dict[str, float | int | None]:
    """Mean, deviation of the sample (0 of one distance) and number; None without any."""
    n = len(distances)
    return {
        f"{prefix}mean": float(np.mean(distances)) if n else None,
        f"{prefix}deviation": float(np.std(distances, ddof=min(1, n - 1))) if n else None,
        f"{prefix}n_pairs": n,
    }


def threshold_rows(model: PaperModel, described: Sequence[Fingerprint]) -> Iterator[dict[str, Any]]:
    """One row a measure: n_own, n_rejected (tested runs that their own workload rejects), n_other, n_accepted (a tested
    run and another workload that takes it for its own).

    A run is of a workload if its distance to the nearest known run of it is one that runs of the workload have."""
    labels = np.array([str(fingerprint.workload) for fingerprint in model.known])
    is_own = np.array([[run.workload == name for name in model.trees.classes] for run in described])
    for measure in DISTANCES:
        to_known = distances_between(phases_of(described), phases_of(model.known), measure)
        nearest = np.stack([to_known[:, labels == name].min(axis=1) for name in model.trees.classes], axis=1)
        is_taken = nearest <= np.array([model.radii[measure].get(name, -np.inf) for name in model.trees.classes])
        counts = (is_own.sum(), (is_own & ~is_taken).sum(), (~is_own).sum(), (~is_own & is_taken).sum())
        yield {"measure": measure, **{name: int(n) for name, n in zip(COUNTS, counts, strict=True)}}


def threshold_figures(table: pd.DataFrame, reason: str = "") -> Figures:
    """`threshold.false_reject` and `.false_accept` with `.radius.workload.<measure>` (the radius, for whole runs), over
    all splits together; without it: of DTW."""
    figures: Figures = {}
    for measure in DISTANCES:
        rows = table[table["measure"] == measure] if len(table) else table
        for name, n, n_wrong in (("false_reject", "n_own", "n_rejected"), ("false_accept", "n_other", "n_accepted")):
            share = float(rows[n_wrong].sum() / rows[n].sum()) if len(rows) and rows[n].sum() else None
            put(figures, f"threshold.{name}.radius.workload.{measure}", share, reason or "no run to ask")
            if measure == "dtw":
                put(figures, f"threshold.{name}", share, reason or "no run to ask")
    return figures
