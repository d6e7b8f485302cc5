"""A table with one row a sample and one column a counter as runs: for wide CSV, Parquet and PerfSpect."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import BadInput, headless, quoted
from tasks.reading import all_refusals, refusals
from tasks.workloads.columns import LABELS
from tasks.workloads.readers.tables import Numbers, as_numbers, choose_keys, fault_of, texts
from tasks.workloads.readers.times import start_and_offsets, unix_seconds
from tasks.workloads.sampled import Reading, one_row_a_sample
from tasks.workloads.telemetry import Conditions, Counter, FloatArray
from tasks.workloads.totals import are_totals


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
