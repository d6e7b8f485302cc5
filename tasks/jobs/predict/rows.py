"""The runs of a source as one frame: what predicting and explaining read, with a column for each SKU."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.columns import FLAT_COLUMNS
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

ROWS = Path(__file__).with_name("rows.sql")
SKUS = Path(__file__).with_name("rows_skus.sql")
VERTICES = Path(__file__).with_name("rows_vertices.sql")
OPERATOR = "op_"
FINISHED = ("completed", "unknown")
COUNTED = ("offered", "vertices")  # 0 for a SKU that a run does not list


def read_runs(
    warehouse: Warehouse,
    source: str,
    *,
    statuses: Sequence[str] = FINISHED,
    with_what_ifs: bool = False,
    group_key: str | None = None,
) -> pd.DataFrame:
    """Finished runs with a runtime and a submission, by submitted_at and run_id: one row a run, index 0 … n - 1.

    Columns: those of jobs.runs but the nested ones; and, where the log has them, for each SKU `offered_<sku>` (0 or
    1), `sku_load_mean_<sku>`, `sku_load_sd_<sku>`, `sku_free_tokens_<sku>` (missing where it was not offered),
    `vertices_<sku>` (how many ran on it), `n_vertices`, and for each operator of the plan `op_<operator>` (count).
    A start stands in for a missing submission. Of statuses running and pending the runtime is missing. group_key: only
    the runs of that job, with the SKUs and operators that they name. Raises NotFound for a source without runs,
    BadInput if it mixes simulated with measured runs."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        return fetch_runs(connection, source, statuses=statuses, with_what_ifs=with_what_ifs, group_key=group_key)


def fetch_runs(
    connection: Connection,
    source: str,
    *,
    statuses: Sequence[str] = FINISHED,
    with_what_ifs: bool = False,
    group_key: str | None = None,
) -> pd.DataFrame:
    """The same over a connection that is open already."""
    asked = {
        "source": source, "statuses": list(statuses), "with_what_ifs": with_what_ifs, "group_key": group_key
    }  # fmt: skip
    columns = ", ".join(name for name in FLAT_COLUMNS if name not in ("submitted_at", "operators"))
    runs = connection.execute(ROWS.read_text().format(columns=columns), asked).df()
    operators = _operators(runs.pop("operators"))
    wide = [_wide(connection.execute(file.read_text(), asked).df(), runs) for file in (SKUS, VERTICES)]
    return pd.concat([runs, *wide, operators], axis=1)


def _wide(long: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """One column for each figure and SKU: long has run_id, sku and the figures, one row a run and SKU.

    Counts of a SKU that a run does not list are 0; a run for which the log lists no SKU at all has none of them."""
    long = long[long["run_id"].isin(runs["run_id"])]
    is_listed = runs["run_id"].isin(long["run_id"]).to_numpy()
    found: dict[str, NDArray[np.float64]] = {}
    for sku, of_sku in long.groupby("sku"):
        for figure, values in of_sku.set_index("run_id").drop(columns="sku").reindex(runs["run_id"]).items():
            x = values.to_numpy(dtype=float, na_value=np.nan)
            is_zero = is_listed & np.isnan(x) & (figure in COUNTED)
            found[f"{figure}_{sku}"] = np.where(is_zero, 0.0, x)
    vertices = [values for name, values in found.items() if name.startswith("vertices_")]
    if vertices:
        found["n_vertices"] = np.sum(vertices, axis=0)
    return pd.DataFrame(found, index=runs.index)


def _operators(texts: pd.Series) -> pd.DataFrame:
    """A column of counts for each operator; a plan is read once, however many runs have it."""
    if texts.isna().all():
        return pd.DataFrame(index=texts.index)
    codes, plans = pd.factorize(texts)
    counts = pd.DataFrame([json.loads(plan) for plan in plans]).sort_index(axis=1).add_prefix(OPERATOR).fillna(0.0)
    return counts.astype(float).reindex(codes).reset_index(drop=True)  # -1, no plan, is missing
