"""Counters of one run over time with the change points that stand in the warehouse."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tasks.report.workloads_moved import movement, pick_counters
from tasks.report.workloads_run_phases import RunPhases
from tasks.report.workloads_series import CounterSeries, RunSeries
from tasks.report.workloads_units import unit_words
from tasks.warehouse.connection import Connection
from tasks.workloads.telemetry import FloatArray

SAMPLES = """
SELECT counter, unit, is_rate, samples FROM workloads.counters
WHERE source = $source AND run_id = $run_id AND list_contains($names, counter) ORDER BY counter
"""
TIMES = """
SELECT at_s, (SELECT count(*) FROM workloads.counters WHERE source = $source AND run_id = $run_id) AS n_counters
FROM workloads.runs WHERE source = $source AND run_id = $run_id
"""


def fetch_series(
    connection: Connection, source: str, run: RunPhases, rows: pd.DataFrame, counters: int | Sequence[str]
) -> RunSeries:
    """Samples and change points of a run. rows: of workloads.phases, of this run at least.

    counters: their names, or how many of those that moved most, at most one of each family."""
    names = list(counters) if not isinstance(counters, int) else _moved_most(run, counters)
    values = {"source": source, "run_id": run.run_id, "names": names}
    found = {row["counter"]: row for row in connection.execute(SAMPLES, values).df().to_dict("records")}
    told = connection.execute(TIMES, {"source": source, "run_id": run.run_id}).fetchone()
    at_s, n_counters = told if told else ([], 0)
    own = rows[(rows["run_id"] == run.run_id) & (rows["start_sample"] > 0)]
    series = [_series(name, found[name], own[own["counter"] == name]) for name in names if name in found]
    title = f"{run.name} ({run.run_id})" if run.name != run.run_id else run.run_id
    return RunSeries(title, np.asarray(at_s, dtype=float), series, int(n_counters))


def _moved_most(run: RunPhases, n: int) -> list[str]:
    places = pick_counters(run.counters, movement(run.levels, run.bounds), n)
    return [run.counters[place] for place in places] or list(run.counters[:n])


def _series(name: str, about: Mapping[Any, Any], changes: pd.DataFrame) -> CounterSeries:
    values: FloatArray = np.ma.asarray(about["samples"], dtype=float).filled(np.nan)  # missing samples come masked
    return CounterSeries(
        name,
        unit_words(str(about["unit"]), is_rate=bool(about["is_rate"])),
        values,
        changes["start_sample"].to_numpy(dtype=np.int64),
        changes["probability"].to_numpy(dtype=float),
    )
