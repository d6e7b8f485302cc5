"""Wide tables, whorl's own and anybody's: CSV or Parquet with one row a sample and one column a counter.

whorl's own has run_id, workload, input, round, machine, started_at, at_s, then the counters; in Parquet the metadata
of a column says unit, kind, is_rate and scope. Anybody's needs a column with the time: Unix time in any unit, ISO
text, or seconds since some start, called timestamp, time, ts, … or named by --map. All other columns are counters; one
that holds text is listed by its name and left out. Without run_id the run is called after folder and file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.errors import BadInput, headless, quoted
from tasks.intake.files import (
    PARQUET_FAULTS,
    all_refusals,
    damaged_parquet,
    no_refusals,
    open_plain,
    refusals,
)
from tasks.workloads.columns import KEY_COLUMNS, LABELS
from tasks.workloads.counter_names import described, described_own, scope_of, spelled
from tasks.workloads.labels import label_column
from tasks.workloads.readers.tables import (
    Numbers,
    as_numbers,
    choose_keys,
    fault_of,
    read_csv,
    split_header,
    start_and_offsets,
    texts,
    unix_seconds,
)
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.sampled import Reading, one_row_a_sample
from tasks.workloads.telemetry import Conditions, Counter, FloatArray
from tasks.workloads.totals import are_totals

MAGIC = b"PAR1"
RECORD_KEY = b"whorl.record"
PANDAS_INDEX = "__index_level_"
OWN_NAMES = 2  # key columns of ours, at_s among them, that tell whorl's own CSV from others
KINDS = ("hardware", "software")
CONDITIONS = frozenset(field.name for field in fields(Conditions))


@dataclass(frozen=True)
class WideReader:
    """Reads wide CSV and Parquet."""

    name: str = "wide"
    version: int = 1
    title: str = "wide tables, a column a counter (.parquet, .csv, .csv.gz)"
    endings: tuple[str, ...] = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """Any Parquet file, and text whose first line has two names or more."""
        if head.startswith(MAGIC):
            return True
        lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
        if len(lines) < 2 or lines[0].startswith((b"#", b"{", b"<")):
            return False
        names, _ = split_header(lines[0].decode("utf-8", "replace"))
        return len(names) > 1 and not any(name.replace(".", "", 1).isdigit() for name in names)

    def read(self, path: str, params: ReadParams) -> Reading:
        """See Reader.read."""
        with open_plain(path) as stream:
            is_parquet = stream.read(len(MAGIC)) == MAGIC
        table = _from_parquet(path, params) if is_parquet else _from_csv(path, params)
        return read_table(
            table,
            params.columns,
            label_column=label_column(params),
            zone=params.time_zone,
            interval_s=params.interval_s,
        )


@dataclass(frozen=True)
class WideTable:
    """Rows of a file.

    names: of the columns as the file has them (position by position). places: (n,), rows of the file from 1.
    refused: lines that are no rows. raw: the text of the row at a position. described: a counter from a name.
    ignored: names that are no counters, without a word about them. is_simulated: the file says so.
    conditions: by run id, of the recorder's own files."""

    path: str
    names: Sequence[str]
    columns: Sequence[pa.ChunkedArray]
    places: NDArray[np.int64]
    refused: pd.DataFrame
    raw: Callable[[int], str]
    described: Callable[[str], Counter]
    ignored: frozenset[str] = frozenset()
    is_simulated: bool = False
    counters: Mapping[str, Counter] = field(default_factory=dict)
    conditions: Mapping[str, Conditions] = field(default_factory=dict)


