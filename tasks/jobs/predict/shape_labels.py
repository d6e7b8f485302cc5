"""Shapes as labels of jobs: the most probable one in a period, how well it is foretold, and what that is held against:
an oracle, and the job's history. Source: Zhu et al. 2023, section 5.2."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.jobs.normalisation import Counts, Floats, histogram, normalise, pmfs_of
from tasks.jobs.params import LABEL_SUPPORT, EvaluateParams, Kind
from tasks.jobs.predict.classifier import Classifier, LabelledRows, LightGbm, fit_classifier
from tasks.jobs.predict.features import is_of_peers
from tasks.jobs.predict.preparation import PreparedLog
from tasks.jobs.shapes import NO_LABEL, Labels, ShapeSet, hard_labels, log_posterior, log_shapes

POSTERIOR = "posterior_"


def count_runs(runs: pd.DataFrame, shapes: ShapeSet, keys: pd.Index | None = None) -> tuple[pd.Index, Counts]:
    """The runs of each job in each bin of the shapes: keys (n_groups,) and counts (n_groups, n_bins).

    runs: group_key, runtime_s, median_s (seconds); the shapes say if ratios or deltas are counted. Runs without a
    median are left out, but their job has a row. keys: the jobs of the rows, default all of `runs` in sorted order;
    runs of others are left out."""
    index = pd.Index(sorted(runs["group_key"].unique()), dtype=object) if keys is None else keys
    values = normalise(runs["runtime_s"], runs["median_s"], shapes.bins.kind)
    return index, histogram(values, index.get_indexer(pd.Index(runs["group_key"])), len(index), shapes.bins)


def label_groups(runs: pd.DataFrame, shapes: ShapeSet) -> pd.DataFrame:
    """The shape of each job from its runs of one period, by group_key in sorted order.

    runs: as count_runs takes them, of the period. Columns: n_runs (that were counted), label (-1 below
    LABEL_SUPPORT runs) and posterior_0 … posterior_<k-1>, which sum to 1. Source: Zhu et al. 2023, section 5.2,
    equations 7 and 8."""
    keys, counts = count_runs(runs, shapes)
    log_p, n_runs = log_posterior(counts, shapes.centres), counts.sum(axis=1)
    labels = np.where(n_runs >= LABEL_SUPPORT, hard_labels(log_p), NO_LABEL)
    table = pd.DataFrame({"n_runs": n_runs, "label": labels}, index=keys.rename("group_key"))
    names = [f"{POSTERIOR}{shape}" for shape in range(log_p.shape[1])]
    return pd.concat([table, pd.DataFrame(np.exp(log_p), index=table.index, columns=names)], axis=1)


def label_instances(keys: pd.Series, by_group: pd.DataFrame) -> Labels:
    """The label of the job of each run, (n,); -1 where it has none. keys: group keys; by_group: of label_groups."""
    labels = by_group["label"].reindex(keys.to_numpy()).fillna(NO_LABEL)
    return labels.to_numpy().astype(np.intp)


def posteriors_in(by_group: pd.DataFrame) -> Floats:
    """The posterior columns of label_groups as they stand: (n_groups, k)."""
    return by_group.filter(regex=f"^{POSTERIOR}\\d+$").to_numpy(dtype=float)


def posterior_instances(keys: pd.Series, by_group: pd.DataFrame) -> Floats:
    """The posterior of the job of each run, (n, k); missing for a job that by_group does not know."""
    posteriors = posteriors_in(by_group)
    rows = by_group.index.get_indexer(pd.Index(keys))
    return np.where(rows[:, None] >= 0, posteriors[rows] if len(posteriors) else np.nan, np.nan)


MAX_COUNTS_AT_ONCE = 4_000_000  # drawn histograms of a job, in numbers: 32 MB
MOST_GROUPS = 2000  # of the oracle; of more a sample
ORACLE_DRAWS = 500  # times that the runs of a job are drawn anew
ORACLE_SHAPE_RUNS = 1.0  # that the most likely shape counts as in a job's own distribution


@dataclass(frozen=True)
class Reference:
    """by_run, by_group: mean hit with each run, and each job, counting the same; None, with a reason, without any.

    n_groups, n_runs: that it is taken over."""

    by_run: float | None
    by_group: float | None
    n_groups: int
    n_runs: int
    reason: str | None = None


def summarise(table: pd.DataFrame, keys: pd.Index | None = None) -> Reference:
    """Means over the jobs of a table that have a hit, or over those among `keys` (jobs that it lacks are skipped)."""
    known = table[table["hit"].notna() & (True if keys is None else table.index.isin(keys))]
    if known.empty:
        return Reference(None, None, 0, 0, "no job with enough runs")
    hits, n_runs = known["hit"].to_numpy(dtype=float), known["n_runs"].to_numpy()
    return Reference(float((hits * n_runs).sum() / n_runs.sum()), float(hits.mean()), len(known), int(n_runs.sum()))


def ceiling(
    by_group: pd.DataFrame,
    counts: Counts,
    shapes: ShapeSet,
    *,
    n_draws: int = ORACLE_DRAWS,
    shape_runs: float = ORACLE_SHAPE_RUNS,
    most_groups: int = MOST_GROUPS,
    seed: int = 0,
) -> pd.DataFrame:
    """Expected accuracy of an oracle that knows each job's distribution: n_runs, hit by group_key.

    by_group: of label_groups for the test period; counts: (n_groups, n_bins) in its order, the runs of ALL periods.
    A job's distribution is its runs and shape_runs runs of its most likely shape. As many runs as the test period has
    are drawn from it n_draws times and labelled; `hit` is the share of the most frequent label, which the oracle
    always says. Only labelled jobs, of more than most_groups a sample; hit is missing for the others. It errs high: a
    job's own runs vary less than what it could have done, and the best of finitely many draws is picked."""
    rng, is_labelled = np.random.default_rng(seed), (by_group["label"] != NO_LABEL).to_numpy()
    rows = np.sort(rng.permutation(np.flatnonzero(is_labelled))[:most_groups])
    best = shapes.centres[hard_labels(log_posterior(counts, shapes.centres))]
    distributions = pmfs_of(counts + shape_runs * best)
    log_theta = log_shapes(shapes.centres).T  # (n_bins, k)
    hits = np.full(len(counts), np.nan)
    portion = max(1, MAX_COUNTS_AT_ONCE // counts.shape[1])  # of the draws, which fits into memory
    with threadpool_limits(1):  # products this small gain nothing from more
        for row in rows:
            n_runs, tally = int(by_group["n_runs"].iloc[row]), np.zeros(len(shapes.centres), dtype=np.int64)
            order = np.argsort(-distributions[row], kind="stable")  # drawing ends when all runs have a bin
            for start in range(0, n_draws, portion):
                size = min(portion, n_draws - start)
                drawn = rng.multinomial(n_runs, distributions[row, order], size=size)  # (size, n_bins)
                tally += np.bincount(hard_labels(drawn.astype(float) @ log_theta[order]), minlength=len(tally))
            hits[row] = tally.max() / n_draws
    return pd.DataFrame({"n_runs": by_group["n_runs"], "hit": hits}, index=by_group.index)


def history_baseline(by_group: pd.DataFrame, history: pd.DataFrame) -> pd.DataFrame:
    """Is a job's label the one of its history? n_runs and hit (0 or 1) by group_key.

    by_group: of the test period; history: label_groups of everything before it. Any run counts as history; a labelled
    job without one is wrong. hit is missing for jobs without a label in the test period. The
    baseline that a model must beat."""
    history = history[history["n_runs"] > 0]
    most_probable = hard_labels(posteriors_in(history)) if len(history) else np.zeros(0)
    labels = pd.Series(most_probable, index=history.index, dtype=float).reindex(by_group.index)
    hits = (labels == by_group["label"]).astype(float).where(by_group["label"] != NO_LABEL)
    return pd.DataFrame({"n_runs": by_group["n_runs"], "hit": hits})


OCCURRENCES = ("0", "1-5", "6-10", "11-15", "16-50", "> 50")  # Figure 7(b), and none
UPPER = (0, 5, 10, 15, 50)
LEAST_PROBABILITY = 1e-6  # what a shape counts as that was called impossible, in log losses


@dataclass(frozen=True)
class ClassifierReport:
    """Of the runs with a label. accuracy: share of runs that are right; accuracy_group: its mean over jobs; log_loss:
    nats a run; confusion: (k, k) runs by actual (row) and predicted shape; by_group: n_runs, hit by group_key.

    The figures are None without such a run."""

    n: int
    n_groups: int
    accuracy: float | None
    accuracy_group: float | None
    log_loss: float | None
    confusion: Counts
    by_group: pd.DataFrame


@dataclass(frozen=True)
class LabelEvaluation:
    """Of one normalisation, on the test runs. report: of the classifier; occurrences: accuracy beside its references by
    earlier runs; importances: feature, importance; probabilities: (n, k) of all runs, by the classifier."""

    report: ClassifierReport
    references: dict[str, Reference]
    occurrences: pd.DataFrame
    importances: pd.DataFrame
    fitted: Classifier
    probabilities: Floats


def evaluate_labels(prepared: PreparedLog, kind: Kind, params: EvaluateParams) -> LabelEvaluation:
    """Learn the labels of D2 from what was known at each submission, and score them on D3.

    Raises BadInput where there are no shapes, or no run of D2 has a label. The label of a run is the most probable
    shape of all runs of its job in its own period. Source: Zhu et al., 5.2."""
    if kind not in prepared.shapes:
        raise BadInput("job log", "the median of every job of its first part is 0 s", "jobs that take time")
    runs, shapes = prepared.runs, prepared.shapes[kind]
    features = prepared.features[[name for name in prepared.features if not is_of_peers(str(name))]]
    training, test, keys = prepared.is_part("D2"), prepared.is_part("D3"), prepared.runs["group_key"]
    parts = {"D2": training, "D3": test, "before": ~test}
    by_group = {name: label_groups(runs[rows], shapes) for name, rows in parts.items()}
    labels = label_instances(keys[training], by_group["D2"])
    used = np.flatnonzero(training)[np.flatnonzero(labels >= 0)[-params.max_training_runs :]]
    if not len(used) or features.empty:
        problem = f"{len(used)} rows with a label, {features.shape[1]} features"
        raise BadInput("training rows", problem, "at least one of each", "give more runs")
    frame, jobs = features.iloc[used], keys.iloc[used]
    data = LabelledRows(frame, jobs.to_numpy(), posterior_instances(jobs, by_group["D2"]))
    varying = [str(name) for name in frame if len(np.unique(frame[name])) > 1]
    fitted = fit_classifier(data, varying, kind, n_rounds=params.predict.n_rounds, seed=params.seed)
    probabilities = fitted.predict_proba(features)
    actual = label_instances(keys[test], by_group["D3"])
    report = report_classifier(probabilities[test], actual, keys[test].to_numpy())
    all_counts = count_runs(runs, shapes, pd.Index(by_group["D3"].index))[1]
    tables = {
        "model": report.by_group,
        "ceiling": ceiling(by_group["D3"], all_counts, shapes, seed=params.seed),
        "history_baseline": history_baseline(by_group["D3"], by_group["before"]),
    }
    return LabelEvaluation(
        report=report,
        references={name: summarise(table) for name, table in tables.items()},
        occurrences=by_occurrences(tables, by_group["before"]["n_runs"]),
        importances=fitted.importances() if isinstance(fitted, LightGbm) else pd.DataFrame(),
        fitted=fitted,
        probabilities=probabilities,
    )


def report_classifier(probabilities: ArrayLike, labels: ArrayLike, groups: ArrayLike) -> ClassifierReport:
    """How right the most probable shapes are.

    probabilities: (n, k); labels: (n,), -1 for a run that is not scored; groups: (n,) the job of each run."""
    p, actual = np.asarray(probabilities, dtype=float), np.asarray(labels, dtype=np.intp)
    is_scored = actual >= 0
    p, actual, jobs = p[is_scored], actual[is_scored], np.asarray(groups)[is_scored]
    k, predicted = p.shape[1], p.argmax(axis=1)
    confusion = np.bincount(actual * k + predicted, minlength=k * k).reshape(k, k)
    hits = pd.Series((predicted == actual).astype(float)).groupby(jobs)
    by_group = pd.DataFrame({"n_runs": hits.size(), "hit": hits.mean()}).rename_axis("group_key")
    if not len(actual):
        return ClassifierReport(0, 0, None, None, None, confusion, by_group)
    log_loss = float(-np.log(np.maximum(p[np.arange(len(actual)), actual], LEAST_PROBABILITY)).mean())
    accuracy, by_job = float((predicted == actual).mean()), float(by_group["hit"].mean())
    return ClassifierReport(len(actual), len(by_group), accuracy, by_job, log_loss, confusion, by_group)


def by_occurrences(tables: Mapping[str, pd.DataFrame], n_before: pd.Series) -> pd.DataFrame:
    """Accuracy by the number of earlier runs of a job: one row for each of OCCURRENCES that has jobs.

    tables: name to n_runs and hit by group_key: the by_group of a report, and the references beside it; n_before: by
    group_key. Columns: slice, n_groups, n_runs, and for each name `<name>` and `<name>_group`, weighed by runs and by
    jobs; missing where nothing is known. All are taken over the jobs of the first table. Source: Figure 7(b)."""
    first = next(iter(tables.values()))
    places = np.searchsorted(UPPER, n_before.reindex(first.index).fillna(0).to_numpy(), side="left")
    rows = []
    for place, name in enumerate(OCCURRENCES):
        keys = first.index[places == place]
        if not len(keys):
            continue
        summaries = {table: summarise(values, keys) for table, values in tables.items()}
        main = next(iter(summaries.values()))
        row: dict[str, Any] = {"slice": name, "n_groups": main.n_groups, "n_runs": main.n_runs}
        for table, reference in summaries.items():
            row |= {table: reference.by_run, f"{table}_group": reference.by_group}
        rows.append(row)
    return pd.DataFrame(rows)
