"""The tables of Azure's VM noise study (Freischuetz et al., TUNA, EuroSys 2025): a row is one value of one test.

Columns: test_suite, test_name, lifespan, region, sku, unit, vm_id, started_at, runtime_s, value; any SKUs, regions and
tests. A node is lifespan-region-sku-vm_id, its type the SKU. Rows of one node, test and start are one execution: fio
writes IOPS, MiB/s and latency in rows of their own, told apart by the unit. A metric that stands twice in an execution
counts as in its last row. Millions of rows: names are numbers, and whole columns are worked on at a time."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.intake.cells import are_none, texts, times
from tasks.intake.cells import numbers as to_numbers
from tasks.intake.files import Chunk, all_refusals, no_refusals, refusals
from tasks.intake.tables import choose_columns, column_names, whole_table
from tasks.nodes.execution import EXECUTIONS_SCHEMA, METRICS_SCHEMA, framed
from tasks.nodes.params import ReadParams
from tasks.nodes.readers import vetting
from tasks.nodes.readers.vetting import MICROSECONDS, aspect_of, benchmark_slugs, completed_times, first_reasons

NODE = ("lifespan", "region", "sku", "vm_id")
TEST = ("test_suite", "test_name")
SHORT = {"Flexible_IO_Tester": "fio", "Intel_Memory_Latency_Checker": "mlc"}
PARTS = re.compile(r"[_ ]-[_ ]")
NAMED_BY_VALUE = {"type", "test", "benchmark", "mode", "io engine", "block size"}  # keys whose values suffice
METRICS = (  # what a unit says of the metric; the first that fits counts
    ("iops", re.compile(r"iops", re.IGNORECASE)),
    ("latency", re.compile(r"([mun]s|[mun]?sec|seconds?)([ _]per[ _].*)?", re.IGNORECASE)),
    ("throughput", re.compile(r"[KMGT]i?B.*", re.IGNORECASE)),
    ("rate", re.compile(r"tps|.*(/|_|[ _]per[ _])(s|sec|second)", re.IGNORECASE)),
    ("result", re.compile(r".*", re.DOTALL)),
)
Ints = NDArray[np.int64]
NAMES = ("test_suite", "test_name", "lifespan", "region", "sku", "vm_id")
COLUMNS = (*NAMES, "unit", "started_at", "runtime_s", "value")
NEEDED = tuple((name,) for name in (*NAMES, "started_at", "value"))
OWN_COLUMNS = {"test_suite", "test_name", "sku", "vm_id", "value"}
EXECUTION = ["node", "test", "started"]  # what makes rows one
CHUNK_EXECUTIONS = 250_000
MOST_RAW = 10_000  # refused rows whose text is kept: it is made one by one


@dataclass(frozen=True)
class AzureNames:
    """Names by number. nodes: node, machine_type and region. tests: benchmark, aspect and template. units: metric and
    unit, the last of them for a row without one."""

    nodes: pa.Table
    tests: pa.Table
    units: pa.Table


def sniff(head: bytes, path: str) -> bool:
    """A header or footer with the columns that name test and machine."""
    return set(column_names(head, path)) >= OWN_COLUMNS


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """As Reader.read says. Raises BadInput for a table without a column that is needed."""
    table = whole_table(path, params.limits, row="execution", as_codes=(*NAMES, "unit"))
    columns = choose_columns(table, COLUMNS, NEEDED, params.columns)
    started, value = times(columns["started_at"], params.time_zone), to_numbers(columns["value"])
    runtime = to_numbers(columns["runtime_s"]) if "runtime_s" in columns else None
    (node, nodes), (test, tests) = (_numbered([columns[name] for name in names]) for names in (NODE, TEST))
    unit, units = _coded(columns["unit"]) if "unit" in columns else (np.full(len(node), -1), [])
    names = _names(nodes, tests, units)
    rows = pd.DataFrame({"node": node, "test": test, "started": started.values, "value": value.values})  # noqa: PD011
    rows = rows.assign(
        unit=np.where(unit < 0, len(units), unit),
        metric=names.units["metric"].dictionary_encode().combine_chunks().indices.to_numpy()[unit],
        runtime_s=runtime.values if runtime else np.nan,  # noqa: PD011
        place=table.places,
    )
    reasons = _reasons(rows, runtime.is_bad.astype(bool) if runtime else np.zeros(len(rows), dtype=bool))
    bad = np.flatnonzero(reasons != "")
    raws = [table.raw(int(row)) for row in bad[:MOST_RAW]] + [""] * max(len(bad) - MOST_RAW, 0)
    refused = all_refusals([table.refused, refusals(table.places[bad], reasons[bad].tolist(), raws)])
    rows = rows[reasons == ""].sort_values(EXECUTION, kind="stable")
    edges = [*np.flatnonzero(~rows.duplicated(EXECUTION)), len(rows)]
    for first in range(0, max(len(edges) - 1, 1), CHUNK_EXECUTIONS):
        part = rows.iloc[edges[first] : edges[min(first + CHUNK_EXECUTIONS, len(edges) - 1)]]
        yield _chunk(part, names, refused if first == 0 else no_refusals(), is_simulated=table.is_simulated)


def _reasons(rows: pd.DataFrame, has_odd_runtime: NDArray[np.bool_]) -> vetting.Reasons:
    """Why each row cannot be used; empty where it can."""
    started = rows["started"].to_numpy()
    ended, runtime_s = np.full(len(rows), np.datetime64("NaT", "us")), rows["runtime_s"].to_numpy()
    checks: list[vetting.Check] = [
        (rows["node"].to_numpy() < 0, "no node; expected lifespan, region, sku and vm_id"),
        (rows["test"].to_numpy() < 0, "no benchmark; expected test_suite and test_name"),
        (np.isnat(started), "started_at is no time; expected ISO 8601 or Unix time, in UTC"),
        (rows["value"].isna().to_numpy(), "value is no finite number; expected one"),
        *vetting.time_checks("started_at", started),
        (has_odd_runtime, "runtime_s is no finite number; expected seconds"),
    ]
    spans = vetting.span_checks(started, ended, runtime_s)
    checks += [(is_bad, reason.replace("duration_s", "runtime_s")) for is_bad, reason in spans]
    reasons = first_reasons(len(rows), checks)
    is_good = reasons == ""
    twice = rows.index[is_good][rows[is_good].duplicated([*EXECUTION, "metric"], keep="last").to_numpy()]
    reasons[twice] = "the metric stands again in a later row of this node, test and start, which counts"
    return reasons


def _names(nodes: Sequence[Sequence[str]], tests: Sequence[Sequence[str]], units: Sequence[str]) -> AzureNames:
    """nodes: lifespan, region, sku and vm_id of each. tests: suite and name of each."""
    pairs = [(suite, name) for suite, name in tests]
    return AzureNames(
        _texts(
            node=["-".join(parts) for parts in nodes],
            machine_type=[sku for _, _, sku, _ in nodes],
            region=[region for _, region, _, _ in nodes],
        ),
        _texts(
            benchmark=benchmark_slugs(_shortened(pairs)),
            aspect=[aspect_of(SHORT.get(suite, suite), name) for suite, name in pairs],
            template=[f"{suite}: {name}" for suite, name in pairs],
        ),
        _texts(metric=[metric_of(unit) for unit in (*units, "")], unit=[*units, ""]),
    )


def _texts(**columns: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})


def metric_of(unit: str) -> str:
    """What a value of this unit is called: the table has no name for it but the unit."""
    return next(name for name, pattern in METRICS if pattern.fullmatch(unit))


def short_test(name: str) -> str:
    """`Type:_Random_Read_-_Direct:_No_-_Clients:_25` as `Random Read Clients 25`."""
    words = []
    for part in PARTS.split(name):
        key, colon, value = (text.replace("_", " ").strip() for text in part.partition(":"))
        if not colon or not value:
            words.append(key)
        elif value.lower() in ("yes", "no"):
            words += [key] if value.lower() == "yes" else []
        else:
            words.append(value if key.lower() in NAMED_BY_VALUE else f"{key} {value}")
    return " ".join(words)


def _shortened(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Suites and tests in short; in full where two tests would be the same in short."""
    short = {(suite, name): (SHORT.get(suite, suite), short_test(name)) for suite, name in pairs}
    n_of = Counter(short.values())
    return [short[pair] if n_of[short[pair]] == 1 else (short[pair][0], pair[1].replace("_", " ")) for pair in pairs]


