"""Executions of benchmarks with their metrics, in memory: what preprocessing, ranking and detection work on.

Straight from files, or from the warehouse; measured or simulated, never both."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.errors import NotFound, report_progress
from tasks.intake.files import all_refusals, no_refusals
from tasks.nodes.execution import EXECUTION_COLUMNS, EXECUTIONS_SCHEMA, METRICS_SCHEMA, TELEMETRY_SCHEMA, tabled
from tasks.nodes.params import ReadParams, ScoreParams
from tasks.nodes.type_tables import Ints, known
from tasks.warehouse.connection import Connection, fetch_arrow, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version, kinds_of

FLAGS = tuple(name for name, (kind, _) in EXECUTION_COLUMNS.items() if pa.types.is_boolean(kind))
METRICS = {"execution": pa.int64(), "metric": pa.string(), "value": pa.float64(), "unit": pa.string()}
VALUES = pa.list_(pa.float64())
TELEMETRY = {"execution": pa.int64(), "metric": pa.string(), "unit": pa.string(), "at_s": VALUES, "samples": VALUES}


@dataclass(frozen=True)
class History:
    """Executions in time order, with what they measured.

    executions: one row an execution, RangeIndex, ordered by started_at, then length and text of execution_id; the
    columns of nodes.executions. metrics: columns execution (int64, row number in `executions`), metric, value (float64,
    never missing) and unit (as the tool wrote it). telemetry: columns execution, metric, unit, at_s and samples
    (arrays; at_s in seconds after the start of the benchmark, negative before it); may be empty."""

    executions: pd.DataFrame
    metrics: pd.DataFrame
    telemetry: pd.DataFrame

    def where(self, is_kept: np.ndarray) -> "History":
        """The executions for which the mask (n_executions,) is true, renumbered, with their metrics and telemetry."""
        numbers = np.cumsum(is_kept) - 1
        return History(
            self.executions[is_kept].reset_index(drop=True),
            _renumbered(self.metrics, is_kept, numbers),
            _renumbered(self.telemetry, is_kept, numbers),
        )


def executions_frame(executions: pa.Table, source: str) -> pd.DataFrame:
    """One row an execution: texts as str, flags as boolean, dose_level as Int64, missing_metrics as lists."""
    flat = executions.drop_columns(["missing_metrics"])
    frame = flat.to_pandas().astype({**dict.fromkeys(FLAGS, "boolean"), "dose_level": "Int64"})
    frame = frame.assign(started_at=_times(flat["started_at"]), ended_at=_times(flat["ended_at"]))
    texts = {name: "str" for name, (kind, _) in EXECUTION_COLUMNS.items() if pa.types.is_string(kind)}
    missing = pd.Series([names or [] for names in executions["missing_metrics"].to_pylist()], dtype=object)
    whole: pd.DataFrame = frame.astype(texts).assign(missing_metrics=missing, source=source)
    return whole


def metrics_frame(metrics: pa.Table) -> pd.DataFrame:
    """Columns execution, metric, value, unit, ordered by execution and metric."""
    frame: pd.DataFrame = _ordered(metrics, METRICS).to_pandas()
    return frame.astype({"metric": "str", "unit": "str", "value": "float64"})


def telemetry_frame(telemetry: pa.Table) -> pd.DataFrame:
    """Columns execution, metric, unit, at_s, samples (arrays), ordered by execution and metric."""
    frame: pd.DataFrame = _ordered(telemetry, TELEMETRY).to_pandas()
    return frame.astype({"metric": "str", "unit": "str"})


def emulated_nodes(history: History) -> frozenset[str]:
    """The nodes of which some execution says that they are emulated."""
    emulated = history.executions.loc[known(history.executions["is_emulated"]), "node"]
    return frozenset(emulated.astype(str).unique())


def _renumbered(rows: pd.DataFrame, is_kept: np.ndarray, numbers: np.ndarray) -> pd.DataFrame:
    execution = rows["execution"].to_numpy(dtype=np.int64)
    kept = is_kept[execution]
    renumbered: pd.DataFrame = rows[kept].assign(execution=numbers[execution[kept]])
    return renumbered.reset_index(drop=True)


def _ordered(rows: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    typed = pa.table({name: rows[name].cast(kind) for name, kind in kinds.items()})
    execution = typed["execution"].to_numpy()
    if (np.diff(execution) > 0).all():  # one row each: in order
        return typed
    return typed.take(pc.sort_indices(typed, [("execution", "ascending"), ("metric", "ascending")]))


def _times(column: pa.ChunkedArray) -> NDArray[np.datetime64]:
    return np.asarray(column.to_numpy(), dtype="datetime64[us]")


logger = logging.getLogger(__name__)
FILES = "files"  # what stands for a source where there is none
LOGS = "logs"  # the reader that calls executions after their files where nobody knows their start
BY_START = "started_at NULLS LAST, length(execution_id), execution_id"  # without a start run-2 comes before run-10
ORDERED = f"ROW_NUMBER() OVER (ORDER BY {BY_START}) - 1"


@dataclass(frozen=True)
class Results:
    """history: of all files. n_replaced: executions that are given again, by a later file or in a later row, which
    counts. refused: path, place, reason, raw, is_value (whether it is a single value of an execution)."""

    history: History
    n_replaced: int
    refused: pd.DataFrame

    @property
    def n_refused(self) -> int:
        """Rows of the files that are behind no execution."""
        return len(self.refused.loc[~self.refused["is_value"], ["path", "place"]].drop_duplicates())

    @property
    def n_values_refused(self) -> int:
        """Values that were refused in rows that are behind an execution."""
        return int(self.refused["is_value"].sum())


def read_results(paths: Sequence[str], params: ReadParams, reader: str = "") -> Results:
    """Read all files into memory.

    An execution that two files give counts as in the later one. A node or id that another file has as well is another
    one where names say nothing beyond their file (Reader.has_local_nodes): it begins with the shortest name that the
    file alone has. So does the id of a log that is called after its file. Raises BadInput for a file that is wrong as a
    whole."""
    from tasks.nodes.intake import chunks_of, find_files, reader_of, sha256_of

    files = find_files(list(paths), params.manifest)
    executions = [EXECUTIONS_SCHEMA.empty_table()]
    row = pa.field("row", pa.int64())  # of the execution among all of them
    entries = {
        "metrics": [METRICS_SCHEMA.append(row).empty_table()],
        "telemetry": [TELEMETRY_SCHEMA.append(row).empty_table()],
    }
    refused, numbers = [no_refusals().assign(path="", is_value=False)], list[int]()
    local, logs = set[int](), set[int]()
    first_of: dict[str, int] = {}
    for number, path in enumerate(files):
        report_progress("reading results", number, len(files))
        sha256, file_reader = sha256_of(path, params), reader_of(path, reader, params)
        alike = first_of.setdefault(sha256, number)  # of files with the same content the first
        local |= {alike} if file_reader.has_local_nodes else set()
        logs |= {alike} if file_reader.name == LOGS else set()
        bad, kept = [no_refusals()], set[int]()
        for chunk in chunks_of(path, file_reader, params):
            landed = tabled(chunk.rows, EXECUTIONS_SCHEMA)
            key = ["place", "execution_id"]  # a row of a wide table may be several executions, an id stand in two rows
            known = pd.MultiIndex.from_frame(landed.select(key).to_pandas())
            for name, schema in (("metrics", METRICS_SCHEMA), ("telemetry", TELEMETRY_SCHEMA)):
                rows = tabled(chunk.tables.get(name, pd.DataFrame()), schema)
                at = known.get_indexer(pd.MultiIndex.from_frame(rows.select(key).to_pandas())) + len(numbers)
                entries[name].append(rows.append_column(row, pa.array(at, pa.int64())))
            executions.append(landed)
            numbers += [alike] * len(landed)
            bad.append(chunk.refused)
            kept |= set(known.get_level_values("place"))
        own_refused = all_refusals(bad)
        refused.append(own_refused.assign(path=path, is_value=own_refused["place"].isin(kept)))
    whole = {name: pa.concat_tables(parts) for name, parts in entries.items()}
    file = np.array(numbers, dtype=np.int64)
    history, n_replaced = _joined(pa.concat_tables(executions), file, whole, files, local, logs)
    logger.info("read %d executions of %d files", len(history.executions), len(files))
    return Results(history, n_replaced, pd.concat(refused, ignore_index=True).astype({"is_value": bool}))


def load_history(warehouse: Warehouse, source: str, *, with_telemetry: bool = True) -> History:
    """The executions of a source, ordered as BY_START. Raises NoWarehouse, WarehouseBusy.

    The connection is closed before the frames are made."""
    selected = f"SELECT {', '.join(EXECUTION_COLUMNS)} FROM nodes.executions WHERE source = $source"
    keyed = f"WITH keyed AS (SELECT execution_id, {ORDERED} AS execution FROM nodes.executions WHERE source = $source)"
    final = "SELECT {} FROM nodes.{} AS own JOIN keyed USING (execution_id) WHERE own.source = $source{} ORDER BY ALL"
    none = "" if with_telemetry else " AND false"
    executions, metrics, telemetry = fetch_arrow(
        warehouse,
        [
            f"{selected} ORDER BY {BY_START}",
            f"{keyed} {final.format('execution, metric, value, unit', 'metrics', '')}",
            f"{keyed} {final.format('execution, metric, unit, at_s, samples', 'telemetry', none)}",
        ],
        {"source": source},
    )
    return History(executions_frame(executions, source), metrics_frame(metrics), telemetry_frame(telemetry))


def history_of(warehouse: Warehouse, source: str, *, with_telemetry: bool = False) -> tuple[History, str]:
    """The executions of a source, and the version of its data. Raises as version_of.

    with_telemetry: with the nodes' own metrics, which the learned model alone looks at."""
    version = version_of(warehouse, source)
    return load_history(warehouse, source, with_telemetry=with_telemetry), version


