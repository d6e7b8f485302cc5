"""The raw logs that the shipped campaigns keep: read anew, each gives exactly the metrics that stand beside it."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tasks
from tasks.nodes.execution import Measured
from tasks.nodes.landed import record_of
from tasks.nodes.record.parts import part_paths
from tasks.nodes.tools import PARSERS, detect

RECORDED = Path(tasks.__file__).parents[1] / "data" / "recorded"
FIRST, SECOND = RECORDED / "nodes", RECORDED / "nodes-second"  # the second without stress
COLUMNS = [
    "execution_id", "node", "benchmark", "status", "dose_level", "tool_version", "metrics", "missing_metrics", "log",
]  # fmt: skip
BOTH = pytest.mark.parametrize("executions", [FIRST, SECOND], indirect=True, ids=["first", "second"])


def first_of_each(folder):
    """Of each benchmark on each node the first completed execution at each dose, and without one; with its faults."""
    found = {}
    for path in part_paths(folder):
        table = pq.read_table(path, columns=COLUMNS)
        told = record_of(table.schema)["executions"]
        for row in table.to_pylist():
            if row["status"] == "completed":
                key = (row["benchmark"], row["node"], row["dose_level"])
                found.setdefault(key, row | {"n_faults": told[row["execution_id"]]["faults"]})
    return list(found.values())


@pytest.fixture(scope="module")
def campaigns():
    return {folder: first_of_each(folder) for folder in (FIRST, SECOND)}


@pytest.fixture
def executions(campaigns, request):
    return campaigns[getattr(request, "param", FIRST)]


def of(executions, benchmark):
    return [row for row in executions if row["benchmark"] == benchmark]


@pytest.mark.parametrize("benchmark", PARSERS)
def test_of_each_benchmark_logs_are_kept_with_stress_and_without(executions, benchmark):
    levels = {row["dose_level"] for row in of(executions, benchmark)}
    assert 0 in levels
    assert levels & {1, 2, 3}


def test_the_second_campaign_has_each_benchmark_on_each_node_and_no_stress(campaigns):
    first, second = ({(row["benchmark"], row["node"]) for row in campaigns[one]} for one in (FIRST, SECOND))
    assert second == first
    assert {row["dose_level"] for row in campaigns[SECOND]} == {0}


@BOTH
@pytest.mark.parametrize("benchmark", PARSERS)
def test_a_kept_log_is_told_by_its_content(executions, benchmark):
    assert {detect(row["log"]) for row in of(executions, benchmark)} == {benchmark}


@BOTH
@pytest.mark.parametrize("benchmark", PARSERS)
def test_a_kept_log_read_anew_gives_exactly_the_metrics_beside_it(executions, benchmark):
    for row in of(executions, benchmark):
        log = PARSERS[benchmark].parse(row["log"])
        stored = [Measured(one["metric"], one["value"], one["unit"]) for one in row["metrics"]]
        assert (len(log.measured), set(log.measured)) == (len(stored), set(stored)), row["execution_id"]
        assert (list(log.missing), len(log.faults)) == (row["missing_metrics"], row["n_faults"]), row["execution_id"]
        assert log.version in ("", row["tool_version"])
        assert not log.has_failed
