"""The tables of Azure's VM noise study (Freischuetz et al., TUNA, EuroSys 2025): a row is one value of one test.

Columns: test_suite, test_name, lifespan, region, sku, unit, vm_id, started_at, runtime_s, value; any SKUs, regions and
tests. A node is lifespan-region-sku-vm_id, its type the SKU. Rows of one node, test and start are one execution: fio
writes IOPS, MiB/s and latency in rows of their own, told apart by the unit. A metric that stands twice in an execution
counts as in its last row. Millions of rows: names are numbers, and whole columns are worked on at a time."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.intake.cells import Cells, are_none, texts, times
from tasks.intake.cells import numbers as to_numbers
from tasks.intake.files import Chunk, all_refusals, no_refusals, refusals
from tasks.intake.tables import WholeTable, choose_columns, column_names, whole_table
from tasks.nodes.execution import EXECUTIONS_SCHEMA, METRICS_SCHEMA, framed
from tasks.nodes.params import FUTURE_SLACK_S, ReadParams
from tasks.nodes.readers.vetting import (
    MICROSECONDS,
    Check,
    Reasons,
    aspect_of,
    benchmark_slugs,
    completed_times,
    first_reasons,
    span_checks,
    time_checks,
)

NODE = ("lifespan", "region", "sku", "vm_id")
TEST = ("test_suite", "test_name")
SHORT = {"Flexible_IO_Tester": "fio", "Intel_Memory_Latency_Checker": "mlc"}
PARTS = re.compile(r"[_ ]-[_ ]")
SAID_BY_VALUE = {"type", "test", "benchmark", "mode", "io engine", "block size"}  # keys whose values tell enough
METRICS = (  # what a unit says of the metric; the first that fits counts
    ("iops", re.compile(r"iops", re.IGNORECASE)),
    ("latency", re.compile(r"([mun]s|[mun]?sec|seconds?)([ _]per[ _].*)?", re.IGNORECASE)),
    ("throughput", re.compile(r"[KMGT]i?B.*", re.IGNORECASE)),
    ("rate", re.compile(r"tps|.*(/|_|[ _]per[ _])(s|sec|second)", re.IGNORECASE)),
    ("result", re.compile(r".*", re.DOTALL)),
)
Ints = NDArray[np.int64]
FACTS = (
    "execution_id", "node", "machine_type", "benchmark", "aspect", "template", "started_at", "ended_at", "duration_s",
    "status", "region", "n_metrics", "is_simulated", "n_rows", "place",
)  # fmt: skip
NAMES = ("test_suite", "test_name", "lifespan", "region", "sku", "vm_id")
COLUMNS = (*NAMES, "unit", "started_at", "runtime_s", "value")
NEEDED = tuple((name,) for name in (*NAMES, "started_at", "value"))
OWN_COLUMNS = {"test_suite", "test_name", "sku", "vm_id", "value"}
CHUNK_EXECUTIONS = 250_000
MOST_RAW = 10_000  # refused rows whose text is kept: it is made one by one


@dataclass(frozen=True)
class Named:
    """node, test, metric, unit: (n_rows,), numbers of the names below; -1 where a part of a node or test is missing.

    nodes: node, machine_type and region by number of the node. tests: benchmark, aspect and template by that of the
    test. metrics, units: names."""

    node: Ints
    test: Ints
    metric: Ints
    unit: Ints
    nodes: pa.Table
    tests: pa.Table
    metrics: pa.Array
    units: pa.Array


@dataclass(frozen=True)
class Values:
    """Columns of all rows of a table, (n_rows,): started_at as datetime64[us]; runtime_s and value NaN: missing."""

    named: Named
    started_at: NDArray[np.datetime64]
    runtime_s: NDArray[np.float64]
    value: NDArray[np.float64]
    places: Ints
    is_simulated: bool


def sniff(head: bytes, path: str) -> bool:
    """A header or footer with the columns that name test and machine."""
    return set(column_names(head, path)) >= OWN_COLUMNS


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """As Reader.read says. Raises BadInput for a table without a column that is needed."""
    table = whole_table(path, params.limits, row="execution", as_codes=(*NAMES, "unit"))
    columns = choose_columns(table, COLUMNS, NEEDED, params.columns)
    n_rows = len(table.places)
    started, value = times(columns["started_at"], params.time_zone), to_numbers(columns["value"])
    nothing = Cells(np.full(n_rows, np.nan), np.zeros(n_rows, dtype=bool))
    runtime = to_numbers(columns["runtime_s"]) if "runtime_s" in columns else nothing
    values = Values(
        named=name_rows(columns, n_rows),
        started_at=started.values,
        runtime_s=runtime.values,
        value=value.values,
        places=table.places,
        is_simulated=table.is_simulated,
    )
    yield from _chunks(table, values, _reasons(values, runtime.is_bad.astype(bool)))


def _reasons(values: Values, has_odd_runtime: NDArray[np.bool_]) -> Reasons:
    """Why each row cannot be used; empty where it can."""
    now, started, named = datetime.now(UTC).replace(tzinfo=None), values.started_at, values.named
    ended = np.full(len(started), np.datetime64("NaT", "us"))
    checks: list[Check] = [
        (named.node < 0, "no node; expected lifespan, region, sku and vm_id"),
        (named.test < 0, "no benchmark; expected test_suite and test_name"),
        (np.isnat(started), "started_at is no time; expected ISO 8601 or Unix time, in UTC"),
        (np.isnan(values.value), "value is no finite number; expected one"),
        *time_checks("started_at", started, now, FUTURE_SLACK_S),
        (has_odd_runtime, "runtime_s is no finite number; expected seconds"),
    ]
    spans = span_checks(started, ended, values.runtime_s)
    checks += [(is_bad, reason.replace("duration_s", "runtime_s")) for is_bad, reason in spans]
    reasons = first_reasons(len(started), checks)
    good = np.flatnonzero(reasons == "")
    keys = pd.DataFrame({"node": named.node, "test": named.test, "started": started, "metric": named.metric}).iloc[good]
    twice = good[keys.duplicated(keep="last").to_numpy()]
    reasons[twice] = "the metric stands again in a later row of this node, test and start, which counts"
    return reasons


def _chunks(table: WholeTable, values: Values, reasons: Reasons) -> Iterator[Chunk]:
    bad = np.flatnonzero(reasons != "")
    raws = [table.raw(int(row)) for row in bad[:MOST_RAW]] + [""] * max(len(bad) - MOST_RAW, 0)
    refused = all_refusals([table.refused, refusals(table.places[bad], reasons[bad].tolist(), raws)])
    rows, heads = _executions(values, np.flatnonzero(reasons == ""))
    if not len(heads):
        yield Chunk(pd.DataFrame(), refused, {})
    edges = [*heads.tolist(), len(rows)]
    for first in range(0, len(heads), CHUNK_EXECUTIONS):
        last = min(first + CHUNK_EXECUTIONS, len(heads))
        own = rows[edges[first] : edges[last]]
        chunk = chunk_of(values, own, heads[first:last] - edges[first])
        yield Chunk(chunk.rows, refused if first == 0 else no_refusals(), chunk.tables)


def _executions(values: Values, good: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The usable rows by node, test and start, in their order within an execution; and where each execution begins."""
    test = values.named.node[good] * len(values.named.tests) + values.named.test[good]
    started = values.started_at[good]
    order = np.lexsort((started, test))
    is_head = np.ones(len(order), dtype=bool)
    is_head[1:] = (np.diff(test[order]) != 0) | (started[order][1:] != started[order][:-1])
    return good[order], np.flatnonzero(is_head)


