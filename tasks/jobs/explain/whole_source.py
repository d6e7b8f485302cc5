"""What makes the runs of a source long and its jobs variable, and whether these explanations stand up to checks."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats
from tasks.jobs.explain.causes import (
    CausesCheck,
    Family,
    by_family,
    check_causes,
)
from tasks.jobs.explain.contributions import (
    Contributions,
    against_usual,
    runtime_parts,
    variable_parts,
)
from tasks.jobs.explain.explaining import Explainer
from tasks.jobs.explain.insights import (
    Insight,
    judge_history,
    judge_insights,
)
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.normalisation import historic_medians
from tasks.jobs.predict.features_earlier import earlier_runs
from tasks.jobs.predict.peers import Histories
from tasks.jobs.predict.periods import assign_periods
from tasks.jobs.predict.targets import label_groups, label_instances
from tasks.jobs.predict.trained import Trained
from tasks.jobs.shape_params import Kind

Places = NDArray[np.intp]


@dataclass(frozen=True)
class HeldOut:
    """runs: of read_runs with median_s (usual time of the job, from D1); features: (n, p), known: of them, row by row.

    test: rows of D3 that the model did not learn from; training: rows that it did; usual: (m,) rows by job and time;
    first, n_usual: (n_test,) the stretch of `usual` that are the runs of its job before each test row."""

    runs: pd.DataFrame
    features: pd.DataFrame
    known: Histories
    test: Places
    training: Places
    usual: Places
    first: Places
    n_usual: Places


def describe_held_out(trained: Trained, runs: pd.DataFrame, *, max_runs: int, usual_runs: int) -> HeldOut:
    """Split as in training, draw evenly over time, and describe by the features of the model.

    runs: of read_runs, all of the source, with ended_at filled; index 0 … n - 1. max_runs: test rows, and training
    rows, at most; usual_runs: earlier runs of a job. Raises BadInput without a run to hold out."""
    asked = trained.params.characterise
    part = assign_periods(runs, asked.split)
    medians = historic_medians(runs.assign(part=part), trained.history_s, asked.normalisation)
    runs = runs.assign(part=part, median_s=medians["median_s"], median_source=medians["median_source"])
    test, training = held_out_places(trained, runs, max_runs), training_places(trained, runs, max_runs)
    usual, first, n_usual = _before(runs, test, usual_runs)
    rows = np.unique(np.concatenate([test, training, usual]))
    asked_of = runs.iloc[rows]
    features, known = trained.features(asked_of, runs), trained.histories(asked_of, runs)
    test, training, usual = (np.searchsorted(rows, some) for some in (test, training, usual))
    runs, features = asked_of.reset_index(drop=True), features.reset_index(drop=True)
    return HeldOut(runs, features, known, test, training, usual, first, n_usual)


def _before(runs: pd.DataFrame, test: Places, most: int) -> tuple[Places, Places, Places]:
    """The latest runs of the job of each test row that had ended before its submission: places in `runs` by job and
    time, (m,), and for each test row the first of its own and how many they are, (n_test,)."""
    earlier = earlier_runs(runs.iloc[test], runs)
    n = np.minimum(earlier.n, most).astype(np.intp)
    first = np.where(n > 0, earlier.last - n + 1, 0).astype(np.intp)
    change = np.zeros(len(earlier.order) + 1, dtype=np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, first + n, -1)
    is_needed = change.cumsum()[:-1] > 0
    moved = np.cumsum(is_needed) - 1  # a stretch stays a stretch among those that are needed
    usual = np.asarray(earlier.order[is_needed], dtype=np.intp)
    return usual, (np.where(n > 0, moved[first], 0) if len(moved) else first).astype(np.intp), n


def held_out_places(trained: Trained, runs: pd.DataFrame, most: int) -> Places:
    """Places of runs of D3 that the model did not learn from, at most so many, evenly over time. runs: all of the log.

    Raises BadInput without one."""
    is_last = assign_periods(runs, trained.params.characterise.split) == "D3"
    is_test = (is_last & ~runs["run_id"].isin(trained.seen["run_id"])).to_numpy()
    if not is_test.any():
        problem = "no run of the last part of the log that the model did not learn from"
        raise BadInput("job log", problem, "later runs, to try the model on", "ingest more of the log")
    return _even(np.flatnonzero(is_test), most)


def training_places(trained: Trained, runs: pd.DataFrame, most: int) -> Places:
    """Places of runs that the model learnt from, at most so many, evenly over time."""
    return _even(np.flatnonzero(runs["run_id"].isin(trained.seen["run_id"])), most)


def _even(places: Places, most: int) -> Places:
    return places[np.unique(np.linspace(0, len(places) - 1, min(most, len(places))).astype(np.intp))]


RUNTIME = "runtime"
LONG = 2.0  # times the usual time: the runs whose reasons are counted
Questions = Mapping[str, Contributions]


@dataclass(frozen=True)
class SourceReasons:
    """Of the held-out runs of a source. families: see family_table; check: on those with a recorded cause; insights:
    by kind of shapes."""

    model_id: str
    families: pd.DataFrame
    check: CausesCheck | None
    insights: dict[Kind, list[Insight]]


def explain_source(explainer: Explainer, params: ExplainParams) -> SourceReasons:
    """Tables and checks over the held-out runs. Raises BadInput if the model has seen all runs."""
    trained, rng = explainer.trained, np.random.default_rng(params.seed)
    held_out = describe_held_out(trained, explainer.runs, max_runs=params.max_runs, usual_runs=params.usual_runs)
    known = runtime_parts(trained.model, held_out.features, held_out.known)
    parts = against_usual(known.rows(held_out.test), known.rows(held_out.usual), held_out.first, held_out.n_usual)
    test = _Test(held_out.runs.iloc[held_out.test], held_out.features.iloc[held_out.test])
    questions: dict[str, Contributions] = {RUNTIME: parts}
    insights: dict[Kind, list[Insight]] = {}
    for kind, classifier in trained.classifiers.items():
        variable = variable_parts(classifier, test.features)
        if variable is not None:
            questions[kind] = variable
            insights[kind] = _insights(trained, kind, variable, test, rng, params)
    check = _check(parts, known.rows(held_out.training), held_out, rng, params)
    families = family_table(questions, test.runs)
    return SourceReasons(explainer.model_id, families, check, insights)


@dataclass(frozen=True)
class _Test:
    """The test runs and their features, row by row."""

    runs: pd.DataFrame
    features: pd.DataFrame

    @property
    def jobs(self) -> NDArray[np.object_]:
        return np.asarray(self.runs["group_key"].to_numpy(dtype=object))


def family_table(questions: Questions, runs: pd.DataFrame) -> pd.DataFrame:
    """What each family of features adds to each question: one row a question and family, the largest first.

    questions: `runtime` (log factors), or a kind of shapes (log-odds of the variable ones), of the same n runs with
    runtime_s and median_s. Columns: question, family, share (of the mean absolute contributions of all families),
    typical_factor (exp of that mean: by how much it changes a run on average, up or down), first_share (how often it
    is the first reason of a run that took at least twice its job's usual time, if any makes it longer; None for the
    shapes), n_runs, n_long."""
    is_long = (runs["runtime_s"] >= LONG * runs["median_s"]).to_numpy()
    tables = []
    for question, parts in questions.items():
        sums, families = by_family(parts)
        size = np.abs(sums).mean(axis=0)
        total = float(size.sum())
        table = pd.DataFrame(
            {
                "question": question,
                "family": families,
                "share": size / total if total > 0 else size,
                "typical_factor": np.exp(size),
                "first_share": _first_shares(sums[is_long], families) if question == RUNTIME else None,
                "n_runs": len(sums),
                "n_long": int(is_long.sum()),
            }
        )
        tables.append(table.sort_values("share", ascending=False, kind="stable"))
    return pd.concat(tables, ignore_index=True)


def _first_shares(sums: Floats, families: tuple[Family, ...]) -> Floats | None:
    if not len(sums):
        return None
    first = sums.argmax(axis=1)[sums.max(axis=1) > 0]
    return np.asarray(np.bincount(first, minlength=len(families)) / len(sums))


def _check(
    parts: Contributions, training: Contributions, held_out: HeldOut, rng: np.random.Generator, params: ExplainParams
) -> CausesCheck | None:
    """The check on the recorded causes of the test runs; the other orders are those of the training runs."""
    runs, test = held_out.runs, held_out.runs.iloc[held_out.test]
    if "recorded_cause" not in runs or test["recorded_cause"].isna().all():
        return None
    return check_causes(
        parts,
        test["recorded_cause"].tolist(),
        test["group_key"].to_numpy(),
        rng,
        importance_of=training,
        frequency_of=runs["recorded_cause"].iloc[held_out.training].tolist(),
        n_resamples=params.n_resamples,
    )


def _insights(
    trained: Trained,
    kind: Kind,
    variable: Contributions,
    test: _Test,
    rng: np.random.Generator,
    params: ExplainParams,
) -> list[Insight]:
    """The insights of the paper on the test runs; variation: |log of runtime over the usual time of the job|."""
    runs = test.runs
    ratio = np.log(np.maximum(runs["runtime_s"], 1e-3) / runs["median_s"].where(runs["median_s"] > 0))
    found = judge_insights(
        variable, test.features, test.jobs, rng, variation=np.abs(ratio), n_resamples=params.n_resamples
    )
    probabilities = trained.classifiers[kind].predict_proba(test.features)
    asked = trained.params
    by_job = label_groups(runs, trained.shapes[kind], asked.labels, asked.characterise.posterior)
    actual = label_instances(runs["group_key"], by_job)
    is_labelled = actual >= 0
    is_right = (probabilities.argmax(axis=1) == actual)[is_labelled]
    n_before = test.features["n_before"][is_labelled] if "n_before" in test.features else np.full(len(is_right), np.nan)
    return [*found, judge_history(n_before, is_right, test.jobs[is_labelled], rng, n_resamples=params.n_resamples)]
