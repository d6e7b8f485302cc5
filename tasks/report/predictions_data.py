"""What the page about shapes, predictions, reasons and what-ifs shows, fetched over one connection."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.control.outcomes import MEASURES
from tasks.jobs.normalisation import Counts
from tasks.jobs.params import (
    RISKS,
    ReportParams,
    Risk,
)
from tasks.jobs.shape_params import Kind
from tasks.jobs.summary import refuse_mixture
from tasks.report.predictions_shapes import KindOfShapes, fetch_shapes
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

WORD = "jobs"
KINDS: tuple[Kind, ...] = ("ratio", "delta")
# Any row in one of these is reason enough for the page.
TABLES = ("shapes", "model_figures", "predictions", "reasons", "cause_families", "what_ifs")
# The figures of the model in use; before the first decision, of any that was trained.
MEASURED_MODEL = """
WITH measured AS (SELECT DISTINCT model_id FROM jobs.model_figures WHERE source = $source),
in_use AS (
    SELECT arg_max(model_id, sequence) AS model_id FROM ops.champions
    WHERE word = 'jobs' AND source = $source AND kind = 'runtime'
),
final AS (
    SELECT measured.model_id FROM measured LEFT JOIN in_use USING (model_id)
    ORDER BY in_use.model_id IS NULL, measured.model_id DESC LIMIT 1
)
SELECT * FROM final
"""
PREDICTED = """
    SELECT any_value(model_id) AS model_id, any_value(data_version) AS data_version, max(predicted_at) AS predicted_at,
        count(*) AS n_jobs, count(*) FILTER (n_before >= $least) AS n_listed
    FROM jobs.predictions WHERE source = $source HAVING count(*) > 0
"""
ORDERS = {
    "cause_families": "question, rank",
    "cause_checks": "cause, order_name",
    "insights": "kind DESC, rank",
    "explanations": "model_id",
    "what_ifs": "scenario, measure",
    "what_if_pairs": "scenario",
    "what_if_moves": "scenario, kind, from_shape, to_shape",
    "what_if_claims": "scenario, about, place",
}
# Each explained run with its largest reason to be long, or to vary; some have none that was known at submission.
LONG_RUNS = """
    SELECT group_key, run_id, any_value(model_id) AS model_id, any_value(runtime_s) AS runtime_s,
        any_value(usual_s) AS usual_s, any_value(expected_s) AS expected_s,
        arg_min(words, rank) FILTER (factor > 1) AS words
    FROM jobs.reasons WHERE source = $source AND question = 'runtime' AND run_id IS NOT NULL
    GROUP BY group_key, run_id ORDER BY any_value(runtime_s) / any_value(usual_s) DESC NULLS LAST, run_id
"""
NEXT_RUNS = """
    SELECT group_key, any_value(model_id) AS model_id, any_value(usual_s) AS usual_s,
        any_value(expected_s) AS expected_s, arg_min(words, rank) FILTER (factor > 1) AS words
    FROM jobs.reasons WHERE source = $source AND question = 'variation' AND run_id IS NULL
    GROUP BY group_key ORDER BY any_value(expected_s) / any_value(usual_s) DESC NULLS LAST, group_key