def version_of(warehouse: Warehouse, source: str) -> str:
    """The version of the data of a source. Raises as is_simulated_source."""
    with reading(warehouse) as connection:
        is_simulated_source(connection, source)
        return data_version(connection, "nodes", source)


def benchmarks_of(
    warehouse: Warehouse, source: str, score: ScoreParams, *, with_telemetry: bool = False
) -> tuple[History, str]:
    """The executions of benchmarks of a source, without the applications that scores are for, and its data version."""
    history, version = history_of(warehouse, source, with_telemetry=with_telemetry)
    return history.where(~history.executions["aspect"].isin(score.left_out_aspects).to_numpy(dtype=bool)), version


def is_simulated_source(connection: Connection, source: str) -> bool:
    """Whether the executions of a source are simulated: all of them or none.

    Raises NotFound if it has no executions, BadInput if simulated ones stand among measured ones."""
    n_simulated, n_measured = kinds_of(connection, "nodes.executions", source)
    if not n_simulated + n_measured:
        raise NotFound(f"source {source!r} has no executions of benchmarks; fill it with 'whorl nodes ingest PATH'")
    return bool(n_simulated)


def _joined(
    executions: pa.Table,
    file: Ints,
    entries: Mapping[str, pa.Table],
    files: Sequence[str],
    local: Collection[int],
    logs: Collection[int],
) -> tuple[History, int]:
    """One history of all files, and how many executions were given again. file: (n,) number of that of each.

    entries: metrics and telemetry, with the `row` of their execution."""
    frame = executions_frame(executions.select(list(EXECUTION_COLUMNS)), FILES)
    is_local = np.isin(file, list(local))
    is_called_by_file = np.isin(file, list(logs)) & frame["started_at"].isna().to_numpy()
    if (is_local | is_called_by_file).any():
        nodes = _named_by_file(frame["node"], file, files, is_local)
        ids = _named_by_file(frame["execution_id"], file, files, is_local | is_called_by_file)
        executions = executions.drop_columns(["execution_id"]).append_column("execution_id", pa.array(ids.to_list()))
        frame = frame.assign(node=nodes, execution_id=ids)
    is_last = ~frame["execution_id"].duplicated(keep="last").to_numpy()
    keys = [(name, "ascending") for name in ("started_at", "length", "execution_id")]  # as BY_START
    lengths = pc.utf8_length(executions["execution_id"])
    order = pc.sort_indices(executions.append_column("length", lengths), sort_keys=keys).to_numpy()  # missing ones last
    order = order[is_last[order]]
    row_of = np.full(len(frame), -1, dtype=np.int64)
    row_of[order] = np.arange(len(order))
    frames = []
    for name, framed in (("metrics", metrics_frame), ("telemetry", telemetry_frame)):
        number = row_of[entries[name]["row"].to_numpy()]
        frames.append(framed(entries[name].append_column("execution", pa.array(number)).filter(pa.array(number >= 0))))
    return History(frame.iloc[order].reset_index(drop=True), *frames), int((~is_last).sum())


def _named_by_file(names: pd.Series, file: np.ndarray, files: Sequence[str], is_local: np.ndarray) -> pd.Series:
    """The names of nodes or executions; a local one that another file gives too begins with the name of its file.

    file: number of the file of each. is_local: which of them say nothing beyond their file."""
    if not is_local.any():
        return names
    pairs = pd.DataFrame({"name": names, "file": file}).drop_duplicates()
    is_shared = names.isin(pairs.loc[pairs["name"].duplicated(), "name"]).to_numpy() & is_local
    numbers = sorted(set(file[is_shared].tolist()))
    if not numbers:
        return names
    from tasks.nodes.readers.labels import names_apart

    called = dict(zip(numbers, names_apart([files[number] for number in numbers]), strict=True))
    full_names = [f"{called.get(number, '')}/{name}" for name, number in zip(names, file.tolist(), strict=True)]
    return names.mask(is_shared, pd.Series(full_names, index=names.index, dtype=names.dtype))
