"""Histories: the same from files and from the warehouse, in time order, executions given twice counted once."""

import sqlite3
from contextlib import closing
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from tasks.nodes import steps
from tasks.nodes.execution import Execution, MetricValue, SampledMetric, write_part
from tasks.nodes.history import load_history, read_results
from tasks.nodes.params import ReadParams

READ = ReadParams()
HEADER = "execution_id,node,benchmark,started_at,metric,value\n"


def execution(execution_id, minute, **changes):
    facts = {
        "execution_id": execution_id, "node": "n1", "benchmark": "cpu-sysbench", "aspect": "cpu", "status": "completed",
        "started_at": None if minute is None else datetime(2026, 1, 31, 12, minute), "is_stressed": None,
    }  # fmt: skip
    series = SampledMetric("cpu_busy", "%", np.array([0.0, 1.0]), np.array([3.0, np.nan]))
    measured = (MetricValue("rate", float(minute or 0), "/sec"), MetricValue("latency_avg", 2.0, "ms"))
    return Execution({**facts, **changes}, measured, telemetry=(series,))


@pytest.fixture
def part(tmp_path):
    def write(name, *executions):
        write_part(tmp_path / name, executions)
        return str(tmp_path / name)

    return write


def test_files_and_warehouse_give_the_same_history(part, warehouse):
    paths = [
        part("b.parquet", execution("e3", 3), execution("e1", 1)),
        part("a.parquet", execution("e2", 2, is_stressed=True)),
    ]
    for path in paths:
        steps.ingest_batch(warehouse, steps.land_executions(warehouse, path, "log", "", READ))
    stored, direct = load_history(warehouse, "log"), read_results(paths, READ).history
    pd.testing.assert_frame_equal(stored.executions.drop(columns="source"), direct.executions.drop(columns="source"))
    pd.testing.assert_frame_equal(stored.metrics, direct.metrics)
    pd.testing.assert_frame_equal(stored.telemetry, direct.telemetry)
    assert direct.executions["execution_id"].to_list() == ["e1", "e2", "e3"]
    assert len(load_history(warehouse, "log", with_telemetry=False).telemetry) == 0
    assert len(load_history(warehouse, "other").executions) == 0


def test_metrics_belong_to_their_execution_by_its_number(part):
    timeless = [execution("e10", None), execution("e02", None)]
    order = read_results([part("b.parquet", execution("z", 5), *timeless)], READ).history.executions
    assert order["execution_id"].to_list() == ["z", "e02", "e10"]  # those without a start come last
    found = read_results([part("a.parquet", execution("e2", 2), execution("e1", 1))], READ).history
    assert found.metrics.to_dict("list") == {
        "execution": [0, 0, 1, 1],
        "metric": ["latency_avg", "rate"] * 2,
        "value": [2.0, 1.0, 2.0, 2.0],
        "unit": ["ms", "/sec"] * 2,
    }
    assert found.telemetry["execution"].to_list() == [0, 1]
    np.testing.assert_array_equal(found.telemetry["samples"].iloc[0], [3.0, np.nan])


def test_labels_that_nobody_gave_stay_missing(part):
    paths = [part("a.parquet", execution("a", 1), execution("b", 2, is_stressed=False))]
    executions = read_results(paths, READ).history.executions
    assert executions["is_stressed"].isna().to_list() == [True, False]
    assert str(executions["is_stressed"].dtype) == "boolean"
    assert executions["missing_metrics"].to_list() == [[], []]


def test_an_execution_that_two_files_give_counts_as_in_the_later_one(part):
    paths = [part("a.parquet", execution("e", 1), execution("f", 2)), part("b.parquet", execution("e", 3))]
    found = read_results(paths, READ)
    assert found.history.executions["execution_id"].to_list() == ["f", "e"]
    assert found.history.metrics.loc[found.history.metrics["metric"] == "rate", "value"].to_list() == [2.0, 3.0]
    assert (found.n_replaced, found.n_refused) == (1, 0)


def test_what_was_refused_is_listed_with_its_file(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "a,n1,x,2026-01-31,m,1\nb,n1,x,2026-01-31,m,inf\n")
    found = read_results([str(tmp_path / "a.csv")], READ)
    assert (found.n_refused, found.refused["path"].to_list()) == (1, [str(tmp_path / "a.csv")])