def name_rows(columns: Mapping[str, pa.ChunkedArray], n_rows: int) -> Named:
    """The names of all rows. columns: lifespan, region, sku, vm_id, test_suite, test_name and unit, of any type."""
    node, nodes = _combined([columns[name] for name in NODE], n_rows)
    test, tests = _combined([columns[name] for name in TEST], n_rows)
    pairs = [(suite, name) for suite, name in tests]
    unit, units = _coded(columns["unit"]) if "unit" in columns else (np.full(n_rows, -1), [])
    units = [*units, ""]  # the last one, number -1: no unit
    metrics = [metric_of(one) for one in units]
    names = sorted(set(metrics))
    called = {
        "benchmark": benchmark_slugs(_shortened(pairs)),
        "aspect": [aspect_of(SHORT.get(suite, suite), name) for suite, name in pairs],
        "template": [f"{suite}: {name}" for suite, name in pairs],
    }
    machines = {
        "node": ["-".join(parts) for parts in nodes],
        "machine_type": [sku for _, _, sku, _ in nodes],
        "region": [region for _, region, _, _ in nodes],
    }
    return Named(
        node=node,
        test=test,
        metric=np.array([names.index(one) for one in metrics], dtype=np.int64)[unit],
        unit=np.where(unit < 0, len(units) - 1, unit),
        nodes=_texts_of(machines),
        tests=_texts_of(called),
        metrics=pa.array(names, pa.string()),
        units=pa.array(units, pa.string()),
    )


def _texts_of(columns: Mapping[str, Any]) -> pa.Table:
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})


def metric_of(unit: str) -> str:
    """What a value of this unit is called: the table has no name for it but the unit."""
    return next(name for name, pattern in METRICS if pattern.fullmatch(unit))


