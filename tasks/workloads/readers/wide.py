"""Wide tables, whorl's own and anybody's: CSV, JSON or Parquet with one row a sample and one column a counter.

whorl's own has run_id, workload, input, round, machine, started_at, at_s, then the counters; in Parquet the metadata
of a column says unit, kind, is_rate and scope. Anybody's needs a column with the time: Unix time in any unit, ISO
text, or seconds since some start, called timestamp, time, ts, … or named by --map. All other columns are counters, also
with a unit in each cell (45.1 %, 1.2 GiB, 3 MB/s, 20 ms); one that holds text is listed by its name and left out.
Without run_id the run is called after folder and file."""

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import BadInput, headless, quoted
from tasks.intake.aliases import is_text, named
from tasks.intake.cells import Cells, measured
from tasks.intake.cells import numbers as to_numbers
from tasks.intake.files import UTF8_MARK, all_refusals, refusals, split_header
from tasks.intake.labels import named_column
from tasks.intake.tables import (
    AROUND,
    JSON_MARKS,
    MAGIC,
    NO_HEADER,
    PANDAS_INDEX,
    RECORD_KEY,
    WholeTable,
    keys_of,
    row_text,
    whole_table,
)
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import KEY_COLUMNS, LABELS, Reading, are_totals, row_per_sample
from tasks.workloads.readers.tables import (
    ALIASES,
    METRICS,
    VALUES,
    choose_keys,
    fault_of,
    start_and_offsets,
    texts,
    unix_seconds,
)
from tasks.workloads.telemetry import Conditions, Counter, FloatArray, described, described_own, scope_of, spelled

OWN_NAMES = 2  # key columns of ours, at_s among them, that tell whorl's own CSV from others
KINDS = ("hardware", "software")
SYSSTAT = "sysstat"  # the key around all that sadf -j prints
HOLDS_TEXT = "holds text"  # what fault_of says of such a column
PLACE = "__place"
MOST_PARTS = 2  # times as many values as a metric has at one time: a column with more is no part of its name
CONDITIONS = frozenset(field.name for field in fields(Conditions))
PROCESSES = "processes"


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """Any Parquet file, JSON with a time, and text whose first line has two names or more."""
    if head.startswith(MAGIC):
        return True
    head = head.removeprefix(UTF8_MARK).lstrip()
    if head.startswith(JSON_MARKS):
        keys = keys_of(head)
        return SYSSTAT not in keys and any(named(keys, ALIASES["timestamp"], ()))
    lines = [line for line in head.splitlines() if not NO_HEADER.match(line)]
    if len(lines) < 2 or lines[0].startswith((b"#", b"<")):
        return False
    names, _ = split_header(lines[0].decode("utf-8", "replace"))
    return len(names) > 1 and not any(name.replace(".", "", 1).isdigit() for name in names)


def read(path: str, params: ReadParams) -> Reading:
    """See Reader.read."""
    return read_table(_table(path, params), params.columns, params)


@dataclass(frozen=True)
class WideTable(WholeTable):
    """Rows of a file.

    described: a counter from a name. ignored: names that are no counters, without a word about them.
    conditions, processes: by run id, of the recorder's own files."""

    described: Callable[[str], Counter]
    ignored: frozenset[str] = frozenset()
    counters: Mapping[str, Counter] = field(default_factory=dict)
    conditions: Mapping[str, Conditions] = field(default_factory=dict)
    processes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def read_table(table: WideTable, renamed: Mapping[str, str], params: ReadParams) -> Reading:
    """The runs of a table. A row with a cell that is no number is refused; a column of text is, by its name.

    renamed: our names to theirs; the column that --label-from names is the workload's. Raises BadInput for a table
    without a time, without counters, or without a column that was asked for."""
    if label_column := named_column(params.label_from):
        renamed = {**renamed, "workload": label_column}
    keys = choose_keys(table.path, table.names, renamed, _text_columns(table))
    at = {name: position for position, name in reversed(list(enumerate(table.names)))}
    counters, numbers, refused_columns = counters_of(table, keys, renamed)
    check_counters(table, counters, refused_columns)
    seconds, is_absolute = _seconds(table, keys, at, params)
    labels = {key: texts(table.columns[at[keys[key]]]) for key in ("run_id", *LABELS) if key in keys}
    faults = _row_faults(seconds, numbers, counters, labels)
    bad = np.flatnonzero(faults != "")
    refused = refusals(table.places[bad], faults[bad].tolist(), [table.raw(int(row)) for row in bad])
    good = np.flatnonzero(faults == "")
    started = unix_seconds(table.columns[at[keys["started_at"]]], params.time_zone) if "started_at" in keys else None
    values = np.column_stack([column.values for column in numbers])  # noqa: PD011
    runs = []
    for part, rows in _parts(good, labels):
        first, offsets = start_and_offsets(seconds[rows]) if is_absolute else (None, seconds[rows])
        if started is not None and not is_absolute and len(known := started[rows][~np.isnan(started[rows])]):
            first = start_and_offsets(known[:1])[0]
        run_labels = {key: value for key in LABELS if key in labels and (value := labels[key][rows[0]])}
        run = row_per_sample(
            counters,
            offsets,
            values[rows],
            places=table.places[rows],
            part=part,
            is_id="run_id" in labels,
            labels=run_labels,
            started_at=first,
            refused=tuple(refused_columns),
            is_simulated=table.is_simulated,
            conditions=table.conditions.get(part),
            processes=table.processes.get(part, {}),
            is_total=are_totals([counter.name for counter in counters], values[rows]),
        )
        runs.append(run)
    notes = [f"read `{theirs}` as {ours}" for ours, theirs in keys.items() if theirs not in (ours, renamed.get(ours))]
    return Reading(runs, all_refusals([table.refused, refused]), (*table.understood, *notes))


