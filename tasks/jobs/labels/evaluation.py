"""How well shapes are predicted as labels, beside the ceiling, the halves and the job's history."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tasks.errors import BadInput
from tasks.jobs.labels import references
from tasks.jobs.labels.classifier import Classifier, LabelledRows, LightGbm, fit_classifier, fit_powers, multiplied
from tasks.jobs.labels.targets import count_runs, known_so_far, label_groups, label_instances, posterior_instances
from tasks.jobs.normalisation import Counts, Floats
from tasks.jobs.predict.params import EvaluateParams
from tasks.jobs.predict.preparation import Prepared
from tasks.jobs.shape_params import Kind

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
class AtStart:
    """Over the n test runs with a label before which no run of their job in the period had ended: nothing of what is
    asked for is known there. accuracy: share that is right; ceiling: the oracle's; None without such a run."""

    n: int
    accuracy: float | None
    ceiling: float | None


@dataclass(frozen=True)
class LabelEvaluation:
    """Of one normalisation, on the test runs. report: of the classifier; start: of it, where no run of the period is
    known yet; so_far: with the runs of the period as far as they are known; occurrences: accuracy beside its references
    by earlier runs; importances: feature, importance; probabilities: (n, k) of all runs, by the classifier."""

    report: ClassifierReport
    start: AtStart
    so_far: ClassifierReport
    references: dict[str, references.Reference]
    occurrences: pd.DataFrame
    importances: pd.DataFrame
    fitted: Classifier
    probabilities: Floats


def evaluate_labels(prepared: Prepared, kind: Kind, params: EvaluateParams) -> LabelEvaluation:
    """Learn the labels of D2 from what was known at each submission, and score them on D3.

    Raises BadInput where no run of D2 has a label. The label of a run is the most probable shape of all runs of its job
    in its own period. Source: Zhu et al., 5.2."""
    asked = params.predict.characterise
    runs, shapes, features = prepared.runs, prepared.shapes[kind], prepared.job_features
    training, test, keys = prepared.is_part("D2"), prepared.is_part("D3"), prepared.runs["group_key"]
    parts = {"D2": training, "D3": test, "before": ~test}
    by_group = {
        name: label_groups(runs[rows], shapes, asked.label_support, asked.posterior) for name, rows in parts.items()
    }
    labels = label_instances(keys[training], by_group["D2"])
    used = np.flatnonzero(training)[np.flatnonzero(labels >= 0)[-params.max_training_runs :]]
    if not len(used) or features.empty:
        problem = f"{len(used)} rows with a label, {features.shape[1]} features"
        raise BadInput("training rows", problem, "at least one of each", "give more runs, or lower label_support")
    frame, jobs = features.iloc[used], keys.iloc[used]
    data = LabelledRows(frame, jobs.to_numpy(), posterior_instances(jobs, by_group["D2"]))
    varying = [str(name) for name in frame if len(np.unique(frame[name])) > 1]
    fitted, unseen = fit_classifier(data, varying, kind, n_rounds=params.predict.n_rounds, seed=params.seed)
    probabilities = told = fitted.predict_proba(features)
    known = known_so_far(runs, shapes, asked.posterior)
    if unseen is not None:
        powers = fit_powers([unseen, known.probabilities[used]], data.likely, data.weights)
        told = multiplied([probabilities, known.probabilities], powers)
    actual = label_instances(keys[test], by_group["D3"])
    report, so_far = (report_classifier(p[test], actual, keys[test].to_numpy()) for p in (probabilities, told))
    tables = {"model": report.by_group, "so_far": so_far.by_group, **_references(prepared, kind, by_group, params)}
    is_labelled = actual >= 0
    is_right = (probabilities[test].argmax(axis=1) == actual)[is_labelled]
    return LabelEvaluation(
        report=report,
        start=at_start(is_right, known.n_known[test][is_labelled] == 0, keys[test][is_labelled], tables["ceiling"]),
        so_far=so_far,
        references={name: references.summarise(table) for name, table in tables.items()},
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
    k, told = p.shape[1], p.argmax(axis=1)
    confusion = np.bincount(actual * k + told, minlength=k * k).reshape(k, k)
    hits = pd.Series((told == actual).astype(float)).groupby(jobs)
    by_group = pd.DataFrame({"n_runs": hits.size(), "hit": hits.mean()}).rename_axis("group_key")
    if not len(actual):
        return ClassifierReport(0, 0, None, None, None, confusion, by_group)
    log_loss = float(-np.log(np.maximum(p[np.arange(len(actual)), actual], LEAST_PROBABILITY)).mean())
    accuracy, by_job = float((told == actual).mean()), float(by_group["hit"].mean())
    return ClassifierReport(len(actual), len(by_group), accuracy, by_job, log_loss, confusion, by_group)


def at_start(
    is_right: NDArray[np.bool_], is_start: NDArray[np.bool_], keys: pd.Series, ceiling: pd.DataFrame
) -> AtStart:
    """is_right, is_start: (n,) of test runs with a label; keys: (n,) their jobs; ceiling: hit by group_key."""
    n = int(is_start.sum())
    hits = ceiling["hit"].reindex(keys.to_numpy()[is_start])
    if not n:
        return AtStart(0, None, None)
    return AtStart(n, float(is_right[is_start].mean()), float(hits.mean()) if hits.notna().any() else None)


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
        found = {table: references.summarise(values, keys) for table, values in tables.items()}
        main = next(iter(found.values()))
        row: dict[str, Any] = {"slice": name, "n_groups": main.n_groups, "n_runs": main.n_runs}
        for table, reference in found.items():
            row |= {table: reference.by_run, f"{table}_group": reference.by_group}
        rows.append(row)
    return pd.DataFrame(rows)


def _references(
    prepared: Prepared, kind: Kind, by_group: dict[str, pd.DataFrame], params: EvaluateParams
) -> dict[str, pd.DataFrame]:
    asked, shapes, tested = params.predict.characterise, prepared.shapes[kind], by_group["D3"]
    keys, is_test = pd.Index(tested.index), prepared.is_part("D3")
    (_, all_counts), (_, counts) = (count_runs(runs, shapes, keys) for runs in (prepared.runs, prepared.runs[is_test]))
    halves = references.split_half(tested, counts, shapes, asked.label_support, asked.posterior, seed=params.seed)
    return {
        "ceiling": references.ceiling(tested, all_counts, shapes, asked.posterior, seed=params.seed),
        "split_half": halves,
        "history_baseline": references.history_baseline(tested, by_group["before"]),
    }
