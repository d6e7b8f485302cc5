"""The runs of a source as one frame: what predicting and explaining read, with a column for each SKU."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import NotFound
from tasks.jobs.columns import FLAT_COLUMNS
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

ROWS = Path(__file__).with_name("rows.sql")
SKUS = Path(__file__).with_name("rows_skus.sql")
VERTICES = Path(__file__).with_name("rows_vertices.sql")
OPERATOR, OWN = "op_", "own_"
FINISHED = ("completed", "unknown")
IS_ASKED = """source = $source
    AND (runtime_s IS NOT NULL OR status IN ('running', 'pending'))
    AND ($group_key IS NULL OR group_key = $group_key)
    AND list_contains($statuses, status)
    AND (what_if IS NULL OR $with_what_ifs)
    AND coalesce(submitted_at, started_at) IS NOT NULL"""
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
    `vertices_<sku>` (how many ran on it), `n_vertices`, for each operator of the plan `op_<operator>` (count), and for
    each further column of the table `own_<column>` (numbers; texts where one is no number).
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
    rows, *lists = (file.read_text().format(columns=columns, is_asked=IS_ASKED) for file in (ROWS, SKUS, VERTICES))
    runs = connection.execute(rows, asked).df()
    operators, own = _operators(runs.pop("operators")), _own(runs.pop("features"))
    wide = [_wide(connection.sql(sql, params=asked).to_arrow_table(), len(runs)) for sql in lists]
    return pd.concat([runs, *wide, operators, own], axis=1)


def _wide(long: pa.Table, n_runs: int) -> pd.DataFrame:
    """One column for each figure and SKU: long has place, sku and the figures, one row a run and SKU.

    Counts of a SKU that a run does not list are 0; a run for which the log lists no SKU at all has none of them."""
    place, skus = long["place"].to_numpy(), long["sku"].combine_chunks().dictionary_encode()
    codes, names = skus.indices.to_numpy(), skus.dictionary.to_pylist()
    figures = {name: long[name].to_numpy() for name in long.column_names if name not in ("place", "sku")}
    absent = np.full(n_runs, np.nan)
    absent_count = absent.copy()
    absent_count[place] = 0.0
    found: dict[str, NDArray[np.float64]] = {}
    for sku, code in sorted(zip(names, range(len(names)), strict=True)):
        is_sku = codes == code
        at = place[is_sku]
        for figure, values in figures.items():
            column = (absent_count if figure in COUNTED else absent).copy()
            column[at] = values[is_sku]
            found[f"{figure}_{sku}"] = column
    vertices = [values for name, values in found.items() if name.startswith("vertices_")]
    if vertices:
        found["n_vertices"] = np.sum(vertices, axis=0)
    return pd.DataFrame(found, index=pd.RangeIndex(n_runs))


def _operators(texts: pd.Series) -> pd.DataFrame:
    """A column of counts for each operator; a plan is read once, however many runs have it."""
    if texts.isna().all():
        return pd.DataFrame(index=texts.index)
    codes, plans = pd.factorize(texts)
    counts = pd.DataFrame([json.loads(plan) for plan in plans]).sort_index(axis=1).add_prefix(OPERATOR).fillna(0.0)
    return counts.astype(float).reindex(codes).reset_index(drop=True)  # -1, no plan, is missing


def _own(texts: pd.Series) -> pd.DataFrame:
    """A column for each further column of the table that was read; none where there are none."""
    if texts.isna().all():
        return pd.DataFrame(index=texts.index)
    codes, objects = pd.factorize(texts)
    told = pd.DataFrame([json.loads(one) for one in objects]).sort_index(axis=1).add_prefix(OWN)
    is_text = [told[name].map(lambda value: isinstance(value, str)).any() for name in told]
    kinds = {name: object if text else float for name, text in zip(told, is_text, strict=True)}
    return told.astype(kinds).reindex(codes).reset_index(drop=True)  # -1, nothing further, is missing


def named_columns(connection: Connection, source: str) -> set[str]:
    """The further columns that were asked for by name when the files of a source were read, not as one of all."""
    read = connection.execute(
        "SELECT options FROM ops.files WHERE word = 'jobs' AND source = $source", {"source": source}
    ).fetchall()
    return {str(name) for (options,) in read for name in json.loads(options or "{}").get("features", ())} - {"all"}


ENDS = Path(__file__).with_name("log_end.sql")


def log_end(connection: Connection, source: str, *, with_unfinished: bool = False) -> pd.Timestamp:
    """The moment just after the last submission or end of a finished run of a source, UTC, as predicting.end_of has it.

    with_unfinished: of any run, also submitted and started ones that go on. Raises NotFound for a source without."""
    found = connection.execute(ENDS.read_text(), {"source": source, "with_unfinished": with_unfinished}).fetchone()
    if found is None or found[0] is None:
        raise NotFound(f"source {source!r} has no run that has ended; fill it with 'whorl jobs ingest FILE'")
    return pd.Timestamp(found[0])