def read_table(
    table: WideTable, renamed: Mapping[str, str], *, label_column: str, zone: str, interval_s: float
) -> Reading:
    """The runs of a table. A row with a cell that is no number is refused; a column of text is, by its name.

    renamed: our names to theirs. label_column: the file's column with the workload. interval_s: where there is no
    time. Raises BadInput for a table without a time, without counters, or without a column that was asked for."""
    if label_column:
        renamed = {**renamed, "workload": label_column}
    keys = choose_keys(table.path, table.names, renamed)
    at = {name: position for position, name in reversed(list(enumerate(table.names)))}
    counters, numbers, refused_columns = counters_of(table, keys, renamed)
    check_counters(table, counters, refused_columns)
    seconds, is_absolute = _seconds(table, keys, at, zone, interval_s)
    labels = {key: texts(table.columns[at[keys[key]]]) for key in ("run_id", *LABELS) if key in keys}
    faults = _row_faults(seconds, numbers, counters, labels)
    bad = np.flatnonzero(faults != "")
    refused = refusals(table.places[bad], faults[bad].tolist(), [table.raw(int(row)) for row in bad])
    good = np.flatnonzero(faults == "")
    started = _starts(table, keys, at, zone)
    values = np.column_stack([one.values for one in numbers])  # noqa: PD011
    runs = []
    for part, rows in _parts(good, labels):
        first, offsets = _times(seconds[rows], is_absolute, started[rows])
        own = {key: value for key in LABELS if key in labels and (value := labels[key][rows[0]])}
        run = one_row_a_sample(
            counters,
            offsets,
            values[rows],
            places=table.places[rows],
            part=part,
            is_id="run_id" in labels,
            labels=own,
            started_at=first,
            refused=tuple(refused_columns),
            is_simulated=table.is_simulated,
            conditions=table.conditions.get(part),
            is_total=are_totals([one.name for one in counters], values[rows]),
        )
        runs.append(run)
    return Reading(runs, all_refusals([table.refused, refused]))


def check_counters(table: WideTable, counters: Sequence[Counter], refused: Sequence[str]) -> None:
    """Raises BadInput for a table without counters. refused: its columns that are none, each with its reason."""
    if not counters:
        said = quoted(refused) or "no column beside the time and the labels"
        raise BadInput(table.path, f"no counter in it ({said})", "columns of numbers", "name them with --map")


def counters_of(
    table: WideTable, keys: Mapping[str, str], renamed: Mapping[str, str]
) -> tuple[tuple[Counter, ...], list[Numbers], list[str]]:
    """The counters of a table with their numbers, and the columns that are none, each with its reason.

    keys: our key columns and their names in the file; renamed: our names to theirs."""
    ours = {theirs: name for name, theirs in renamed.items() if theirs not in keys.values()}
    skipped = set(keys.values()) | table.ignored
    found: dict[str, tuple[Counter, Numbers]] = {}
    refused: list[str] = []
    for name, column in zip(table.names, table.columns, strict=True):
        if name in skipped:
            continue
        counter = table.counters.get(name) or table.described(ours.get(name, name))
        numbers = as_numbers(column)
        fault = fault_of(numbers)
        if not counter.name:
            fault = "no name"
        elif counter.name in found:
            fault = f"the name {counter.name} stands there twice"
        if fault:
            refused.append(f"{name or '(empty)'}: {fault}")
        else:
            found[counter.name] = counter, numbers
    return tuple(one for one, _ in found.values()), [one for _, one in found.values()], refused


def _seconds(
    table: WideTable, keys: Mapping[str, str], at: Mapping[str, int], zone: str, interval_s: float
) -> tuple[FloatArray, bool]:
    """Seconds of each row, and whether they are to be counted from the first."""
    if "at_s" in keys:
        return as_numbers(table.columns[at[keys["at_s"]]]).values, False  # noqa: PD011
    if "timestamp" in keys:
        return unix_seconds(table.columns[at[keys["timestamp"]]], zone), True
    if not interval_s:
        raise BadInput(
            table.path,
            "no column with the time",
            "at_s, or timestamp",
            headless(table.names)
            or "name it, as in --map timestamp=THEIRS, or set read.interval_s for equally spaced rows",
        )
    return interval_s * np.arange(len(table.places), dtype=np.float64), False


def _row_faults(
    seconds: FloatArray,
    numbers: Sequence[Numbers],
    counters: Sequence[Counter],
    labels: Mapping[str, list[str | None]],
) -> NDArray[np.object_]:
    faults = np.full(len(seconds), "", dtype=object)
    for one, counter in zip(reversed(numbers), reversed(counters), strict=True):
        if one.is_bad.any():
            faults[one.is_bad] = f"{counter.name} is no finite number; expected one, or nothing"
    faults[~np.isfinite(seconds)] = "no time; expected seconds, or a time in ISO 8601"
    if "run_id" in labels:
        faults[[run_id is None for run_id in labels["run_id"]]] = "no run id; expected one in each row"
        _refuse_mixed(faults, labels)
    return faults


def _refuse_mixed(faults: NDArray[np.object_], labels: Mapping[str, list[str | None]]) -> None:
    """Rows whose labels are not those of the first row of their run."""
    first: dict[str | None, int] = {}
    for row, run_id in enumerate(labels["run_id"]):
        leader = first.setdefault(run_id, row)
        for key in LABELS:
            if key in labels and labels[key][row] != labels[key][leader]:
                faults[row] = f"{key} {labels[key][row]} in a run of {labels[key][leader]}; expected one a run"