def make_database(path, *executions):
    """A database of Perona with these pairs of id and node."""
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE benchmarks (id, type, node_id, started, finished, chaos_applied)")
        connection.execute("CREATE TABLE benchmark_metrics_2 (benchmark_id, name, text_value, value, unit)")
        for execution_id, node in executions:
            row = (execution_id, "cpu-sysbench", node, "2022-06-14 12:00:00", "2022-06-14 12:00:30", 0)
            connection.execute("INSERT INTO benchmarks VALUES (?, ?, ?, ?, ?, ?)", row)
            connection.execute("INSERT INTO benchmark_metrics_2 VALUES (?, 'm', '1', 1.0, 's')", (execution_id,))
        connection.commit()
    return str(path)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_database_and_a_table_with_the_same_node_are_two_machines_in_either_order(tmp_path, is_first):
    (tmp_path / "a.csv").write_text(HEADER + "1,worker-2,x,2026-01-31,m,1\n")
    paths = [str(tmp_path / "a.csv"), make_database(tmp_path / "run.db", ("1", "worker-2"), ("2", "worker-3"))]
    found = read_results(paths[::-1] if is_first else paths, READ)
    told = zip(found.history.executions["execution_id"], found.history.executions["node"], strict=True)
    assert sorted(told) == [("1", "worker-2"), ("2", "worker-3"), ("run/1", "run/worker-2")]
    assert found.n_replaced == 0


def test_nodes_of_two_databases_of_perona_are_never_one_machine(tmp_path):
    for name, other in (("gcp-ml", "worker-3"), ("gcp-wf", "worker-4")):
        make_database(tmp_path / f"{name}.db", (f"{name}-2", "worker-2"), (f"{name}-{other}", other))
    found = read_results([str(tmp_path)], READ).history
    assert sorted(found.executions["node"]) == ["gcp-ml/worker-2", "gcp-wf/worker-2", "worker-3", "worker-4"]


def test_each_benchmark_of_a_row_has_its_own_value(tmp_path):
    """Columns are benchmarks where no column names one: a row is two executions."""
    (tmp_path / "wide.csv").write_text(
        "node,started_at,events_per_second,latency_ms\na,2026-01-31,1,2\nb,2026-01-31,3,4\n"
    )
    found = read_results([str(tmp_path / "wide.csv")], READ).history
    own = found.executions.loc[found.metrics["execution"], ["node", "benchmark"]]
    told = zip(own["node"], own["benchmark"], found.metrics["value"], strict=True)
    assert sorted(told) == [
        ("a", "events_per_second", 1),
        ("a", "latency_ms", 2),
        ("b", "events_per_second", 3),
        ("b", "latency_ms", 4),
    ]


LOG = "sysbench 1.0.20\nPrime numbers limit: 10000\nCPU speed:\n    events per second:   {}\n"


def test_logs_of_one_name_in_two_folders_are_two_executions(tmp_path):
    for folder, rate in (("one", "912.50"), ("two", "900.00")):
        (tmp_path / folder / "n1").mkdir(parents=True)
        (tmp_path / folder / "n1" / "cpu.log").write_text(LOG.format(rate))
    params = ReadParams(label_from="parent")
    found = read_results([str(tmp_path / one / "n1" / "cpu.log") for one in ("one", "two")], params)
    assert sorted(found.history.executions["execution_id"]) == ["one/n1/cpu/n1/cpu.log", "two/n1/cpu/n1/cpu.log"]
    assert (set(found.history.executions["node"]), found.n_replaced) == ({"n1"}, 0)


def test_single_values_and_rows_that_are_refused_are_counted_for_themselves(tmp_path):
    for name, rate in (("n1", "912.50"), ("n2", "many"), ("n3", "many")):
        (tmp_path / f"{name}.log").write_text(LOG.format(rate))
    found = read_results([str(tmp_path)], ReadParams(label_from="stem"))
    assert (found.n_refused, found.n_values_refused) == (2, 1)  # n1: no end of the log
    assert len(found.refused) > 3


def test_databases_of_one_file_name_are_told_apart_by_their_folders(tmp_path):
    paths = [make_database(tmp_path / cloud / "run.db", (f"{cloud}-2", "worker-2")) for cloud in ("gcp", "aws")]
    paths.append(make_database(tmp_path / "gcp" / "other.db", ("x-2", "worker-2")))
    found = read_results(paths, READ).history.executions
    assert sorted(found["node"]) == ["aws/run/worker-2", "gcp/run/worker-2", "other/worker-2"]


def test_the_same_database_twice_counts_once(tmp_path):
    path = make_database(tmp_path / "one.db", (1, "worker-2"))
    (tmp_path / "copy.db").write_bytes((tmp_path / "one.db").read_bytes())
    found = read_results([path, str(tmp_path / "copy.db")], READ)
    assert (found.history.executions["node"].to_list(), found.n_replaced) == (["worker-2"], 1)
