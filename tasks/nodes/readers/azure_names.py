"""Nodes, benchmarks and metrics of the rows of an Azure table: numbers for millions of rows, the names behind them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.nodes.benchmark_names import aspect_of, benchmark_slugs
from tasks.nodes.cells import are_none, texts

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


@dataclass(frozen=True)
class Named:
    """node, test, metric, unit: (n_rows,), numbers of the names below; -1 where a part of a node or test is missing.

    nodes, machine_types, regions: by number of the node. benchmarks, aspects, templates: by number of the test."""

    node: Ints
    test: Ints
    metric: Ints
    unit: Ints
    nodes: pa.Array
    machine_types: pa.Array
    regions: pa.Array
    benchmarks: pa.Array
    aspects: pa.Array
    templates: pa.Array
    metrics: pa.Array
    units: pa.Array


def name_rows(columns: Mapping[str, pa.ChunkedArray], n_rows: int) -> Named:
    """The names of all rows. columns: lifespan, region, sku, vm_id, test_suite, test_name and unit, of any type."""
    node, nodes = _combined([columns[name] for name in NODE], n_rows)
    test, tests = _combined([columns[name] for name in TEST], n_rows)
    pairs = [(suite, name) for suite, name in tests]
    unit, units = _coded(columns["unit"]) if "unit" in columns else (np.full(n_rows, -1), [])
    units = [*units, ""]  # the last one, number -1: no unit
    metrics = [metric_of(one) for one in units]
    names = sorted(set(metrics))
    text = pa.string()
    return Named(
        node=node,
        test=test,
        metric=np.array([names.index(one) for one in metrics], dtype=np.int64)[unit],
        unit=np.where(unit < 0, len(units) - 1, unit),
        nodes=pa.array(["-".join(parts) for parts in nodes], text),
        machine_types=pa.array([sku for _, _, sku, _ in nodes], text),
        regions=pa.array([region for _, region, _, _ in nodes], text),
        benchmarks=pa.array(benchmark_slugs(_shortened(pairs)), text),
        aspects=pa.array([aspect_of(SHORT.get(suite, suite), name) for suite, name in pairs], text),
        templates=pa.array([f"{suite}: {name}" for suite, name in pairs], text),
        metrics=pa.array(names, text),
        units=pa.array(units, text),
    )


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
