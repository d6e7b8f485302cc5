"""Metrics of Intel PerfSpect over time: `*_metrics.csv` of version 3, `metric_out.sys.csv` of version 1.

Version 3 begins with TS (Unix seconds), SKT, CPU and CID: socket, processor and control group are empty for the whole
machine. A file by socket or processor gives a counter for each of them, one by control group a run for each. Version 1
begins with `time` (seconds since the start), and its names with `metric_`. Empty fields are missing values."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput, quoted
from tasks.intake.cells import Cells
from tasks.intake.files import all_refusals, refusals
from tasks.intake.tables import WholeTable, column_names, whole_table
from tasks.workloads.prepared import Reading, Sampled, label_column
from tasks.workloads.readers.tables import side_by_side, start_and_offsets, unix_seconds
from tasks.workloads.readers.wide import WideTable, check_counters, counters_of, read_table
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.telemetry import Counter, FloatArray, described

V3 = ["TS", "SKT", "CPU", "CID"]
METRIC = "metric_"
GROUP = "perfspect"


@dataclass(frozen=True)
class PerfSpectReader:
    """Reads the CSV files of PerfSpect's metrics."""

    name: str = "perfspect"
    version: int = 1
    title: str = "PerfSpect's metrics (*_metrics.csv, metric_out.sys.csv)"
    endings: tuple[str, ...] = ("_metrics.csv", "metric_out.sys.csv")

    def sniff(self, head: bytes, path: str) -> bool:
        """By the header line; a summary is taken as well, to be refused in clear words."""
        if not head:
            return False
        names = column_names(head, path)
        is_summary = path.lower().endswith("_metrics_summary.csv")
        return names[:4] == V3 or _is_first_version(names) or is_summary

    def read(self, path: str, params: ReadParams) -> Reading:
        """See Reader.read."""
        rows = whole_table(path, params.limits, row="sample")
        is_third = rows.names[:4] == V3
        if not is_third and not _is_first_version(rows.names):
            raise BadInput(
                path,
                f"no time series of PerfSpect (it begins with {quoted(rows.names[:4])})",
                "*_metrics.csv with TS, SKT, CPU, CID, or metric_out.sys.csv with time",
                "a *_metrics_summary.csv holds means only: read the *_metrics.csv beside it",
            )
        table = WideTable(path, rows.names, rows.columns, rows.places, rows.refused, rows.raw, _described)
        if is_third and _n_units(rows) > 1:
            return _by_unit(rows, table, params.time_zone)
        table = replace(table, ignored=frozenset(V3[1:]))
        renamed = {"timestamp": rows.names[0], **params.columns}
        return read_table(
            table, renamed, label_column=label_column(params), zone=params.time_zone, interval_s=params.interval_s
        )


def _is_first_version(names: list[str]) -> bool:
    return names[:1] == ["time"] and any(name.startswith(METRIC) for name in names[1:])


def _described(raw: str) -> Counter:
    return described(raw.removeprefix(METRIC), GROUP)


def _units(rows: WholeTable) -> pd.DataFrame:
    return pd.DataFrame({name: rows.columns[at].to_pylist() for at, name in enumerate(V3)}).astype(str)


def _n_units(rows: WholeTable) -> int:
    return len(_units(rows)[V3[1:]].drop_duplicates())


def _by_unit(rows: WholeTable, table: WideTable, zone: str) -> Reading:
    """Sockets and processors as counters side by side, control groups as runs of their own."""
    metrics = replace(table, names=rows.names[4:], columns=rows.columns[4:])
    counters, numbers, refused_columns = counters_of(metrics, {}, {})
    check_counters(metrics, counters, refused_columns)
    units, seconds = _units(rows), unix_seconds(rows.columns[0], zone)
    label = _told(units["SKT"], "socket") + _told(units["CPU"], "cpu")
    is_bad = np.isnan(seconds) | units[V3].duplicated().to_numpy()
    runs = []
    for group, members in units.groupby("CID").groups.items():
        chosen = np.asarray(members)[~is_bad[members]]
        if len(chosen):
            runs.append(_side_by_side(rows, counters, numbers, label, seconds, chosen, str(group), refused_columns))
    bad = np.flatnonzero(is_bad)
    reason = "no time, or a second row of one time and unit; expected each once"
    refused = refusals(rows.places[bad], reason, [rows.raw(int(row)) for row in bad])
    return Reading(runs, all_refusals([rows.refused, refused]))


def _side_by_side(
    rows: WholeTable,
    counters: tuple[Counter, ...],
    numbers: list[Cells],
    label: pd.Series,
    seconds: FloatArray,
    chosen: NDArray[np.int64],
    group: str,
    refused: list[str],
) -> Sampled:
    codes, names = pd.factorize(label.iloc[chosen])
    wide = tuple(replace(one, name=f"{one.name}{name}") for name in names for one in counters)
    n_rows, n_counters = len(chosen), len(counters)
    first, offsets = start_and_offsets(seconds[chosen])
    cells = (
        np.repeat(np.arange(n_rows), n_counters),
        (codes[:, None] * n_counters + np.arange(n_counters)).ravel(),
        np.column_stack([one.values[chosen] for one in numbers]).ravel(),  # noqa: PD011
    )
    return side_by_side(wide, offsets, rows.places[chosen], cells, part=group, started_at=first, refused=tuple(refused))


def _told(values: pd.Series, word: str) -> pd.Series:
    return values.where(values == "", "." + word + values)
