"""The shipped campaigns: complete, in few and small files, and with logs that give the metrics beside them."""

import re
from collections import Counter
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tasks
from tasks.nodes.execution import MetricValue, record_of
from tasks.nodes.record.campaign import ExecutionLedger, parts_in, planned
from tasks.nodes.record.params import SHORT, RecordParams
from tasks.nodes.tools import PARSERS
from tasks.record.campaign import AGAIN
from tasks.record.parts import read_table

RECORDED = Path(tasks.__file__).parents[1] / "data" / "recorded"
PLANNED = [one.benchmark for one in SHORT]
NODES = ("emulated-a", "emulated-b", "emulated-c")
COLUMNS = [
    "execution_id", "node", "benchmark", "status", "is_stressed", "stress_wanted", "dose", "dose_level",
    "foreign_cores", "steal_cores",
]  # fmt: skip
READ_ANEW = [
    "execution_id", "node", "benchmark", "status", "dose_level", "tool_version", "metrics", "missing_metrics", "log",
]  # fmt: skip
NUMBER = re.compile(r"-(\d{4})-")
CAMPAIGNS = {"nodes": (100, 20), "nodes-second": (10, 0), "nodes-third": (36, 12)}  # each pair: all, stressed
EACH = pytest.mark.parametrize("name", CAMPAIGNS)


def rows_of(name, pattern):
    """Each row of these parts, with the most that others or the hypervisor took as a share of the allowed."""
    found = []
    for path in sorted((RECORDED / name).glob(pattern)):
        table = pq.read_table(path, columns=COLUMNS)
        record = record_of(table.schema)
        allowed = record["params"]["foreign_limit_ratio"] * record["machine"]["cores"]
        rows = table.to_pylist()
        found += [row | {"taken": max(row["foreign_cores"], row["steal_cores"]) / allowed} for row in rows]
    return found


@pytest.fixture(scope="module")
def undisturbed():
    return {name: rows_of(name, "executions-*.parquet") for name in CAMPAIGNS}


@EACH
def test_each_benchmark_is_there_as_often_as_planned_on_each_node(undisturbed, name):
    (n, n_stressed), rows, pairs = CAMPAIGNS[name], undisturbed[name], list(product(PLANNED, NODES))
    assert Counter((row["benchmark"], row["node"]) for row in rows) == dict.fromkeys(pairs, n)
    stressed = Counter((row["benchmark"], row["node"]) for row in rows if row["is_stressed"])
    assert stressed == (dict.fromkeys(pairs, n_stressed) if n_stressed else {})
    assert all(row["is_stressed"] == row["stress_wanted"] == (row["dose_level"] > 0) for row in rows)
    assert {row["status"] for row in rows} == {"completed"}


def test_the_third_campaign_says_of_what_kind_each_dose_is_and_since_when_limits_are_lowered(undisturbed):
    rows = undisturbed["nodes-third"]
    kinds = Counter(row["dose"].partition("-")[0] for row in rows if row["dose_level"])
    assert kinds == {"between": 60, "two": 60, "neighbour": 60, "bandwidth": 18, "delay": 18}
    lowered = {"emulated-b": "lowered-cpu-80", "emulated-c": "lowered-disk-16"}
    for row in rows:
        number, is_again = int(NUMBER.search(row["execution_id"])[1]), AGAIN in row["execution_id"]
        is_lowered = row["node"] in lowered and (number > len(rows) / 2 or is_again)
        assert row["dose"].endswith(lowered[row["node"]]) if is_lowered else "lowered" not in row["dose"]


@EACH
def test_each_planned_execution_is_undisturbed_once_and_flagged_ones_lie_apart(undisturbed, name):
    flagged = rows_of(name, "flagged-*.parquet")
    planned = Counter(row["execution_id"].partition(AGAIN)[0] for row in undisturbed[name])
    assert set(planned.values()) == {1}
    assert {row["execution_id"].partition(AGAIN)[0] for row in flagged} <= set(planned)
    assert all(row["taken"] <= 1 for row in undisturbed[name])
    assert all(row["taken"] > 1 for row in flagged)


FIRST, SECOND, THIRD = (RECORDED / name for name in CAMPAIGNS)  # the second without stress
ALL = pytest.mark.parametrize("executions", [FIRST, SECOND, THIRD], indirect=True, ids=["first", "second", "third"])


def first_of_each(folder):
    """Of each benchmark on each node the first completed execution at each dose, and without one; with its faults."""
    found = {}
    for path in parts_in(folder).paths():
        table = pq.read_table(path, columns=READ_ANEW)
        told = record_of(table.schema)["executions"]
        for row in table.to_pylist():
            if row["status"] == "completed":
                key = (row["benchmark"], row["node"], row["dose_level"])
                found.setdefault(key, row | {"n_faults": told[row["execution_id"]]["faults"]})
    return list(found.values())


@pytest.fixture(scope="module")
def campaigns():
    return {folder: first_of_each(folder) for folder in (FIRST, SECOND, THIRD)}


@pytest.fixture
def executions(campaigns, request):
    return campaigns[getattr(request, "param", FIRST)]


def of(executions, benchmark):
    return [row for row in executions if row["benchmark"] == benchmark]


@ALL
@pytest.mark.parametrize("benchmark", PLANNED)
def test_a_kept_log_read_anew_gives_exactly_the_metrics_beside_it(executions, benchmark):
    for row in of(executions, benchmark):
        log = PARSERS[benchmark].parse(row["log"])
        stored = [MetricValue(one["metric"], one["value"], one["unit"]) for one in row["metrics"]]
        assert (len(log.measured), set(log.measured)) == (len(stored), set(stored)), row["execution_id"]
        assert (list(log.missing), len(log.faults)) == (row["missing_metrics"], row["n_faults"]), row["execution_id"]
        assert log.version in ("", row["tool_version"])
        assert not log.has_failed


def test_a_campaign_of_an_earlier_version_of_whorl_can_be_continued():
    folder = RECORDED / "nodes-third"
    _, record = read_table(folder / "executions-0001.parquet", ["node"])
    params = RecordParams.model_validate({k: v for k, v in record["params"].items() if k in RecordParams.model_fields})
    ledger = ExecutionLedger(folder, params, planned(params), {})
    assert (ledger.campaign, ledger.left(ledger.runs)) == (record["campaign"], [])
