"""The metrics in Perona's databases: what was found, what was not, and rows that belong to nothing."""

import re
import sqlite3
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.nodes.measured import Measured
from tasks.nodes.readers.sqlite_file import rows_of
from tasks.reading import refusals

TABLE = "benchmark_metrics_2"
COLUMNS = ("benchmark_id", "name", "text_value", "value", "unit")
NOT_FOUND = "(error)"
PLAIN = "scalar"  # how they write a number without a unit
VERSION = "version"  # theirs to be a metric like others; here it is the version of the tool


@dataclass(frozen=True)
class Found:
    """by_id: of each benchmark its metrics, those it lacks, and the tool's version. n_rows: of the table.

    refused: rows of no use, at the place of their benchmark, those of none behind all benchmarks."""

    by_id: dict[str, tuple[list[Measured], list[str], str]]
    refused: pd.DataFrame
    n_rows: int = 0

    def of(self, benchmark_id: str) -> tuple[tuple[Measured, ...], tuple[str, ...], str]:
        """Metrics, missing metrics and version of one benchmark."""
        measured, missing, version = self.by_id.get(benchmark_id, ([], [], ""))
        return tuple(measured), tuple(missing), version


def found_metrics(connection: sqlite3.Connection, place_of: Mapping[str, int], n_benchmarks: int) -> Found:
    """All rows of the table. place_of: of the ids in `benchmarks`, the number of their row; n_benchmarks: of all."""
    by_id: dict[str, tuple[list[Measured], list[str], str]] = {}
    bad: list[tuple[int, str, str]] = []
    seen: set[tuple[str, str]] = set()
    rows = rows_of(connection, TABLE, COLUMNS)
    for place, (benchmark_id, name, text, value, unit) in enumerate(rows.itertuples(index=False, name=None), 1):
        key = str(benchmark_id), spelled(str(name or ""))
        reason = _fault(key, text, value, unit, place_of, seen)
        if reason:
            at = place_of.get(key[0], n_benchmarks + place)
            bad.append((at, f"{TABLE} row {place}: {reason}", f"{benchmark_id}, {name}, {text}, {value}, {unit}"))
            continue
        seen.add(key)
        measured, missing, _ = by_id.setdefault(key[0], ([], [], ""))
        if key[1] == VERSION:
            by_id[key[0]] = measured, missing, str(text or "").strip()
        elif is_missing(text, unit):
            missing.append(key[1])
        else:
            measured.append(Measured(key[1], float(value), "" if unit in (None, PLAIN) else str(unit).strip()))
    refused = refusals([place for place, _, _ in bad], [why for _, why, _ in bad], [raw for _, _, raw in bad])
    return Found(by_id, refused, len(rows))


def is_missing(text: Any, unit: Any) -> bool:
    """Whether the operator did not find a metric: it then writes a 0.0 that is no measurement."""
    return text is None or unit == NOT_FOUND


def spelled(name: str) -> str:
    """A metric's name in lower case, words joined by underscores."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def _fault(
    key: tuple[str, str], text: Any, value: Any, unit: Any, known_ids: Container[str], seen: set[tuple[str, str]]
) -> str:
    if key[0] not in known_ids:
        return f"no benchmark {key[0]!r} in benchmarks"
    if not key[1]:
        return "no name"
    if key in seen:
        return f"{key[1]} of benchmark {key[0]} stands there twice; the first counts"
    if key[1] == VERSION or is_missing(text, unit):
        return ""
    if not isinstance(value, int | float) or not np.isfinite(value):
        return f"{key[1]} is no finite number"
    return ""
