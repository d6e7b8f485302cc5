"""Sources for the tests of results and pages."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import summarise
from tasks.report.page import describe
from tasks.report.result import Result
from tasks.warehouse.connection import fetch, reading, transaction, writing
from tasks.warehouse.sources import data_version, insert_rows
from tests.jobs.synthetic import SimulatedJob, simulate_runs
from tests.report import rows


def words_in(value: Any) -> Iterator[str]:
    """All texts of a description, in their order; charts have none of their own."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "spec":
                yield from words_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from words_in(inner)


@pytest.fixture(scope="session")
def told() -> Callable[[Result], str]:
    """A function that returns all that a page says of a result, as one text."""
    return lambda result: " ¦ ".join(words_in(describe(result)))


@pytest.fixture(scope="session")
def rows_of() -> Callable[[Result, str], list[dict[str, Any]]]:
    """A function that returns the rows of the first table of a section, as they are written, by their keys."""

    def find(result: Result, title: str, table: int = 0) -> list[dict[str, Any]]:
        [part] = [one for one in result.parts if one.title == title]
        shown = part.tables[table]
        return [dict(zip([one.key for one in shown.columns], row, strict=True)) for row in shown.cells()]

    return find


@pytest.fixture(scope="session")
def put(put_rows):
    """A function that puts rows into tables of jobs of the source `log` and returns the warehouse."""
    return lambda warehouse, **tables: put_rows(warehouse, "jobs", "log", **tables)


@pytest.fixture
def summarised(job_log):
    """A function that puts runs into a warehouse, summarises them and returns the warehouse."""

    def fill(runs, *, source="log"):
        warehouse = job_log(runs, source=source)
        summarise(warehouse, source, SummaryParams())
        return warehouse

    return fill


@pytest.fixture(scope="session")
def varied_runs() -> pd.DataFrame:
    """Eight jobs from steady to varying, 60 runs each, some of them slow."""
    jobs = [SimulatedJob(name=f"job {i}", n_runs=60, log_deviation=0.02 * 2**i, slow_share=0.02 * i) for i in range(8)]
    return simulate_runs(jobs, np.random.default_rng(8))


@pytest.fixture(scope="session")
def put_rows():
    """A function that puts rows into tables of one schema of a warehouse, all of one source."""

    def fill(warehouse, schema, source, **tables):
        with writing(warehouse) as connection, transaction(connection):
            for name, found in tables.items():
                new_rows = pd.DataFrame(found).assign(source=source)
                connection.register("new_rows", new_rows)
                place = "ops" if name in ("files", "alarms", "quarantine") else schema
                connection.execute(f"INSERT INTO {place}.{name} BY NAME SELECT * FROM new_rows").fetchall()
                connection.unregister("new_rows")
        return warehouse

    return fill


@pytest.fixture(scope="session")
def fill_workloads(put_rows):
    """A function that puts telemetry, phases and identifications into a warehouse."""

    def fill(warehouse, source="box"):
        made = rows.telemetry()
        runs = made["runs"]
        return put_rows(warehouse, "workloads", source, **made, **rows.phases(runs), **rows.identified(runs))

    return fill


@pytest.fixture(scope="session")
def fill_verdicts():
    """A function that puts verdicts, states, fingerprints and rankings of the executions of `log` into a warehouse."""

    def fill(warehouse, *, has_prints=True):
        executions = fetch(warehouse, "SELECT * FROM nodes.executions WHERE source = 'log' ORDER BY started_at")
        flagged = executions[executions["is_stressed"]].reset_index(drop=True)
        with reading(warehouse) as connection:
            version = data_version(connection, "nodes", "log")
        with writing(warehouse) as connection, transaction(connection):
            made = {"key": "k", "data_version": version, "n_executions": 360}
            judged = {"n_judged": 350, "n_flagged": len(flagged), "threshold": 0.0, "alarms_per_day": 0.9}
            judged |= {"executions_per_day": 120.0, "judged_at": rows.NOW}
            printed = {"n_fingerprints": 360, "fingerprinted_at": rows.NOW}
            tables = {
                "verdicts": rows.verdicts(executions),
                "verdict_reasons": rows.verdict_reasons(flagged),
                "judgings": pd.DataFrame([made | judged]),
                "states": rows.node_states(),
                "scores": rows.node_scores(["node-2", "node-1", "node-3"]).assign(key="k", scored_at=rows.NOW),
            }
            if has_prints:
                tables |= {
                    "fingerprints": rows.node_fingerprints(executions),
                    "fingerprint_scores": rows.node_scores(["node-1", "node-2", "node-3"]),
                    "fingerprintings": pd.DataFrame([made | printed]),
                }
            for name, found in tables.items():
                insert_rows(connection, f"nodes.{name}", found, rows.ABOUT)
        return warehouse

    return fill
