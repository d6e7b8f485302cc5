"""Tables of results, CSV, Parquet or JSON. Long ones, one row a metric: node, machine_type, benchmark, started_at,
metric, value, unit. Wide ones: a column a metric, or a benchmark where no column names one; cells may carry their unit.

Needed: node (or --label-from), benchmark, value, and started_at or execution_id; without metric each benchmark has one.
Values may carry their unit where no column names it: one that is known, or anything by one (tokens/s). Rows of one
execution_id are one execution; without it those of the same node, benchmark and started_at are. All other columns of
nodes.executions may be there (template, is_stressed, dose, duration_s, aspect, campaign, …); unknown ones are ignored
and logged. A value that is empty is a metric that the tool did not give. A dose (not 0, none or no) or its level
without is_stressed says that stress was applied. What the table lacks of node, benchmark, start and id, a manifest may
say."""

import contextlib
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import BadInput, quoted
from tasks.intake.aliases import is_text, named, trimmed
from tasks.intake.cells import Cells, are_none, flags, measured, texts, times
from tasks.intake.cells import numbers as to_numbers
from tasks.intake.files import UTF8_MARK, Chunk, all_refusals, refusals
from tasks.intake.labels import absolute
from tasks.intake.tables import (
    JSON_MARKS,
    WholeTable,
    choose_columns,
    column_names,
    keys_of,
    known_otherwise,
    whole_table,
)
from tasks.nodes.execution import COUNTED, EXECUTION_COLUMNS, EXECUTIONS_SCHEMA, METRICS_SCHEMA, framed
from tasks.nodes.params import ReadParams
from tasks.nodes.preprocess.selection import BY_UNIT, CALENDAR, RESULT, SETTINGS
from tasks.nodes.preprocess.unification import conversion_of
from tasks.nodes.readers import vetting
from tasks.nodes.readers.labels import IDENTITY, is_dose, label_column, node_of, read_manifest
from tasks.nodes.readers.vetting import (
    FLAGS,
    TIMES,
    Check,
    aspect_of,
    completed_times,
    first_reasons,
    metric_name,
    template_hash,
    vet,
)
from tasks.quantities import SPELLINGS, Dimension, unit_in_name

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")  # of JSON the content alone says it
SHARED = tuple(name for name in EXECUTION_COLUMNS if name not in (*COUNTED, "execution_id"))
Rows = dict[str, NDArray[Any]]
logger = logging.getLogger(__name__)
TEXTS = (*vetting.TEXTS, "metric", "unit")
NUMBERS = (*vetting.NUMBERS, "value")
KNOWN = (*TEXTS, *TIMES, *FLAGS, *NUMBERS)
NEEDED = (("node",), ("benchmark",), ("metric",), ("value",), ("started_at", "execution_id"))
OWN_NAMES = {"benchmark", "metric", "value"}
ALIASES = {
    "node": (
        "host", "hostname", "nodename", "machine", "machinename", "server", "instance", "vm", "vmid", "knoten",
        "rechner",
    ),
    "benchmark": ("benchmarkname", "bench", "test", "testname", "tool"),
    "metric": ("metricname", "measure", "measurement", "metrik", "kennzahl", "metrica", "metrique", "mesure"),
    "value": ("result", "val", "wert"),
    "unit": ("units", "einheit"),
    "started_at": (
        "start", "starttime", "startdate", "timestamp", "datetime", "date", "time", "ts", "runat", "measuredat", "at",
        "beginn", "startzeit", "datum", "zeit", "zeitpunkt",
    ),
    "machine_type": ("instancetype", "vmtype", "type", "sku", "flavor", "maschinentyp"),
}  # fmt: skip
VALUE_AT_END = re.compile(r"(?<=[._ ])value$")
NUMBER_AND_UNIT = re.compile(r"^([-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?)\s*((?:1/)?(?:[^\W\d_]|[%/]).*)?$")
NAME_SEPARATORS = re.compile(r"[\s_.()\[\]-]+")
SLASH = re.compile(r"\s*/\s*")
PER_TIME = re.compile(r"(?:(?<![^\W_])(?i:per)[\W_]+|(?<=[a-z0-9])Per(?=[A-Z])|/)([^\W_]+)\W*$")  # runs_per_h, runsPerH
LOWER_BYTES = re.compile(r"(?<![^\W_])(?:[kmgtp]b|[kmgtp]ib)(?![^\W_])")  # Mb stays megabits
BYTES = {unit.lower(): unit for unit in SPELLINGS["bytes"]}
FLOPS = re.compile(r"(?<![^\W_])([kmgtp]?)flops?(?:(?:/|[ _]per[ _]|_)s(?:ec|econd)?)?(?![^\W_])", re.IGNORECASE)
MOST_UNIT_WORDS = 3  # MB_per_s
UNITS_IN_NAMES = {*BY_UNIT, "%"}
DIMENSIONS: tuple[Dimension, ...] = ("s", "bytes")
MEANINGS = {
    **dict.fromkeys(TEXTS, "text"),
    **dict.fromkeys(TIMES, "a time; expected ISO 8601 or Unix time"),
    **dict.fromkeys(FLAGS, "true or false"),
    **dict.fromkeys(NUMBERS, "a finite number; expected one, or nothing"),
}
Entries = Sequence[Mapping[str, Any]]


