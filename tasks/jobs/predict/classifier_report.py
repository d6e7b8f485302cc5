"""How right predicted shapes are: by run and by job, shape by shape, and by how much is known of a job."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tasks.jobs.pmf import Counts, Floats, pmfs_of
from tasks.jobs.predict.calibration import log_loss
from tasks.jobs.predict.classifier_lightgbm import LightGbm
from tasks.jobs.predict.classifier_members import Member
from tasks.jobs.predict.classifiers import Fitted, Tempered, Vote
from tasks.jobs.predict.references import summarise

OCCURRENCES = ("0", "1-5", "6-10", "11-15", "16-50", "> 50")  # Figure 7(b), and none
UPPER = (0, 5, 10, 15, 50)


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

    @property
    def row_shares(self) -> Floats:
        """The confusion matrix with rows of sum 1: of the runs of a shape, the share told each; missing for none."""
        return pmfs_of(self.confusion)


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
    accuracy, by_job = float((told == actual).mean()), float(by_group["hit"].mean())
    return ClassifierReport(len(actual), len(by_group), accuracy, by_job, log_loss(p, actual), confusion, by_group)


def by_occurrences(tables: Mapping[str, pd.DataFrame], n_before: pd.Series) -> pd.DataFrame:
    """Accuracy by the number of earlier runs of a job: one row for each of OCCURRENCES that has jobs.

    tables: name to n_runs and hit by group_key: the by_group of a report, and the references beside it; n_before: by
    group_key. Columns: n_groups, n_runs, and for each name `<name>` and `<name>_group`, weighed by runs and by jobs;
    missing where nothing is known. All are taken over the jobs of the first table. Source: Figure 7(b)."""
    first = next(iter(tables.values()))
    places = np.searchsorted(UPPER, n_before.reindex(first.index).fillna(0).to_numpy(), side="left")
    return _sliced(tables, pd.Series(np.array(OCCURRENCES)[places], index=first.index), OCCURRENCES)


def by_source(tables: Mapping[str, pd.DataFrame], sources: pd.Series) -> pd.DataFrame:
    """The same by where the median of a job comes from: history, before, predicted. sources: by group_key."""
    first = next(iter(tables.values()))
    named = sources.astype(object).reindex(first.index)
    return _sliced(tables, named, tuple(dict.fromkeys(named.dropna())))


def importances(fitted: Fitted) -> pd.DataFrame:
    """feature, importance (1 in sum), kind, by falling importance; no rows where a classifier has none.

    kind: gain, the fall in loss over all splits (LightGBM), or gini, that in impurity (random forest). Source: 5.2."""
    inner: Any = fitted.inner if isinstance(fitted, Tempered) else fitted
    columns: tuple[str, ...] = ()
    values, kind = np.empty(0), "none"
    if isinstance(inner, LightGbm):
        columns, values, kind = inner.columns, inner.booster.feature_importance("gain"), "gain"
    elif isinstance(inner, Member) and inner.filling is None and hasattr(inner.model, "estimators_"):
        columns, values, kind = inner.columns, inner.model.feature_importances_, "gini"
    table = pd.DataFrame({"feature": columns, "importance": values / (values.sum() or 1.0), "kind": kind})
    return table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def member_importances(fitted: Fitted) -> dict[str, pd.DataFrame]:
    """importances of each member of a vote that has them, by its name."""
    members = fitted.members if isinstance(fitted, Vote) else (("classifier", fitted),)
    found = {name: importances(member) for name, member in members}
    return {name: table for name, table in found.items() if len(table)}


def _sliced(tables: Mapping[str, pd.DataFrame], names: pd.Series, order: tuple[str, ...]) -> pd.DataFrame:
    rows = []
    for slice_ in order:
        keys = names.index[(names == slice_).to_numpy()]
        if not len(keys):
            continue
        found = {name: summarise(table, keys) for name, table in tables.items()}
        main = next(iter(found.values()))
        row: dict[str, Any] = {"slice": slice_, "n_groups": main.n_groups, "n_runs": main.n_runs}
        for name, reference in found.items():
            row |= {name: reference.by_run, f"{name}_group": reference.by_group}
        rows.append(row)
    return pd.DataFrame(rows)
