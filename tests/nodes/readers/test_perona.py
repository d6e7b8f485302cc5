"""Databases of Perona's operator: labels that were applied, metrics that were found, telemetry around a run."""

import sqlite3
from contextlib import closing
from datetime import datetime

import pytest

from tasks.errors import BadInput

ID = "cpu-sysbench-a"
STARTED_S = 1_655_208_000.0  # 2022-06-14 12:00:00 UTC
RATE = (ID, "events_per_second", "1,912.50", 1912.5, "scalar")


def test_a_row_of_benchmarks_is_an_execution(found_in, database):
    metrics = [RATE, (ID, "latency_avg", "17.2ms", 17.2, "ms"), (ID, "version", "1.0.17", 1.0, "scalar")]
    found = found_in(database([{"chaos_applied": 1, "chaos_desired": 1}], metrics))
    (row,) = found.executions.to_dict("records")
    assert (row["execution_id"], row["node"], row["benchmark"], row["aspect"]) == (
        ID,
        "worker-2",
        "cpu-sysbench",
        "cpu",
    )
    assert (row["started_at"], row["duration_s"]) == (datetime(2022, 6, 14, 12), 31.0)
    assert (row["is_stressed"], row["stress_wanted"], row["dose"]) == (True, True, "cpu-chaos")
    assert (row["template"], row["tool_version"], row["status"]) == ("sysbench:1\n--threads=16", "1.0.17", "completed")
    assert found.told(ID) == {"events_per_second": (1912.5, ""), "latency_avg": (17.2, "ms")}
    assert (found.logs["log"].to_list(), found.n_read) == (["sysbench 1\n"], 1)


def test_the_label_is_what_was_applied_not_what_was_planned(found_in, database):
    rows = [
        {"id": "a", "chaos_desired": 1, "chaos_applied": 0},
        {"id": "b", "chaos_desired": 0, "chaos_applied": 1},
        {"id": "c", "chaos_applied": None, "chaos_desired": None},
    ]
    found = found_in(database(rows))
    assert (found.column("is_stressed"), found.column("stress_wanted")) == ([False, True, None], [True, False, None])


def test_a_metric_that_was_not_found_is_missing_and_never_zero(found_in, database):
    metrics = [
        RATE,
        (ID, "latency_min", None, 0.0, "scalar"),
        (ID, "latency_max", "n/a", 0.0, "(error)"),
        (ID, "errors", "0", 0.0, "scalar"),
    ]
    found = found_in(database([{}], metrics))
    assert found.told(ID) == {"events_per_second": (1912.5, ""), "errors": (0.0, "")}
    assert [list(one) for one in found.executions["missing_metrics"]] == [["latency_min", "latency_max"]]


def test_a_run_that_gave_nothing_or_has_no_end_failed(found_in, database):
    found = found_in(database([{"id": "a", "finished": None}, {"id": "b"}], [("a", "m", "1", 1.0, "s")]))
    assert (found.column("status"), found.column("duration_s")) == (["failed", "failed"], [None, 31.0])


def test_samples_around_a_run_are_its_telemetry(found_in, database):
    samples = [("worker-2", "cpu_busy", STARTED_S + at, at) for at in (-70, -60, 0, 30, 101, 102)]
    samples += [("worker-3", "cpu_busy", STARTED_S, 1.0), ("worker-2", "disk_read_bytes", STARTED_S + 5, 7.0)]
    found = found_in(database([{}], [RATE], samples))
    told = {row.metric: (row.unit, row.at_s.tolist(), row.samples.tolist()) for row in found.telemetry.itertuples()}
    assert told == {"cpu_busy": ("%", [-60, 0, 30, 101], [-60, 0, 30, 101]), "disk_read_bytes": ("B/s", [5], [7])}


def test_a_manifest_names_the_types_of_the_machines(found_in, database, tmp_path):
    path = database([{"id": "a"}, {"id": "b", "node_id": "worker-3"}], [RATE])
    (tmp_path / "machines.csv").write_text("path,node,machine_type\nrun.db,worker-2,e2-medium\nrun.db,,n1-standard-4\n")
    assert found_in(path, manifest=str(tmp_path / "machines.csv")).column("machine_type") == [
        "e2-medium",
        "n1-standard-4",
    ]