def sniff(head: bytes, path: str) -> bool:
    """A header or footer with benchmark, metric and value; JSON whose objects name these, or a node and a benchmark."""
    start = head.removeprefix(UTF8_MARK).lstrip()
    if start.startswith(JSON_MARKS):
        keys = keys_of(start)
        are_named = {ours for ours in ALIASES if any(named(keys, (ours, *ALIASES[ours]), ()))}
        return are_named >= OWN_NAMES or are_named >= {"node", "benchmark"}
    return set(column_names(head, path)) >= OWN_NAMES


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """As Reader.read says. Raises BadInput for a table without a column that is needed."""
    table, entries = whole_table(path, params.limits, row="execution"), read_manifest(params).all_facts(path)
    is_named = bool(params.label_from) or any("node" in entry for entry in entries)
    aliases = {ours: (ours, *ALIASES.get(ours, ())) for ours in KNOWN if not (is_named and ours == "node")}
    recognised = known_otherwise(table.names, aliases, params.columns)
    given = {name for entry in entries for name in entry}
    table, notes = _long(table, {**recognised, **params.columns}, given)
    columns = _columns(table, params, entries, recognised)
    rows, faults = _rows(table, columns, params, entries)
    lines = [f"read `{theirs}` as {ours}" for ours, theirs in recognised.items() if ours in columns]
    yield replace(_grouped(table, rows, faults), understood=(*table.understood, *lines, *notes))


