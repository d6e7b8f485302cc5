"""whorl's own recordings: what is written is read, a broken value is refused alone, a broken part as a whole."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput
from tasks.nodes.execution import Execution, MetricValue, SampledMetric, table_of, write_part

FACTS = {
    "execution_id": "e1", "node": "full", "machine_type": "local", "benchmark": "cpu-sysbench", "aspect": "cpu",
    "template": "--time=2", "template_hash": "ab" * 32, "tool_version": "1.0.20",
    "started_at": datetime(2026, 1, 31, 12), "duration_s": 2.5, "status": "completed", "is_stressed": True,
    "stress_wanted": True, "dose": "cpu-16",
    "dose_level": 3, "is_contaminated": False, "foreign_cores": 0.1, "steal_cores": 0.0, "load_1m": 0.5,
    "is_emulated": False, "campaign": "c1",
}  # fmt: skip
RATE, LATENCY = MetricValue("events_per_second", 912.5, ""), MetricValue("latency_avg", 17.25, "ms")
BUSY = SampledMetric("cpu_busy", "%", np.array([-1.0, 0.0, 1.0]), np.array([5.0, np.nan, 97.0]))


def execution(measured=(RATE, LATENCY), *, telemetry=(BUSY,), **changes):
    return Execution({**FACTS, **changes}, measured, ("latency_95p",), telemetry, "sysbench", "sysbench 1.0.20\n")


@pytest.fixture
def part(tmp_path, found_in):
    def write(*executions, record=None, **params):
        write_part(tmp_path / "executions-0001.parquet", executions, record)
        return found_in(tmp_path / "executions-0001.parquet", **params)

    return write


def test_what_is_written_is_read(part):
    found = part(execution())
    (row,) = found.executions.to_dict("records")
    assert {name: row[name] for name in FACTS} == FACTS
    assert (row["ended_at"], row["n_metrics"]) == (datetime(2026, 1, 31, 12, 0, 2, 500_000), 2)
    assert (list(row["missing_metrics"]), row["is_simulated"]) == (["latency_95p"], False)
    assert found.told("e1") == {"events_per_second": (912.5, ""), "latency_avg": (17.25, "ms")}
    (series,) = found.telemetry.to_dict("records")
    assert (series["metric"], series["unit"], series["at_s"].tolist()) == ("cpu_busy", "%", [-1, 0, 1])
    np.testing.assert_array_equal(series["samples"], [5, np.nan, 97])
    assert found.logs[["tool", "log"]].to_numpy().tolist() == [["sysbench", "sysbench 1.0.20\n"]]
    assert found.n_read == 1


def test_executions_without_metrics_telemetry_or_log_are_kept(part):
    bare = Execution({**FACTS, "execution_id": "e2", "status": "failed"}, ())
    found = part(execution(), bare)
    assert (found.column("execution_id"), found.column("n_metrics"), found.n_read) == (["e1", "e2"], [2, 0], 2)
    assert (len(found.logs), len(found.telemetry)) == (1, 1)


def test_the_part_may_say_that_its_values_were_drawn(part):
    assert part(execution(), record={"is_simulated": True}).column("is_simulated") == [False]
    assert part(execution(is_simulated=None), record={"is_simulated": True}).column("is_simulated") == [True]


REFUSED = {
    "future": (
        {"started_at": datetime(2999, 1, 1)},
        "started_at lies in the future; expected a time that has passed, in UTC",
    ),
    "negative": ({"duration_s": -1.0}, "duration_s is negative; expected seconds from start to end"),
    "no node": ({"node": None}, "no node; expected the name of the machine"),
    "aspect": ({"aspect": "gpu"}, "aspect is not one of cpu, memory, disk, network, system, application, unknown"),
    "status": ({"status": "odd"}, "status is not one of completed, failed, timeout"),
    "uneven": (
        {"telemetry": (SampledMetric("cpu_busy", "%", np.array([0.0, 1.0]), np.array([5.0])),)},
        "a series of telemetry with more times than samples, or fewer",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED)
def test_an_execution_that_cannot_be_true_is_refused_with_all_of_it(part, changes, reason):
    found = part(execution(**{"execution_id": "e2", **changes}), execution())
    assert (found.reasons, found.refused["place"].to_list(), found.n_read) == ([reason], [1], 2)
    assert set(found.metrics["execution_id"]) == set(found.telemetry["execution_id"]) == {"e1"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_no_number_is_refused_alone(part, value):
    found = part(execution((RATE, MetricValue("latency_avg", value, "ms"))))
    expected = "a value that is no finite number; expected one, or the metric among missing_metrics"
    assert (found.reasons, found.n_read, found.column("n_metrics")) == ([expected], 1, [1])


def test_facts_that_are_no_columns_and_ids_that_stand_twice_are_not_written(tmp_path):
    with pytest.raises(ValueError, match=r"execution e1: no column 'colour' in nodes\.executions"):
        write_part(tmp_path / "a.parquet", [execution(colour="red")])
    with pytest.raises(ValueError, match="execution e1 stands there twice"):
        write_part(tmp_path / "a.parquet", [execution(), execution()])
    assert not list(tmp_path.iterdir())


def test_a_part_of_other_columns_is_refused(found_in):
    table = table_of([execution()])
    with pytest.raises(BadInput, match="no column node; expected a part of whorl's recorder; record it again"):
        found_in(table.drop_columns(["node"]), "a.parquet")
    wrong = table.set_column(table.column_names.index("duration_s"), "duration_s", pa.array(["long"]))
    with pytest.raises(BadInput, match="column 'duration_s' is of type string; expected double; record it again"):
        found_in(wrong, "a.parquet")


def test_a_part_of_an_older_recorder_lacks_columns_and_is_read(found_in):
    found = found_in(table_of([execution()]).drop_columns(["load_1m", "telemetry", "log", "tool"]), "a.parquet")
    assert (found.column("load_1m"), len(found.telemetry), found.n_read) == ([None], 0, 1)


@pytest.mark.parametrize("reader", ["recorded", ""])
def test_half_a_part_is_refused_even_where_the_log_in_it_is_whole(tmp_path, found_in, reader):
    logged = replace(execution(), log="sysbench 1.0.20\nPrime numbers limit: 10000\n")
    pq.write_table(table_of([logged]), tmp_path / "a.parquet", compression="none", use_dictionary=False)
    whole = (tmp_path / "a.parquet").read_bytes()
    with pytest.raises(BadInput, match=r"the Parquet file is damaged .*; expected a whole file; copy it again"):
        found_in(whole[:-100], "half.parquet", reader=reader)


def test_a_part_without_a_row_is_refused(tmp_path, found_in):
    pq.write_table(table_of([]), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="no row in it; expected at least one execution"):
        found_in(tmp_path / "a.parquet")