def _numbered(columns: Sequence[pa.ChunkedArray]) -> tuple[Ints, list[tuple[str, ...]]]:
    """Numbers of the combinations of some columns that occur (-1 where one is missing), and their texts by number."""
    coded = [_coded(column) for column in columns]
    codes = pd.DataFrame({at: code for at, (code, _) in enumerate(coded)})
    is_whole = (codes >= 0).all(axis=1)
    number = codes[is_whole].groupby(list(codes), sort=False).ngroup().reindex(codes.index, fill_value=-1)
    distinct = codes[is_whole].drop_duplicates().to_numpy().tolist()
    return np.asarray(number, dtype=np.int64), [
        tuple(names[at] for at, (_, names) in zip(row, coded, strict=True)) for row in distinct
    ]


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Small numbers for the values of a column, -1 for missing ones, and their texts."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    values = texts(encoded.dictionary).values  # noqa: PD011
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    is_missing = np.append(are_none(values), True)  # position -1: no value at all
    return np.where(is_missing[codes], -1, codes), [text or "" for text in values]


def _chunk(rows: pd.DataFrame, names: AzureNames, refused: pd.DataFrame, *, is_simulated: bool) -> Chunk:
    """Some executions, their rows one after the other.

    An execution is called node/benchmark/start: the same in every export of the study."""
    if not len(rows):
        return Chunk(pd.DataFrame(), refused, {})
    is_head = ~rows.duplicated(EXECUTION).to_numpy()
    first, execution = rows[is_head], np.cumsum(is_head) - 1
    started, runtime_s = first["started"].to_numpy(), first["runtime_s"].to_numpy()
    nodes, tests = (of.take(pa.array(first[name])) for of, name in ((names.nodes, "node"), (names.tests, "test")))
    n_own = pa.array(np.bincount(execution))
    executions = pa.table(
        {
            "execution_id": pc.binary_join_element_wise(nodes["node"], tests["benchmark"], _written(started), "/"),
            **{name: table[name] for table in (nodes, tests) for name in table.column_names},
            "started_at": pa.array(started),
            "ended_at": pa.array(completed_times(started, np.full_like(started, "NaT"), runtime_s)[0]),
            "duration_s": pa.array(runtime_s, from_pandas=True),
            "status": pa.repeat(pa.scalar("completed"), len(first)),
            "n_metrics": n_own,
            "is_simulated": pa.repeat(pa.scalar(is_simulated), len(first)),
            "n_rows": n_own,
            "place": pa.array(first["place"]),
        }
    )
    executions = executions.cast(pa.schema([EXECUTIONS_SCHEMA.field(name) for name in executions.column_names]))
    metrics = names.units.take(pa.array(rows["unit"])).append_column("value", pa.array(rows["value"]))
    for name in ("execution_id", "place"):
        metrics = metrics.append_column(name, executions[name].take(pa.array(execution)))
    return Chunk(framed(executions), refused, {"metrics": framed(metrics.select(METRICS_SCHEMA.names))})


def _written(started: NDArray[np.datetime64]) -> pa.Array:
    """2023-05-01T12:34:56, with a fraction where there is one."""
    is_whole = started.astype("int64") % int(MICROSECONDS) == 0
    text = pa.array(started.astype("datetime64[s]")).cast(pa.string())
    if not is_whole.all():
        text = pc.if_else(pa.array(is_whole), text, pa.array(started).cast(pa.string()))
    return pc.replace_substring(text, " ", "T")