def _text_columns(table: WideTable) -> set[str]:
    """The columns that may be labels by their names, and hold text."""
    names = {name for ours in ALIASES if ours != "timestamp" for name, _ in named(table.names, ALIASES[ours], ())}
    columns = dict(zip(table.names, table.columns, strict=True))
    return {name for name in names if fault_of(to_numbers(columns[name])) == HOLDS_TEXT}


def check_counters(table: WideTable, counters: Sequence[Counter], refused: Sequence[str]) -> None:
    """Raises BadInput for a table without counters. refused: its columns that are none, each with its reason."""
    if not counters:
        reasons = "no column beside the time and the labels"
        if refused:
            names, faults = zip(*(column.rsplit(": ", 1) for column in refused), strict=True)
            reasons = f"{quoted(names)}: {' or '.join(dict.fromkeys(faults))}"
        raise BadInput(table.path, f"no counter in it ({reasons})", "columns of numbers", "name them with --map")


def counters_of(
    table: WideTable, keys: Mapping[str, str], renamed: Mapping[str, str]
) -> tuple[tuple[Counter, ...], list[Cells], list[str]]:
    """The counters of a table with their numbers, and the columns that are none, each with its reason.

    keys: our key columns and their names in the file; renamed: our names to theirs."""
    ours = {theirs: name for name, theirs in renamed.items() if theirs not in keys.values()}
    skipped = set(keys.values()) | table.ignored
    by_name: dict[str, tuple[Counter, Cells]] = {}
    refused: list[str] = []
    for name, column in zip(table.names, table.columns, strict=True):
        if name in skipped:
            continue
        counter = table.counters.get(name) or table.described(ours.get(name, name))
        numbers, unit = measured(column)
        if unit:  # of the cells
            counter = replace(counter, unit=unit.removesuffix("/s"), is_rate=counter.is_rate or unit.endswith("/s"))
        fault = fault_of(numbers)
        if not counter.name:
            fault = "no name"
        elif counter.name in by_name:
            fault = f"the name {counter.name} stands there twice"
        if fault:
            refused.append(f"{name or '(empty)'}: {fault}")
        else:
            by_name[counter.name] = counter, numbers
    return tuple(counter for counter, _ in by_name.values()), [cells for _, cells in by_name.values()], refused


def _seconds(
    table: WideTable, keys: Mapping[str, str], at: Mapping[str, int], params: ReadParams
) -> tuple[FloatArray, bool]:
    """Seconds of each row, and whether they are to be counted from the first."""
    if "at_s" in keys:
        return to_numbers(table.columns[at[keys["at_s"]]]).values, False  # noqa: PD011
    if "timestamp" in keys:
        return unix_seconds(table.columns[at[keys["timestamp"]]], params.time_zone), True
    if not params.interval_s:
        fix = "name it, as in --map timestamp=THEIRS, or set read.interval_s for equally spaced rows"
        raise BadInput(table.path, "no column with the time", "at_s, or timestamp", headless(table.names) or fix)
    return params.interval_s * np.arange(len(table.places), dtype=np.float64), False


def _row_faults(
    seconds: FloatArray, numbers: Sequence[Cells], counters: Sequence[Counter], labels: Mapping[str, list[str | None]]
) -> NDArray[np.object_]:
    faults = np.full(len(seconds), "", dtype=object)
    for cells, counter in zip(reversed(numbers), reversed(counters), strict=True):
        if cells.is_bad.any():
            faults[cells.is_bad] = f"{counter.name} is no finite number; expected one, or nothing"
    faults[~np.isfinite(seconds)] = "no time; expected seconds, or a date with its year and a clock (of dstat: -T)"
    if "run_id" in labels:
        faults[[run_id is None for run_id in labels["run_id"]]] = "no run id; expected one in each row"
        first: dict[str | None, int] = {}  # labels are those of the first row of a run
        for row, run_id in enumerate(labels["run_id"]):
            leader = first.setdefault(run_id, row)
            for key in LABELS:
                if key in labels and labels[key][row] != labels[key][leader]:
                    faults[row] = f"{key} {labels[key][row]} in a run of {labels[key][leader]}; expected one a run"
    return faults