"""


@dataclass(frozen=True)
class NextRuns:
    """Rows of jobs.predictions, the riskiest jobs first by either order, and what all of them rest on.

    n_listed: jobs with at least `least` finished runs, which the tables are of."""

    model_id: str
    data_version: str
    predicted_at: pd.Timestamp
    n_jobs: int
    n_listed: int
    least: int
    by_chance: pd.DataFrame
    by_excess: pd.DataFrame


@dataclass(frozen=True)
class Explained:
    """Rows of jobs.cause_families, cause_checks, insights and explanations; long_runs and next_runs: of jobs.reasons,
    one row a run with its first reason. Each may be empty."""

    families: pd.DataFrame
    checks: pd.DataFrame
    insights: pd.DataFrame
    made_of: pd.DataFrame
    long_runs: pd.DataFrame
    next_runs: pd.DataFrame


@dataclass(frozen=True)
class AnsweredWhatIf:
    """One scenario. changes: rows of jobs.what_ifs by measure; pairs: its row of jobs.what_if_pairs; moves: runs by
    shape before and after, (k, k), of ratios; claims: sentences by what they are about."""

    scenario: str
    edits: str
    model_id: str
    changes: pd.DataFrame
    pairs: dict[str, Any] | None
    moves: Counts
    claims: dict[str, list[str]]


@dataclass(frozen=True)
class PredictionsData:
    """Everything of the page; data_version: of the files that the source has now."""

    source: str
    data_version: str
    is_simulated: bool
    shapes: dict[Kind, KindOfShapes]
    measured_model_id: str | None
    figures: dict[str, float | None]
    next_runs: NextRuns | None
    explained: Explained
    what_ifs: list[AnsweredWhatIf]


def has_predictions(warehouse: Warehouse, source: str) -> bool:
    """Whether any table of the page has rows of this source."""
    asked = " UNION ALL ".join(f"(SELECT 1 FROM jobs.{name} WHERE source = $source LIMIT 1)" for name in TABLES)
    with reading(warehouse) as connection:
        return connection.execute(asked, {"source": source}).fetchone() is not None


def fetch_predictions_data(warehouse: Warehouse, source: str, params: ReportParams) -> PredictionsData:
    """Everything the page needs.

    Raises NotFound if the source has no runs, BadInput if it mixes simulated with measured ones."""
    with reading(warehouse) as connection:
        n_simulated, _ = refuse_mixture(connection, source)
        model_id, figures = _figures(connection, source)
        kinds = {kind: fetch_shapes(connection, source, kind) for kind in KINDS}
        return PredictionsData(
            source=source,
            data_version=data_version(connection, WORD, source),
            is_simulated=n_simulated > 0,
            shapes={kind: found for kind, found in kinds.items() if found is not None},
            measured_model_id=model_id,
            figures=figures,
            next_runs=_next_runs(connection, source, params.n_rows, params.min_support),
            explained=_explained(connection, source),
            what_ifs=_what_ifs(connection, source),
        )


def fetch_what_ifs(warehouse: Warehouse, source: str) -> list[AnsweredWhatIf]:
    """The answers to what-if questions that stand in the tables of a source, by scenario."""
    with reading(warehouse) as connection:
        return _what_ifs(connection, source)


def _figures(connection: Connection, source: str) -> tuple[str | None, dict[str, float | None]]:
    """The model whose figures are shown, and its figures by key; none for a source without a trained model."""
    found = connection.execute(MEASURED_MODEL, {"source": source}).fetchone()
    if found is None:
        return None, {}
    rows = connection.execute(
        "SELECT key, value FROM jobs.model_figures WHERE source = $source AND model_id = $model_id",
        {"source": source, "model_id": found[0]},
    ).fetchall()
    return str(found[0]), dict(rows)


def _next_runs(connection: Connection, source: str, n_rows: int, least: int) -> NextRuns | None:
    found = connection.execute(PREDICTED, {"source": source, "least": least}).df()
    if found.empty:
        return None
    one = found.iloc[0]
    return NextRuns(
        model_id=str(one["model_id"]),
        data_version=str(one["data_version"]),
        predicted_at=pd.Timestamp(one["predicted_at"]),
        n_jobs=int(one["n_jobs"]),
        n_listed=int(one["n_listed"]),
        least=least,
        by_chance=_riskiest(connection, source, "chance", n_rows, least),
        by_excess=_riskiest(connection, source, "excess", n_rows, least),
    )


def _riskiest(connection: Connection, source: str, by: Risk, n_rows: int, least: int) -> pd.DataFrame:
    return connection.execute(
        f"""SELECT * FROM jobs.predictions WHERE source = $source AND n_before >= $least
        ORDER BY {RISKS[by]} DESC NULLS LAST, expected_excess_s DESC, group_key LIMIT $n_rows""",
        {"source": source, "least": least, "n_rows": n_rows},
    ).df()


def _explained(connection: Connection, source: str) -> Explained:
    asked = {"source": source}
    return Explained(
        families=_rows(connection, source, "cause_families"),
        checks=_rows(connection, source, "cause_checks"),
        insights=_rows(connection, source, "insights"),
        made_of=_rows(connection, source, "explanations"),
        long_runs=connection.execute(LONG_RUNS, asked).df(),
        next_runs=connection.execute(NEXT_RUNS, asked).df(),
    )


def _what_ifs(connection: Connection, source: str) -> list[AnsweredWhatIf]:
    names = ("what_ifs", "what_if_pairs", "what_if_moves", "what_if_claims")
    found = [_rows(connection, source, name) for name in names]
    scenarios = found[0]["scenario"].unique()
    return [_answered(str(name), *(rows[rows["scenario"] == name] for rows in found)) for name in scenarios]


def _answered(
    name: str, changes: pd.DataFrame, pairs: pd.DataFrame, moves: pd.DataFrame, claims: pd.DataFrame
) -> AnsweredWhatIf:
    one = changes.iloc[0]
    by_measure = changes.set_index("measure").reindex(list(MEASURES))
    told = {str(about): [str(line) for line in lines["claim"]] for about, lines in claims.groupby("about")}
    pair: dict[str, Any] | None = None
    if len(pairs):
        pair = {str(key): None if pd.isna(value) else value for key, value in pairs.iloc[0].items()}
    counts = _migration(moves[moves["kind"] == "ratio"])
    return AnsweredWhatIf(name, str(one["edits"]), str(one["model_id"]), by_measure, pair, counts, told)


def _migration(moves: pd.DataFrame) -> Counts:
    """Runs by shape before (rows) and after (columns): (k, k) up to the last shape that any run has."""
    k = int(moves[["from_shape", "to_shape"]].to_numpy().max()) + 1 if len(moves) else 0
    counts = np.zeros((k, k), dtype=np.int64)
    counts[moves["from_shape"], moves["to_shape"]] = moves["n_runs"]
    return counts


def _rows(connection: Connection, source: str, name: str) -> pd.DataFrame:
    return connection.execute(
        f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY {ORDERS[name]}", {"source": source}
    ).df()
