"""The tables of an evaluation, as Parquet files in a folder."""

from pathlib import Path

import pandas as pd

from tasks.jobs.evaluate import Evaluation
from tasks.jobs.predict.runtime_evaluation import table_of

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def write_tables(found: Evaluation, folder: Path) -> None:
    """predictors, predictions, jobs, and for each normalisation occurrences, importances and confusion."""
    folder.mkdir(parents=True, exist_ok=True)
    table_of(found.runtimes).to_parquet(folder / "predictors.parquet", index=False)
    predictions_of(found).to_parquet(folder / "predictions.parquet", index=False)
    for kind, one in found.labels.items():
        one.occurrences.to_parquet(folder / f"occurrences-{kind}.parquet", index=False)
        one.importances.to_parquet(folder / f"importances-{kind}.parquet", index=False)
        confusion = pd.DataFrame(one.report.confusion).add_prefix("predicted_").rename_axis("actual").reset_index()
        confusion.to_parquet(folder / f"confusion-{kind}.parquet", index=False)


def predictions_of(found: Evaluation) -> pd.DataFrame:
    """One row a test run: run_id, group_key, submitted_at, runtime_s, predicted quantiles p05_s … p95_s, crps_s."""
    rows = found.prepared.runs.iloc[found.runtimes.rows]
    told = found.runtimes.predicted
    quantiles = {f"p{round(100 * level):02d}_s": told.quantile(level) for level in LEVELS}
    columns = rows[["run_id", "group_key", "submitted_at", "runtime_s"]].reset_index(drop=True)
    return columns.assign(**quantiles, crps_s=found.runtimes.scored["model"].crps_by_run)