def _parts(good: NDArray[np.int64], labels: Mapping[str, list[str | None]]) -> list[tuple[str, NDArray[np.int64]]]:
    """The rows of each run: by run id, else by the labels of the rows, else all of them."""
    if not len(good):
        return []
    if "run_id" in labels:
        named = [str(labels["run_id"][row]) for row in good]
    else:
        row_labels = [[labels[key][row] or "" for key in LABELS if key in labels] for row in good]
        named = ["-".join(part for part in of_row if part) for of_row in row_labels]
    codes, parts = pd.factorize(np.array(named, dtype=object))
    if len(parts) == 1:
        return [("" if "run_id" not in labels else str(parts[0]), good)]
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(parts) + 1))
    return [(str(part), good[order[edges[at] : edges[at + 1]]]) for at, part in enumerate(parts)]


def _table(path: str, params: ReadParams) -> WideTable:
    rows = whole_table(path, params.limits, row="sample")
    names = rows.names
    is_own = "at_s" in names and sum(name in KEY_COLUMNS for name in names) >= OWN_NAMES
    has_types = not all(is_text(column.type) for column in rows.columns)
    whole = pa.Table.from_arrays(rows.columns, schema=rows.schema)
    conditions = {
        run_id: Conditions(**facts) for run_id, facts in _facts_of_runs(whole, "recording", CONDITIONS).items()
    }
    by_run = _facts_of_runs(whole, PROCESSES, {PROCESSES})
    processes = {run_id: json.loads(facts[PROCESSES]) for run_id, facts in by_run.items() if facts[PROCESSES]}
    hidden = frozenset(name for name in names if name.startswith((PANDAS_INDEX, AROUND)))
    table = WideTable(
        **vars(rows),
        described=described_own if is_own and not has_types else described,
        ignored=hidden | (CONDITIONS if conditions else frozenset()) | ({PROCESSES} if by_run else frozenset()),
        counters={field.name: _described(field) for field in rows.schema if b"is_rate" in (field.metadata or {})},
        conditions=conditions,
        processes=processes,
    )
    return table if is_own else _widened(table, params.columns)


def _widened(table: WideTable, renamed: Mapping[str, str]) -> WideTable:
    """A long table (time, metric, value, and labels) with a column a metric; any other table as it is.

    Where a metric has several values at one time, the columns that tell them apart (a device, a core) become part of
    its name; of those that none tells apart the first counts."""
    metric, value = (next((name for name, _ in named(table.names, aliases, ())), "") for aliases in (METRICS, VALUES))
    if not metric or not value or {metric, value} & set(renamed.values()):
        return table
    keys = choose_keys(table.path, table.names, renamed, _text_columns(table))
    columns = dict(zip(table.names, table.columns, strict=True))
    if "timestamp" not in keys or fault_of(to_numbers(columns[metric])) != HOLDS_TEXT:
        return table
    kept = list(dict.fromkeys(keys.values()))
    flat = {name: column.to_pandas() for name, column in columns.items() if not pa.types.is_nested(column.type)}
    long = pd.DataFrame(flat).assign(**{PLACE: table.places})
    by = [*kept, metric]
    most = int(long.groupby(by, sort=False, dropna=False).size().max())
    parts = [
        name for name in flat
        if most > 1 and name not in (*by, value) and long[name].nunique() <= MOST_PARTS * most
        and long.groupby(by, sort=False, dropna=False)[name].nunique().max() > 1
    ]  # fmt: skip
    for name in parts:
        long[metric] = long[metric] + pd.Series([f".{part}" if part else "" for part in texts(columns[name])])
    wide = long.pivot_table(index=kept, columns=metric, values=value, aggfunc="first", sort=False, dropna=False)
    places = long.groupby(kept, sort=False, dropna=False)[PLACE].min()
    frame = pa.Table.from_pandas(wide.dropna(how="all").reset_index(), preserve_index=False)
    names = " and ".join(f"`{name}`" for name in (metric, *parts))
    line = f"read {names} as the names of counters, `{value}` as their values"
    return replace(
        table,
        names=frame.column_names,
        columns=frame.columns,
        places=places.loc[wide.dropna(how="all").index].to_numpy(dtype=np.int64),
        raw=partial(row_text, frame),
        understood=(*table.understood, line),
    )


def _facts_of_runs(table: pa.Table, needed: str, columns: Set[str]) -> dict[str, dict[str, Any]]:
    """What these columns of a file of the recorder say of each run, by run id; none in other files, nor without
    the one that is needed."""
    if RECORD_KEY not in (table.schema.metadata or {}) or needed not in table.column_names:
        return {}
    names = sorted(columns & set(table.column_names))
    runs = table.select(["run_id", *names]).group_by(["run_id", *names]).aggregate([]).to_pylist()
    return {str(run.pop("run_id")): run for run in runs}


def _described(field: pa.Field) -> Counter:
    metadata = {key.decode(): value.decode() for key, value in field.metadata.items()}
    kind: Any = metadata.get("kind") if metadata.get("kind") in KINDS else "unknown"
    name = spelled(field.name)
    scope: Any = metadata.get("scope") if metadata.get("scope") in ("machine", "workload") else scope_of(name)
    return Counter(name, metadata.get("unit", ""), kind, metadata["is_rate"] == "true", scope)