def short_test(name: str) -> str:
    """`Type:_Random_Read_-_Direct:_No_-_Clients:_25` as `Random Read Clients 25`."""
    found = []
    for part in PARTS.split(name):
        key, colon, value = (text.replace("_", " ").strip() for text in part.partition(":"))
        if not colon or not value:
            found.append(key)
        elif value.lower() in ("yes", "no"):
            found += [key] if value.lower() == "yes" else []
        else:
            found.append(value if key.lower() in SAID_BY_VALUE else f"{key} {value}")
    return " ".join(found)


def _shortened(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Suites and tests in short; in full where two tests would be the same in short."""
    short = {(suite, name): (SHORT.get(suite, suite), short_test(name)) for suite, name in pairs}
    n_of = Counter(short.values())
    return [short[pair] if n_of[short[pair]] == 1 else (short[pair][0], pair[1].replace("_", " ")) for pair in pairs]


def _combined(columns: list[pa.ChunkedArray], n_rows: int) -> tuple[Ints, list[tuple[str, ...]]]:
    """Numbers of the combinations of some columns that occur (-1 where one is missing), and their texts by number."""
    codes, names = zip(*(_coded(column) for column in columns), strict=True)
    whole, is_missing = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=bool)
    for code, own in zip(codes, names, strict=True):
        whole = whole * max(len(own), 1) + np.maximum(code, 0)
        is_missing |= code < 0
    number, distinct = pd.factorize(whole)
    found = []
    for one in distinct.tolist():
        parts = []
        for own in reversed(names):
            one, at = divmod(one, max(len(own), 1))
            parts.append(own[at] if own else "")
        found.append(tuple(reversed(parts)))
    return np.where(is_missing, -1, np.asarray(number, dtype=np.int64)), found


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Small numbers for the values of a column, -1 for missing ones, and their texts."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    told = texts(encoded.dictionary).values  # noqa: PD011
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    is_missing = np.append(are_none(told), True)  # position -1: no value at all
    return np.where(is_missing[codes], -1, codes), [one or "" for one in told]


def chunk_of(values: Values, rows: Ints, heads: Ints) -> Chunk:
    """Some executions. rows: theirs, one execution after the other; heads: where in `rows` each begins.

    An execution is called node/benchmark/start: the same in every export of the study."""
    named, first = values.named, rows[heads]
    n_own = np.diff(np.append(heads, len(rows)))
    started, runtime_s = values.started_at[first], values.runtime_s[first]
    own_nodes, own_tests = named.nodes.take(named.node[first]), named.tests.take(named.test[first])
    ids = pc.binary_join_element_wise(own_nodes["node"], own_tests["benchmark"], _written(started), "/")
    places = values.places[first]
    columns: dict[str, Any] = {
        "execution_id": ids,
        **{name: own[name] for own in (own_nodes, own_tests) for name in own.column_names},
        "started_at": pa.array(started),
        "ended_at": pa.array(completed_times(started, np.full_like(started, "NaT"), runtime_s)[0]),
        "duration_s": pa.array(runtime_s, from_pandas=True),
        "status": pa.repeat(pa.scalar("completed"), len(first)),
        "n_metrics": pa.array(n_own),
        "is_simulated": pa.repeat(pa.scalar(values.is_simulated), len(first)),
        "n_rows": pa.array(n_own),
        "place": pa.array(places),
    }
    execution = np.repeat(np.arange(len(first)), n_own)
    metrics: dict[str, Any] = {
        "execution_id": ids if len(first) == len(rows) else ids.take(pa.array(execution)),
        "metric": named.metrics.take(pa.array(named.metric[rows])),
        "value": pa.array(values.value[rows]),
        "unit": named.units.take(pa.array(named.unit[rows])),
        "place": pa.array(places[execution]),
    }
    schema = pa.schema([EXECUTIONS_SCHEMA.field(name) for name in FACTS])
    executions = pa.table({name: columns[name] for name in FACTS}, schema=schema)
    told = pa.table({name: metrics[name] for name in METRICS_SCHEMA.names}, schema=METRICS_SCHEMA)
    return Chunk(framed(executions), no_refusals(), {"metrics": framed(told)})


def _written(started: NDArray[np.datetime64]) -> pa.Array:
    """2023-05-01T12:34:56, with a fraction where there is one."""
    is_whole = started.astype("int64") % int(MICROSECONDS) == 0
    told = pa.array(started.astype("datetime64[s]")).cast(pa.string())
    if not is_whole.all():
        told = pc.if_else(pa.array(is_whole), told, pa.array(started).cast(pa.string()))
    return pc.replace_substring(told, " ", "T")
