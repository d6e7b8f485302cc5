"""Wide tables, whorl's own and anybody's: CSV or Parquet with one row a sample and one column a counter.

whorl's own has run_id, workload, input, round, machine, started_at, at_s, then the counters; in Parquet the metadata
of a column says unit, kind, is_rate and scope. Anybody's needs a column with the time: Unix time in any unit, ISO
text, or seconds since some start, called timestamp, time, ts, … or named by --map. All other columns are counters; one
that holds text is listed by its name and left out. Without run_id the run is called after folder and file."""

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput
from tasks.reading import PARQUET_FAULTS, damaged_parquet, no_refusals, open_plain
from tasks.workloads.columns import KEY_COLUMNS
from tasks.workloads.counter_names import described, described_own, scope_of, spelled
from tasks.workloads.labels import label_column
from tasks.workloads.readers.csv_rows import read_csv, split_header
from tasks.workloads.readers.wide_table import WideTable, read_table
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.sampled import Reading
from tasks.workloads.telemetry import Conditions, Counter

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