def _long(table: WholeTable, renamed: Mapping[str, str], given: Collection[str]) -> tuple[WholeTable, list[str]]:
    """A wide table, a column a metric, as a long one, a row a metric, and what was understood; a long one as it is.

    Without a benchmark each column is one, with a single metric. Without a time or an id, which may be given by a
    manifest, each row is an execution, called by its line."""
    if len(set(table.names)) < len(table.names):
        return table, []
    if {"metric", "value"} & {*table.names, *renamed}:
        return _with_units(table, renamed)
    columns, taken, has_benchmark = (
        table.by_name(),
        {*KNOWN, *renamed.values()},
        "benchmark" in {*table.names, *renamed},
    )
    if not has_benchmark:
        taken |= {name for name in columns if metric_name(name) in SETTINGS}
    stems = {name: VALUE_AT_END.sub("", name) for name in columns if f"{VALUE_AT_END.sub('', name)}unit" in columns}
    units = {name: f"{stem}unit" for name, stem in stems.items()}  # rate.value, rate.unit
    read = {name: _measured(name, column) for name, column in columns.items() if name not in {*taken, *units.values()}}
    metrics = {name: cells for name, cells in read.items() if cells is not None and not are_none(cells[0]).all()}
    if not metrics:
        return table, []
    rows, n_metrics = np.repeat(np.arange(len(table.places)), len(metrics)), len(metrics)
    names = [metric_name(stems.get(name, name)) for name in metrics]
    text_columns = {"metric": names} if has_benchmark else {"benchmark": names, "metric": [RESULT] * n_metrics}
    lines = [f"read {', '.join(f'`{name}`' for name in metrics)} as {'metrics' if has_benchmark else 'benchmarks'}"]
    if not {"started_at", "execution_id"} & {*table.names, *renamed, *given}:
        called = [f"{'/'.join(PurePath(absolute(table.path)).parts[-2:])}/{place}" for place in table.places]
        tests = [""] * n_metrics if has_benchmark else [f"/{name}" for name in names]
        text_columns["execution_id"] = [f"{row}{test}" for row in called for test in tests]
        lines.append("each row is an execution, called by its line: nobody says when it ran")
    kept = {name: column.take(pa.array(rows)) for name, column in columns.items() if name not in metrics}
    long_columns = {
        name: pa.chunked_array([pa.array(np.resize(texts, len(rows)))]) for name, texts in text_columns.items()
    }
    stated = [
        texts(columns[units[name]]).values if name in units else unit  # noqa: PD011
        for name, (_, unit) in metrics.items()
    ]
    for name, parts in (("value", [values for values, _ in metrics.values()]), ("unit", stated)):
        long_columns[name] = pa.chunked_array([pa.array(np.column_stack(parts).ravel(), from_pandas=True)])
    everything = kept | long_columns
    unread = [name for name, cells in read.items() if cells is None]
    lines += [f"not read: {quoted(unread)} (neither numbers nor numbers with a known unit)"] if unread else []
    named: Any = {"names": list(everything), "columns": list(everything.values())}
    return replace(table, **named, places=table.places[rows], raw=lambda row: table.raw(row // n_metrics)), lines


def _with_units(table: WholeTable, renamed: Mapping[str, str]) -> tuple[WholeTable, list[str]]:
    """A long table with the units that stand in its values, or where it has no metric at the end of its benchmarks,
    for rows that name none in a column.

    Without a metric each benchmark has one."""
    columns = table.by_name()
    benchmark, metric, value, unit = (renamed.get(ours, ours) for ours in ("benchmark", "metric", "value", "unit"))
    has_metric = metric in columns
    if value not in columns or (has_metric and unit in columns) or not (has_metric or benchmark in columns):
        return table, []
    stated = texts(columns[unit]).values if unit in columns else np.full(len(table.places), None)  # noqa: PD011
    units, added = np.where(are_none(stated), "", stated), {value: columns[value]}
    if is_text(columns[value].type):
        written, numbers, in_cells = _split(columns[value])
        is_open = (units == "") & in_cells.map(_is_unit)
        units = np.where(is_open, in_cells, units)
        added[value] = pa.chunked_array([pa.array(numbers.where(is_open, written), pa.string(), from_pandas=True)])
    if not has_metric:
        tests = texts(columns[benchmark]).values  # noqa: PD011
        units = np.where(units == "", [unit_at_end(str(test)) for test in tests], units)
        added["metric"] = pa.chunked_array([pa.array([RESULT] * len(tests))])
    if has_metric and (units == "").all():
        return table, []
    columns |= added | {unit if unit in columns else "unit": pa.chunked_array([pa.array(units, pa.string())])}
    named: Any = {"names": list(columns), "columns": list(columns.values())}
    return replace(table, **named), [] if has_metric else [f"read `{value}` as the one metric of each benchmark"]


def _split(column: pa.ChunkedArray) -> tuple[pd.Series, pd.Series, pd.Series]:
    """The cells of a column as they are written, and what may be their numbers and units, missing where none is."""
    written = pd.Series(trimmed(column).to_pylist(), dtype=object)
    parts = written.astype("str").str.extract(NUMBER_AND_UNIT).astype(object)
    return written, parts[0], parts[1]


def _is_unit(text: object) -> bool:
    """Whether what stands behind a number is its unit: one that is known, or anything by one (tokens/s)."""
    return isinstance(text, str) and any(
        conversion_of(unit).is_known for unit in (text, f"1/{text.rpartition('/')[2]}")
    )


def _measured(name: str, column: pa.ChunkedArray) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Values and units of a column, (n_rows,) each; None if it holds no numbers.

    Units are those of its cells, else that of its name."""
    cells, unit = measured(column)
    if not cells.is_bad.any():
        return cells.values, np.full(len(cells.values), unit or unit_at_end(name), dtype=object)  # noqa: PD011
    if not is_text(column.type):
        return None
    written, numbers, units = _split(column)
    cells = to_numbers(pa.array(numbers, pa.string(), from_pandas=True))
    is_whole = units.notna() == written.notna()
    is_known = units.dropna().map(lambda unit: conversion_of(unit).is_known)
    if cells.is_bad.any() or not is_whole.all() or not is_known.all():
        return None
    return cells.values, units.fillna("").to_numpy(dtype=object)  # noqa: PD011


def unit_at_end(name: str) -> str:
    """The unit at the end of a column's name: events_per_s, triad_MBps, Latency (ms), input_gb; empty for none.

    A name that is a unit and nothing else has that of time alone. In lower case a prefix and b are bytes (mb, mb/s).
    No minutes: of latency_min and the like it is the least."""
    name = FLOPS.sub(lambda found: f"{found[1].upper()}flops", SLASH.sub("/", name))
    name = LOWER_BYTES.sub(lambda found: BYTES[found[0]], name)
    words = [word for word in NAME_SEPARATORS.split(name) if word]
    per = PER_TIME.search(name)
    for n_words in range(min(MOST_UNIT_WORDS, len(words)), 0, -1):
        tail = "_".join(words[-n_words:])
        if n_words == 1 and per and "/" not in tail:  # the hour of runs_per_hour is none that it took
            break
        for unit in (tail, tail[0].upper() + tail[1:]):  # gbit/s
            base = conversion_of(unit).base
            is_whole = len(words) > 1 or "/" in tail or (base == "s" and unit.lower() not in CALENDAR)
            if is_whole and unit.lower() != "min" and base in UNITS_IN_NAMES:
                return unit
    if per:
        is_share = "/" in words[-1] and conversion_of(words[-1]).is_known  # stall ms/s
        return "" if is_share or conversion_of(f"1/{per[1]}").base != "1/s" else f"1/{per[1]}"
    for dimension in DIMENSIONS:
        with contextlib.suppress(ValueError):  # k, m: may be many things
            last = (unit_in_name(name, dimension) or "").lower()
            for unit, (_, others) in SPELLINGS[dimension].items():
                if last != "min" and last in (unit.lower(), *others):
                    return unit
    return ""


def _columns(
    table: WholeTable, params: ReadParams, entries: Entries, recognised: Mapping[str, str]
) -> dict[str, pa.ChunkedArray]:
    node = node_of(table.path, params)
    renamed = {**recognised, **params.columns}
    if label_column(params):
        renamed["node"] = label_column(params)
    given = {"node" for _ in (node,) if node} | {name for entry in entries for name in entry}
    needed = [group for group in NEEDED if not given & set(group)]
    try:
        columns = choose_columns(table, KNOWN, needed, renamed)
    except BadInput as error:
        if error.fix == "name yours, as in --map node=THEIRS":
            fix = f"{error.fix}, or --label-from stem|parent, or a manifest"
            raise BadInput(error.where, error.problem, error.expected, fix) from error
        raise
    unknown = [name for name in table.names if name not in {*columns, *renamed.values()}]
    if unknown:
        logger.info("%s: %d unknown columns are ignored: %s", table.path, len(unknown), quoted(unknown))
    return columns


def _rows(
    table: WholeTable, columns: dict[str, pa.ChunkedArray], params: ReadParams, entries: Entries
) -> tuple[Rows, NDArray[np.object_]]:
    """All columns of KNOWN in our types, and why each row cannot be used. entries: of a manifest, of this file."""
    n_rows = len(table.places)
    cells = {name: _cells(name, column, params.time_zone) for name, column in columns.items()}
    empty = {name: _missing(name, n_rows) for name in KNOWN}
    rows: Rows = empty | {name: cell.values for name, cell in cells.items()}  # noqa: PD011
    rows = _with_entries(rows, entries)
    if node := node_of(table.path, params):
        rows["node"] = np.where(are_none(rows["node"]), node, rows["node"])
    rows["ended_at"], rows["duration_s"] = completed_times(rows["started_at"], rows["ended_at"], rows["duration_s"])
    if "is_stressed" not in columns and {"dose", "dose_level"} & set(columns):
        has_none = "dose" in columns and not any("is_stressed" in entry for entry in entries)
        rows["is_stressed"] = _stressed(rows, has_none=has_none)
    is_called = ~are_none(rows["execution_id"])
    if "execution_id" not in columns:
        rows["execution_id"] = np.where(is_called, rows["execution_id"], _ids(rows))
    checks: list[Check] = [(cells[name].is_bad, f"{name} is not {MEANINGS[name]}") for name in KNOWN if name in cells]
    checks.append((are_none(rows["metric"]), "no metric; expected its name"))
    if "execution_id" not in columns:
        is_never = np.isnat(rows["started_at"]) & ~is_called
        checks.append((is_never, "no started_at; expected the time at which the execution began"))
    reasons = first_reasons(n_rows, checks)
    return rows, np.where(reasons == "", vet(rows), reasons)


def _with_entries(rows: Rows, entries: Entries) -> Rows:
    """The rows with node, benchmark, start and id from the entries that they do not contradict; the last one counts."""
    filled = dict(rows)
    for entry in reversed(entries):
        identity = {name: np.array([entry[name]], dtype=filled[name].dtype)[0] for name in IDENTITY if name in entry}
        is_open = {name: are_none(filled[name]) for name in identity}
        fits = np.ones(len(filled["node"]), dtype=bool)
        for name, value in identity.items():
            fits &= is_open[name] | np.asarray(filled[name] == value, dtype=bool)
        for name, value in identity.items():
            filled[name] = np.where(fits & is_open[name], value, filled[name])
    return filled


def _stressed(rows: Rows, *, has_none: bool) -> NDArray[np.object_]:
    """What doses and their levels say of stress. has_none: no dose says that there was none, as a level of 0 does."""
    is_level = ~np.isnan(rows["dose_level"].astype(np.float64))
    is_stressed = np.array([is_dose(dose) for dose in rows["dose"]], dtype=bool)
    is_stressed |= is_level & np.array([is_dose(level) for level in rows["dose_level"]], dtype=bool)
    stressed: NDArray[np.object_] = is_stressed.astype(object)
    stressed[~(is_stressed | is_level | has_none)] = None
    return stressed


def _cells(name: str, column: pa.ChunkedArray, zone: str) -> Cells:
    if name in TIMES:
        return times(column, zone)
    if name in FLAGS:
        return flags(column)
    if name in TEXTS:
        return texts(column)
    return to_numbers(column)


def _missing(name: str, n_rows: int) -> NDArray[Any]:
    if name in TIMES:
        return np.full(n_rows, np.datetime64("NaT", "us"))
    return np.full(n_rows, np.nan) if name in NUMBERS else np.full(n_rows, None, dtype=object)


def _ids(rows: Rows) -> NDArray[np.object_]:
    """node/benchmark/start: what makes rows without an id one execution."""
    moments = rows["started_at"].astype("datetime64[us]").astype(str)
    keys = zip(rows["node"], rows["benchmark"], moments, strict=True)
    return np.array(
        [f"{node}/{benchmark}/{moment.removesuffix('.000000')}" for node, benchmark, moment in keys], dtype=object
    )


def _grouped(table: WholeTable, rows: Rows, faults: NDArray[np.object_]) -> Chunk:
    """The executions of a table. rows: all columns of a long table; faults: why single rows cannot be used."""
    frame = pd.DataFrame(rows).assign(row=np.arange(len(faults)))[faults == ""]
    code, ids = pd.factorize(frame["execution_id"])
    frame = frame.assign(code=code)
    shared = frame.groupby("code", sort=True)[list(SHARED)].first()
    contradictions = _contradictions(frame, shared)
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
    executions = _executions(table, frame, shared, ids)
    return Chunk(framed(executions), refused, {"metrics": framed(_metrics(frame, executions, ids))})


def _contradictions(frame: pd.DataFrame, shared: pd.DataFrame) -> NDArray[np.object_]:
    """For each row what it says against the first row of its execution that says anything; empty: nothing."""
    reasons: NDArray[np.object_] = np.full(len(frame), "", dtype=object)
    code = frame["code"].to_numpy()
    for name in SHARED:
        values, first = frame[name], shared[name].to_numpy()[code]
        is_other = np.asarray(values.to_numpy() != first, dtype=bool)
        differs = values.notna().to_numpy() & is_other & (reasons == "")
        for at in np.flatnonzero(differs).tolist():
            reasons[at] = f"{name} {values.iloc[at]} in an execution of {first[at]}; expected one an execution"
    return reasons


def _executions(table: WholeTable, frame: pd.DataFrame, shared: pd.DataFrame, ids: pd.Index) -> pa.Table:
    by_code = frame.assign(place=table.places[frame["row"]]).groupby("code", sort=True)
    kept = shared.loc[list(by_code.groups)].astype(object)
    kept = kept.where(kept.notna(), None)
    aspects = {name: aspect_of(name) for name in set(kept["benchmark"])}
    pairs = list(zip(kept["template"], kept["template_hash"], strict=True))
    hashes = {pair: template_hash(*pair) for pair in set(pairs)}
    lacking = frame[frame["value"].isna()].groupby("code")["metric"].agg(list).to_dict()
    columns: dict[str, Any] = {name: kept[name].to_numpy() for name in SHARED} | {
        "execution_id": ids.to_numpy()[kept.index],
        "aspect": [value or aspects[name] for value, name in zip(kept["aspect"], kept["benchmark"], strict=True)],
        "status": [value or "completed" for value in kept["status"]],
        "template_hash": [hashes[pair] for pair in pairs],
        "is_simulated": [table.is_simulated if value is None else value for value in kept["is_simulated"]],
        "missing_metrics": [lacking.get(code, []) for code in kept.index],
        "n_metrics": by_code["value"].count().to_numpy(),
        "n_rows": by_code["place"].nunique().to_numpy(),
        "place": table.places[by_code["row"].min().to_numpy()],
    }
    return _arrays(columns, EXECUTIONS_SCHEMA)


def _metrics(frame: pd.DataFrame, executions: pa.Table, ids: pd.Index) -> pa.Table:
    """The rows with a value, in the order of their executions."""
    kept = frame[frame["value"].notna()].sort_values("code", kind="stable")
    place_of = pd.Series(executions["place"].to_numpy(), index=np.unique(frame["code"]))
    columns: dict[str, Any] = {name: kept[name].to_numpy() for name in ("metric", "value")}
    columns |= {"unit": kept["unit"].fillna("").to_numpy(), "place": place_of.loc[kept["code"]].to_numpy()}
    return _arrays(columns | {"execution_id": ids.to_numpy()[kept["code"]]}, METRICS_SCHEMA)


def _arrays(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Columns in the types that are landed, what pandas holds for missing (None, NaN, NaT) as missing."""
    whole = {field.name for field in schema if pa.types.is_integer(field.type)}
    numbers = {name: pd.array(columns[name]).astype("Int64") for name in whole}
    typed = {**columns, **numbers}
    return pa.table({field.name: pa.array(typed[field.name], field.type, from_pandas=True) for field in schema}, schema)