REFUSED = {
    "no start": ({"started": None}, "started is no time; expected ISO 8601 or Unix time"),
    "a word": ({"started": "noon"}, "started is no time; expected ISO 8601 or Unix time"),
    "end is a word": ({"finished": "later"}, "finished is no time; expected ISO 8601 or Unix time"),
    "ended early": ({"finished": "2022-06-14 11:00:00"}, "ended_at is before started_at; expected start, then end"),
    "future": (
        {"started": "2999-06-14 11:00:00", "finished": None},
        "started_at lies in the future; expected a time that has passed, in UTC",
    ),
    "label": ({"chaos_applied": "maybe"}, "chaos_applied is neither true nor false; expected the label"),
    "no node": ({"node_id": "@@@supporter"}, "no node; expected the name of the machine"),
    "no type": ({"type": None}, "no benchmark; expected its name"),
    "no id": ({"id": None}, "no execution id; expected one in each row"),
    "twice": ({"id": "good"}, "the id stands there twice; the first counts"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_broken_row_is_refused_alone(found_in, database, changes, reason):
    found = found_in(database([{"id": "good"}, {"id": "bad", **changes}], [("good", "m", "1", 1.0, "s")]))
    assert (found.reasons, found.refused["place"].to_list()) == ([reason], [2])
    assert (found.column("execution_id"), found.n_read) == (["good"], 2)


METRICS = {
    "of no benchmark": (("nobody", "m", "1", 1.0, "s"), "no benchmark 'nobody' in benchmarks"),
    "without a name": ((ID, "", "1", 1.0, "s"), "no name"),
    "twice": (
        (ID, "events-per-second", "2", 2.0, "s"),
        f"events_per_second of benchmark {ID} stands there twice; the first counts",
    ),
    "a word": ((ID, "m", "fast", "fast", "s"), "m is no finite number"),
    "infinite": ((ID, "m", "inf", float("inf"), "s"), "m is no finite number"),
    "empty": ((ID, "m", "1 s", None, "s"), "m is no finite number"),
}  # fmt: skip


@pytest.mark.parametrize(("metric", "reason"), METRICS.values(), ids=METRICS)
def test_a_broken_metric_is_refused_alone(found_in, database, metric, reason):
    found = found_in(database([{}], [RATE, metric]))
    assert found.reasons == [f"benchmark_metrics_2 row 2: {reason}"]
    assert (found.told(ID), len(found.executions)) == ({"events_per_second": (1912.5, "")}, 1)
    is_of_none = reason.startswith("no benchmark")
    assert (found.refused["place"].to_list(), found.n_read) == ([3], 2) if is_of_none else ([1], 1)


def test_a_broken_sample_is_refused_alone(found_in, database):
    samples = [("worker-2", "cpu_busy", STARTED_S, 1.0), ("worker-2", "cpu_busy", STARTED_S + 5, "much")]
    found = found_in(database([{}], [RATE], samples))
    assert found.reasons == ["node_metrics row 2: value is no number"]
    assert found.telemetry["samples"].iloc[0].tolist() == [1.0]


def test_a_database_without_a_table_is_refused(found_in, database):
    path = database(statements=["DROP TABLE benchmark_metrics_2"])
    expected = (
        "no table 'benchmark_metrics_2' among 'benchmarks', 'node_metrics'; expected the tables benchmarks and "
        "benchmark_metrics_2 of Perona's operator; check that it is the right database"
    )
    with pytest.raises(BadInput, match=expected):
        found_in(path)


def test_a_database_without_a_column_is_refused(found_in, database):
    path = database(statements=["ALTER TABLE benchmarks RENAME COLUMN chaos_applied TO chaos"])
    with pytest.raises(BadInput, match="table 'benchmarks' has no column 'chaos_applied' among 'id', 'type'"):
        found_in(path)


def test_changes_that_are_not_in_the_file_yet_are_not_overlooked(found_in, database):
    path = database([{}], [RATE])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE benchmarks SET chaos_applied = 1")
        connection.commit()
        with pytest.raises(BadInput, match="changes stand beside it in its -wal file; expected a database that is"):
            found_in(path)


def test_reading_leaves_a_database_as_it_was(found_in, database, tmp_path):
    path = database([{}], [RATE])
    before = path.read_bytes()
    found_in(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["run.db"]


def test_half_a_database_and_what_is_none_are_refused(found_in, database):
    path = database([{"id": str(at), "logs": "x" * 2000} for at in range(50)])
    path.write_bytes(path.read_bytes()[:8192])
    with pytest.raises(BadInput, match=r"the database is damaged \(.*\); expected a whole SQLite file; copy it again"):
        found_in(path)
    expected = "not an SQLite database; expected a file that begins with 'SQLite format 3'; check the path"
    with pytest.raises(BadInput, match=expected):
        found_in("benchmarks\n", "none.db", reader="perona-sqlite")