def _parts(good: NDArray[np.int64], labels: Mapping[str, list[str | None]]) -> list[tuple[str, NDArray[np.int64]]]:
    """The rows of each run: by run id, else by the labels of the rows, else all of them."""
    if not len(good):
        return []
    if "run_id" in labels:
        named = [str(labels["run_id"][row]) for row in good]
    else:
        told = [[labels[key][row] or "" for key in LABELS if key in labels] for row in good]
        named = ["-".join(part for part in one if part) for one in told]
    codes, parts = pd.factorize(np.array(named, dtype=object))
    if len(parts) == 1:
        return [("" if "run_id" not in labels else str(parts[0]), good)]
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(parts) + 1))
    return [(str(part), good[order[edges[at] : edges[at + 1]]]) for at, part in enumerate(parts)]


def _starts(table: WideTable, keys: Mapping[str, str], at: Mapping[str, int], zone: str) -> FloatArray:
    """started_at of each row in Unix seconds, NaN where the file does not say."""
    if "started_at" not in keys:
        return np.full(len(table.places), np.nan)
    return unix_seconds(table.columns[at[keys["started_at"]]], zone)


def _times(seconds: FloatArray, is_absolute: bool, started: FloatArray) -> tuple[datetime | None, FloatArray]:
    if is_absolute:
        return start_and_offsets(seconds)
    known = started[~np.isnan(started)]
    return (start_and_offsets(known[:1])[0] if len(known) else None), seconds


def _from_csv(path: str, params: ReadParams) -> WideTable:
    rows = read_csv(path, params.limits)
    is_own = "at_s" in rows.names and sum(name in KEY_COLUMNS for name in rows.names) >= OWN_NAMES
    return WideTable(
        path, rows.names, rows.columns, rows.places, rows.refused, rows.raw, described_own if is_own else described
    )


def _from_parquet(path: str, params: ReadParams) -> WideTable:
    with open_plain(path) as stream:
        try:
            file = pq.ParquetFile(stream, pre_buffer=False)
            n_bytes = sum(file.metadata.row_group(at).total_byte_size for at in range(file.metadata.num_row_groups))
            if n_bytes > params.limits.max_bytes:
                raise BadInput(
                    path,
                    f"more than {params.limits.max_bytes:,} bytes unpacked",
                    "a smaller file",
                    "split it, or raise read.limits.max_bytes",
                )
            table = file.read()
            table.validate(full=True)
        except PARQUET_FAULTS as error:
            raise damaged_parquet(path, error) from error
    if not table.num_rows:
        raise BadInput(path, "no row in it", "at least one sample", "export it again")
    names, conditions = table.column_names, _conditions(table)
    return WideTable(
        path=path,
        names=names,
        columns=table.columns,
        places=np.arange(1, table.num_rows + 1),
        refused=no_refusals(),
        raw=lambda row: json.dumps(table.slice(row, 1).to_pylist()[0], default=str),
        described=described,
        ignored=frozenset(name for name in names if name.startswith(PANDAS_INDEX))
        | (CONDITIONS if conditions else frozenset()),
        is_simulated=_is_simulated(table.schema),
        counters={field.name: _described(field) for field in table.schema if b"is_rate" in (field.metadata or {})},
        conditions=conditions,
    )


def _conditions(table: pa.Table) -> dict[str, Conditions]:
    """Under what the runs of a file of the recorder were taken, by run id; none in other files."""
    if RECORD_KEY not in (table.schema.metadata or {}) or "recording" not in table.column_names:
        return {}
    names = sorted(CONDITIONS & set(table.column_names))
    runs = table.select(["run_id", *names]).group_by(["run_id", *names]).aggregate([]).to_pylist()
    return {str(run.pop("run_id")): Conditions(**run) for run in runs}


def _described(field: pa.Field) -> Counter:
    said = {key.decode(): value.decode() for key, value in field.metadata.items()}
    kind: Any = said.get("kind") if said.get("kind") in KINDS else "unknown"
    name = spelled(field.name)
    scope: Any = said.get("scope") if said.get("scope") in ("machine", "workload") else scope_of(name)
    return Counter(name, said.get("unit", ""), kind, said["is_rate"] == "true", scope)


def _is_simulated(schema: pa.Schema) -> bool:
    try:
        record = json.loads((schema.metadata or {}).get(RECORD_KEY, b"{}"))
    except ValueError:
        return False
    return isinstance(record, dict) and record.get("is_simulated") is True
