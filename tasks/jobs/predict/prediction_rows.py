"""jobs.predictions: the next run of each job of a source, written anew as a whole and read back."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.outlook.costliest import mean_above
from tasks.jobs.predict.champions import WORD, needed_champion
from tasks.jobs.predict.predicting import NextRuns, predict_next, shape_shares
from tasks.jobs.predict.rows import fetch_runs
from tasks.jobs.predict.trained import Trained
from tasks.jobs.risks import RISKS, Risk
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import Connection, fetch, reading, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
FAR_OUT = 2.0  # times the usual median


@dataclass(frozen=True)
class Predictions:
    """What stands in jobs.predictions: which model and files it rests on, for which moment, and how many jobs."""

    model_id: str
    data_version: str
    predicted_at: pd.Timestamp
    n_jobs: int


def predict_source(warehouse: Warehouse, source: str) -> Predictions:
    """Predict the next run of every job of a source by its champion, and write jobs.predictions; twice changes nothing.

    Raises NotFound if the source has no runs or no model yet, BadInput if the model's files are broken."""
    card, trained = needed_champion(warehouse, source)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        version = data_version(connection, WORD, source)
        past = fetch_runs(connection, source)
    if past.empty:
        raise BadInput(f"source {source!r}", "no finished run with a runtime", "runs that have ended")
    found = predict_next(trained, past)
    at = pd.Timestamp(found.conditions["submitted_at"].iloc[0])
    rows = table_of_next(trained, found).assign(
        source=source, model_id=card.model_id, predicted_at=at, data_version=version
    )
    with writing(warehouse) as connection, transaction(connection):
        _write(connection, source, rows)
    return Predictions(card.model_id, version, at, len(rows))


def table_of_next(trained: Trained, found: NextRuns) -> pd.DataFrame:
    """One row a job: group_key, n_before, last_at, usual_s and what was predicted, as jobs.predictions names it."""
    told, usual_s = found.predicted, found.jobs["usual_s"].to_numpy(dtype=float)
    times = told.quantile(np.broadcast_to(LEVELS, (told.n, len(LEVELS))))
    quantiles = {f"p{round(100 * level):02d}_s": times[:, place] for place, level in enumerate(LEVELS)}
    is_far = 1 - told.cdf_below(FAR_OUT * usual_s)
    table = found.jobs.assign(
        **quantiles,
        exceeds_2x_share=np.where(usual_s > 0, np.clip(is_far, 0.0, 1.0), np.nan),
        expected_excess_s=mean_above(told, usual_s),
        shape_ratio=pd.array([pd.NA] * told.n, dtype="Int32"),
        shape_delta=pd.array([pd.NA] * told.n, dtype="Int32"),
    )
    for kind, shares in shape_shares(trained, found).items():
        table[f"shape_{kind}"] = pd.array(shares.argmax(axis=1), dtype="Int32")
    return table


def read_predictions(
    warehouse: Warehouse, source: str, *, by: Risk = "chance", min_before: int = 0, limit: int | None = None
) -> pd.DataFrame:
    """Rows of jobs.predictions of jobs with enough finished runs, the riskiest first; none if nothing was predicted.

    by: chance to take twice the usual time, expected time beyond the usual, or the time that 95 % stay under."""
    return fetch(
        warehouse,
        f"""SELECT * EXCLUDE (source) FROM jobs.predictions WHERE source = $source AND n_before >= $min_before
        ORDER BY {RISKS[by]} DESC NULLS LAST, expected_excess_s DESC, group_key LIMIT $limit""",
        {"source": source, "min_before": min_before, "limit": limit},
    )


def are_fresh(warehouse: Warehouse, source: str, model_id: str) -> bool:
    """Whether jobs.predictions holds what this model says of the files that the source has now."""
    with reading(warehouse) as connection:
        made = connection.execute(
            "SELECT DISTINCT model_id, data_version FROM jobs.predictions WHERE source = $source", {"source": source}
        ).fetchall()
        return made == [(model_id, data_version(connection, WORD, source))]


def _write(connection: Connection, source: str, rows: pd.DataFrame) -> None:
    connection.execute("DELETE FROM jobs.predictions WHERE source = $source", {"source": source})
    connection.register("new_rows", rows)
    connection.execute("INSERT INTO jobs.predictions BY NAME SELECT * FROM new_rows").fetchall()
    connection.unregister("new_rows")
