"""What makes the runs of a source long and its jobs variable, and the rows of this in the warehouse."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.explain.contributions import Contributions, against_usual, by_family, runtime_parts, variable_parts
from tasks.jobs.explain.insights import Insight, judge_history, judge_insights
from tasks.jobs.explain.reasons import USUAL_RUNS, Explainer, RunReasons
from tasks.jobs.normalisation import historic_medians
from tasks.jobs.params import LABEL_SUPPORT, ExplainParams, Kind
from tasks.jobs.predict.labels import label_groups, label_instances
from tasks.jobs.predict.peers import Histories, earlier_runs
from tasks.jobs.predict.preparation import assign_periods
from tasks.jobs.predict.trained import Trained
from tasks.warehouse.connection import Connection, reading, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

Places = NDArray[np.intp]
MAX_RUNS = 4000  # held-out runs that are explained, an even sample over time of more
SEED = 0  # of the resamples
RUNTIME = "runtime"
LONG = 2.0  # times the usual time: the runs whose reasons are counted
SHORTEST_S = 1e-3


@dataclass(frozen=True)
class HeldOut:
    """runs: of read_runs with median_s (usual time of the job, from D1); features: (n, p), known: of them, row by row.

    test: rows of D3 that the model did not learn from; usual: (m,) rows, the latest runs of the job before each test
    row, one stretch after the other; first, n_usual: (n_test,) where each begins and how long it is."""

    runs: pd.DataFrame
    features: pd.DataFrame
    known: Histories
    test: Places
    usual: Places
    first: Places
    n_usual: Places


def describe_held_out(
    trained: Trained, runs: pd.DataFrame, *, max_runs: int = MAX_RUNS, usual_runs: int = USUAL_RUNS
) -> HeldOut:
    """Split as in training, draw evenly over time, and describe by the features of the model.

    runs: of read_runs, all of the source, with ended_at filled; index 0 … n - 1. max_runs: test rows at most;
    usual_runs: earlier runs of a job. Raises BadInput without a run to hold out."""
    asked = trained.params.characterise
    part = assign_periods(runs, asked.split)
    medians = historic_medians(runs.assign(part=part), trained.history_s)
    runs = runs.assign(part=part, median_s=medians["median_s"], median_source=medians["median_source"])
    test = held_out_places(trained, runs, max_runs)
    earlier = earlier_runs(runs.iloc[test], runs)  # those of the job that had ended before the submission, by their end
    n_usual = np.minimum(earlier.n, usual_runs).astype(np.intp)
    stretches = [earlier.order[last + 1 - n : last + 1] for last, n in zip(earlier.last, n_usual, strict=True)]
    usual, first = np.concatenate(stretches).astype(np.intp), np.cumsum(n_usual) - n_usual
    rows = np.unique(np.concatenate([test, usual]))
    asked_of = runs.iloc[rows]
    features, known = trained.features(asked_of, runs), trained.histories(asked_of, runs)
    test, usual = (np.searchsorted(rows, some) for some in (test, usual))
    runs, features = asked_of.reset_index(drop=True), features.reset_index(drop=True)
    return HeldOut(runs, features, known, test, usual, first, n_usual)


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


@dataclass(frozen=True)
class SourceReasons:
    """Of the held-out runs of a source. families: see family_table; insights: by kind of shapes."""

    model_id: str
    families: pd.DataFrame
    insights: dict[Kind, list[Insight]]


def explain_source(explainer: Explainer) -> SourceReasons:
    """Families and insights over the held-out runs. Raises BadInput if the model has seen all runs."""
    trained, rng = explainer.trained, np.random.default_rng(SEED)
    held_out = describe_held_out(trained, explainer.runs)
    known = runtime_parts(trained.model, held_out.features, held_out.known)
    parts = against_usual(known.rows(held_out.test), known.rows(held_out.usual), held_out.first, held_out.n_usual)
    runs, features = held_out.runs.iloc[held_out.test], held_out.features.iloc[held_out.test]
    questions: dict[str, Contributions] = {RUNTIME: parts}
    insights: dict[Kind, list[Insight]] = {}
    for kind, classifier in trained.classifiers.items():
        variable = variable_parts(classifier, features)
        if variable is not None:
            questions[kind] = variable
            insights[kind] = _insights(trained, kind, variable, runs, features, rng)
    return SourceReasons(explainer.model_id, family_table(questions, runs), insights)


def family_table(questions: Mapping[str, Contributions], runs: pd.DataFrame) -> pd.DataFrame:
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
        size, long = np.abs(sums).mean(axis=0), sums[is_long]
        first_share, total = None, float(size.sum())
        if question == RUNTIME and len(long):
            first = long.argmax(axis=1)[long.max(axis=1) > 0]
            first_share = np.bincount(first, minlength=len(families)) / len(long)
        columns = {"question": question, "family": families, "share": size / total if total > 0 else size}
        columns |= {"typical_factor": np.exp(size), "first_share": first_share}
        table = pd.DataFrame({**columns, "n_runs": len(sums), "n_long": int(is_long.sum())})
        tables.append(table.sort_values("share", ascending=False, kind="stable"))
    return pd.concat(tables, ignore_index=True)


def _insights(
    trained: Trained,
    kind: Kind,
    variable: Contributions,
    runs: pd.DataFrame,
    features: pd.DataFrame,
    rng: np.random.Generator,
) -> list[Insight]:
    """The insights of the paper on the test runs; variation: |log of runtime over the usual time of the job|."""
    jobs = np.asarray(runs["group_key"].to_numpy(dtype=object))
    ratio = np.log(np.maximum(runs["runtime_s"], SHORTEST_S) / runs["median_s"].where(runs["median_s"] > 0))
    found = judge_insights(variable, features, jobs, rng, variation=np.abs(ratio).to_numpy())
    by_job = label_groups(runs, trained.shapes[kind], LABEL_SUPPORT)
    actual = label_instances(runs["group_key"], by_job)
    known = actual >= 0
    is_right = trained.classifiers[kind].predict_proba(features).argmax(axis=1) == actual
    n_before = features.get("n_before", pd.Series(np.nan, index=features.index))
    return [*found, judge_history(n_before[known], is_right[known], jobs[known], rng)]


WORD = "jobs"
ORDERS = {"cause_families": "question, rank", "insights": "kind, rank"}
OF_RUN = ("source", "run_id", "group_key", "model_id", "runtime_s", "usual_s", "expected_s")
OF_REASON = ("family", "feature", "value", "typical", "compared_with", "factor")


@dataclass(frozen=True)
class Explained:
    """The rows of a source: of jobs.cause_families, jobs.insights, and what they are of."""

    source: str
    model_id: str
    data_version: str
    families: pd.DataFrame
    insights: pd.DataFrame


def write_source(warehouse: Warehouse, source: str, found: SourceReasons, params: ExplainParams) -> None:
    """Write families and insights of a source anew, in one transaction; twice changes nothing."""
    frames = {
        "cause_families": found.families.assign(rank=found.families.groupby("question").cumcount() + 1),
        "insights": pd.DataFrame([row for kind, some in found.insights.items() for row in _insight_rows(kind, some)]),
    }
    parameters = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    with writing(warehouse) as connection, transaction(connection):
        made_of = {"data_version": data_version(connection, WORD, source), "parameters": parameters}
        for name, rows in (*frames.items(), ("explanations", pd.DataFrame([made_of]))):
            _replace(connection, name, source, rows.assign(source=source, model_id=found.model_id))


def write_reasons(warehouse: Warehouse, source: str, found: Sequence[RunReasons]) -> int:
    """Write the reasons of a source anew, in one transaction; returns the number of rows."""
    rows = [row for one in found for row in reason_rows(one)]
    with writing(warehouse) as connection, transaction(connection):
        _replace(connection, "reasons", source, pd.DataFrame(rows))
    return len(rows)


def read_source(warehouse: Warehouse, source: str, model_id: str) -> Explained | None:
    """What write_source wrote, if it was of this model and the present files; else None."""
    asked = {"source": source}
    with reading(warehouse) as connection:
        sql = "SELECT model_id, data_version FROM jobs.explanations WHERE source = $source"
        version = data_version(connection, WORD, source)
        if connection.execute(sql, asked).fetchone() != (model_id, version):
            return None
        frames = [
            connection.execute(f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY {order}", asked).df()
            for name, order in ORDERS.items()
        ]
    return Explained(source, model_id, version, *frames)


def reason_rows(found: RunReasons) -> list[dict[str, Any]]:
    """The reasons of one run as rows of jobs.reasons."""
    same = {name: getattr(found, name) for name in OF_RUN}
    return [
        {**same, "question": question, "rank": rank, "words": one.text, **{n: getattr(one, n) for n in OF_REASON}}
        for question, explanation in (("runtime", found.runtime), ("variation", found.variation))
        for rank, one in enumerate(explanation.reasons if explanation else (), 1)
    ]


def _insight_rows(kind: Kind, insights: Sequence[Insight]) -> list[dict[str, Any]]:
    rows = []
    for rank, one in enumerate(insights, 1):
        row = {"kind": kind, "rank": rank, "insight": one.name, "words": one.words, "verdict": one.verdict}
        row |= {"measured_verdict": one.measured_verdict, "n_runs": one.model.n_runs, "reason": one.reason}
        for prefix, found in (("", one.model), ("measured_", one.measured)):
            interval = (found.value, found.low, found.high) if found else (None,) * 3
            row |= {f"{prefix}{name}": end for name, end in zip(("rho", "low", "high"), interval, strict=True)}
        rows.append(row)
    return rows


def _replace(connection: Connection, name: str, source: str, rows: pd.DataFrame) -> None:
    connection.execute(f"DELETE FROM jobs.{name} WHERE source = $source", {"source": source})
    if len(rows):
        connection.register("new_rows", rows)
        connection.execute(f"INSERT INTO jobs.{name} BY NAME SELECT * FROM new_rows")
        connection.unregister("new_rows")
