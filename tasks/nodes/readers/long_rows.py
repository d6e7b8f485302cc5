"""Rows of metrics as executions: rows of one id together, what contradicts the first of them refused."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.nodes.benchmark_names import aspect_of
from tasks.nodes.columns import EXECUTION_COLUMNS, EXECUTIONS_SCHEMA, METRICS_SCHEMA
from tasks.nodes.execution import COUNTED
from tasks.nodes.landed import framed
from tasks.nodes.readers.table_file import TableFile
from tasks.nodes.template_hashes import template_hash
from tasks.reading import Chunk, all_refusals, refusals

SHARED = tuple(name for name in EXECUTION_COLUMNS if name not in (*COUNTED, "execution_id"))
Rows = Mapping[str, NDArray[Any]]


def grouped(table: TableFile, rows: Rows, faults: NDArray[np.object_]) -> Chunk:
    """The executions of a table. rows: all columns of a long table; faults: why single rows cannot be used."""
    frame = pd.DataFrame(dict(rows)).assign(row=np.arange(len(faults)))[faults == ""]
    code, ids = pd.factorize(frame["execution_id"])
    frame = frame.assign(code=code)
    told = frame.groupby("code", sort=True)[list(SHARED)].first()
    contradictions = _contradictions(frame, told)
    faults[frame["row"].to_numpy()] = contradictions
    frame = frame[contradictions == ""]
    is_twice = frame.duplicated(["code", "metric"]).to_numpy()
    faults[frame["row"].to_numpy()[is_twice]] = [
        f"metric {metric} stands twice in execution {ids[code]}; the first counts"
        for metric, code in zip(frame["metric"][is_twice], frame["code"][is_twice], strict=True)
    ]
    frame = frame[~is_twice]
    bad = np.flatnonzero(faults != "")
    refused = refusals(table.places[bad], faults[bad].tolist(), [table.raw(int(row)) for row in bad])
    refused = all_refusals([table.refused, refused])
    if not len(frame):
        return Chunk(pd.DataFrame(), refused, {})
    executions = _executions(table, frame, told, ids)
    return Chunk(framed(executions), refused, {"metrics": framed(_metrics(frame, executions, ids))})


def _contradictions(frame: pd.DataFrame, told: pd.DataFrame) -> NDArray[np.object_]:
    """For each row what it says against the first row of its execution that says anything; empty: nothing."""
    reasons: NDArray[np.object_] = np.full(len(frame), "", dtype=object)
    code = frame["code"].to_numpy()
    for name in SHARED:
        own, first = frame[name], told[name].to_numpy()[code]
        is_other = np.asarray(own.to_numpy() != first, dtype=bool)
        differs = own.notna().to_numpy() & is_other & (reasons == "")
        for at in np.flatnonzero(differs).tolist():
            reasons[at] = f"{name} {own.iloc[at]} in an execution of {first[at]}; expected one an execution"
    return reasons


def _executions(table: TableFile, frame: pd.DataFrame, told: pd.DataFrame, ids: pd.Index) -> pa.Table:
    by_code = frame.groupby("code", sort=True)
    places = table.places[by_code["row"].min().to_numpy()]
    kept = told.loc[by_code["row"].min().index]
    columns: dict[str, Any] = {name: _with_none(name, kept[name]) for name in SHARED}
    aspects = {name: aspect_of(name) for name in set(columns["benchmark"])}
    columns["aspect"] = [
        one or aspects[name] for one, name in zip(columns["aspect"], columns["benchmark"], strict=True)
    ]
    columns["status"] = [one or "completed" for one in columns["status"]]
    columns["template_hash"] = _hashes(columns["template"], columns["template_hash"])
    columns["is_simulated"] = [table.is_simulated if one is None else one for one in columns["is_simulated"]]
    columns["missing_metrics"] = _missing_metrics(frame)
    columns |= {
        "execution_id": ids.to_numpy()[kept.index],
        "n_metrics": by_code["value"].count().to_numpy(),
        "n_rows": by_code.size().to_numpy(),
        "place": places,
    }
    arrays = {field.name: _array(columns[field.name], field.type) for field in EXECUTIONS_SCHEMA}
    return pa.table(arrays, schema=EXECUTIONS_SCHEMA)


def _with_none(name: str, column: pd.Series) -> NDArray[Any]:
    """Values as an array; missing texts and flags are None."""
    kind = EXECUTION_COLUMNS[name][0]
    if pa.types.is_string(kind) or pa.types.is_boolean(kind):
        values: NDArray[Any] = column.to_numpy(dtype=object).copy()
        values[column.isna().to_numpy()] = None
        return values
    return np.asarray(column.to_numpy())


def _missing_metrics(frame: pd.DataFrame) -> list[list[str]]:
    """Of each execution, in order, the metrics without a value."""
    lacking = frame[frame["value"].isna()].groupby("code")["metric"].agg(list).to_dict()
    return [lacking.get(code, []) for code in np.unique(frame["code"])]


def _metrics(frame: pd.DataFrame, executions: pa.Table, ids: pd.Index) -> pa.Table:
    """The rows with a value, in the order of their executions."""
    kept = frame[frame["value"].notna()].sort_values("code", kind="stable")
    place_of = pd.Series(executions["place"].to_numpy(), index=np.unique(frame["code"]))
    columns = {
        "execution_id": ids.to_numpy()[kept["code"]],
        "metric": kept["metric"].to_numpy(),
        "value": kept["value"].to_numpy(),
        "unit": kept["unit"].fillna("").to_numpy(),
        "place": place_of.loc[kept["code"]].to_numpy(),
    }
    return pa.table({field.name: _array(columns[field.name], field.type) for field in METRICS_SCHEMA}, METRICS_SCHEMA)


def _hashes(templates: NDArray[Any], hashes: NDArray[Any]) -> list[str | None]:
    """The hash that is given, else that of the template; none for none."""
    pairs = list(zip(templates, hashes, strict=True))
    known = {pair: template_hash(*pair) for pair in set(pairs)}
    return [known[pair] for pair in pairs]


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    """A column in the type that is landed, what pandas holds for missing (None, NaN, NaT) as missing."""
    if pa.types.is_integer(kind) and isinstance(values, np.ndarray) and values.dtype.kind == "f":
        values = pd.array([None if value != value else int(value) for value in values], dtype="Int64")
    return pa.array(values, kind, from_pandas=True)
