"""From files to a landed batch: what is read, what it is called, what stays as it was."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from tasks.errors import BadInput, BadSetting
from tasks.intake.files import Chunk
from tasks.nodes import steps
from tasks.nodes.execution import Execution, MetricValue, SampledMetric, table_of, write_part
from tasks.nodes.intake import find_files, left_out_line
from tasks.nodes.params import ReadParams
from tasks.nodes.readers import READERS
from tasks.params import ReadLimits
from tasks.record.parts import write_table
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import hash_tables, rebuild
from tasks.warehouse.landing import find_batch

HEADER = "execution_id,node,machine_type,benchmark,started_at,metric,value\n"
LENIENT = ReadLimits(max_refused_share=1)


@pytest.fixture
def table(tmp_path):
    def write(name, *rows):
        path = tmp_path / "set" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
        return path

    return write


def put(warehouse, path, source="log", **params):
    reader = params.pop("reader", "")
    return steps.ingest_batch(
        warehouse, steps.land_executions(warehouse, str(path), source, reader, ReadParams(limits=LENIENT, **params))
    )


def ask(warehouse, sql):
    return [tuple(row) for row in fetch(warehouse, sql).to_numpy().tolist()]


def held(warehouse, source="log"):
    """execution, node, metric and value, in order."""
    return ask(
        warehouse,
        "SELECT execution_id, node, metric, value FROM nodes.executions LEFT JOIN nodes.metrics "
        f"USING (source, execution_id) WHERE source = '{source}' ORDER BY ALL",
    )


def machines(warehouse):
    return ask(warehouse, "SELECT source, node, machine_type FROM ops.machines ORDER BY ALL")


def execution(execution_id="e1", **changes):
    facts = {
        "execution_id": execution_id, "node": "n1", "machine_type": "small", "benchmark": "cpu-sysbench",
        "aspect": "cpu", "started_at": datetime(2026, 1, 31, 12), "duration_s": 2.0, "is_stressed": False, "dose": "",
        "dose_level": 0, "status": "completed",
    }  # fmt: skip
    busy = SampledMetric("cpu_busy", "%", np.array([-1.0, 0.5]), np.array([3.0, np.nan]))
    measured = (MetricValue("rate", 9.5, "/sec"), MetricValue("latency_avg", 17.25, "ms"))
    return Execution({**facts, **changes}, measured, ("latency_95p",), (busy,), "sysbench", "log text\n")


def test_all_of_an_execution_comes_into_its_tables(warehouse, tmp_path):
    write_part(tmp_path / "executions-0001.parquet", [execution()])
    put(warehouse, tmp_path / "executions-0001.parquet")
    assert held(warehouse) == [("e1", "n1", "latency_avg", 17.25), ("e1", "n1", "rate", 9.5)]
    assert ask(warehouse, "SELECT metric, unit, at_s::TEXT, samples::TEXT FROM nodes.telemetry") == [
        ("cpu_busy", "%", "[-1.0, 0.5]", "[3.0, NULL]")
    ]
    assert ask(warehouse, "SELECT execution_id, tool, log FROM nodes.logs") == [("e1", "sysbench", "log text\n")]
    assert ask(warehouse, "SELECT n_metrics, missing_metrics::TEXT, is_simulated FROM nodes.executions") == [
        (2, "[latency_95p]", False)
    ]
    assert machines(warehouse) == [("log", "n1", "small")]


def test_counts_add_up_with_what_was_refused(warehouse, table):
    put(warehouse, table("1.csv", "a,n1,t,x,2026-01-31,m,1", "a,n1,t,x,2026-01-31,k,inf", ",n1,t,x,2026-01-31,k,1"))
    (told,) = ask(warehouse, "SELECT n_read, n_kept, n_quarantined FROM ops.files")
    assert told == (3, 1, 2)
    assert ask(warehouse, "SELECT place, reason FROM ops.quarantine WHERE word = 'nodes' ORDER BY place") == [
        (3, "value is not a finite number; expected one, or nothing"),
        (4, "no execution id; expected one in each row"),
    ]


def test_a_newer_version_of_a_reader_replaces_what_the_older_one_gave(warehouse, table, monkeypatch):
    path = table("1.csv", "a,n1,t,x,2026-01-31,m,1", "b,n2,t,x,2026-01-31,m,2")
    put(warehouse, path)
    found = READERS["long"].read(str(path), ReadParams())
    first = [Chunk(one.rows.iloc[:1], one.refused, {"metrics": one.tables["metrics"].iloc[:1]}) for one in found]
    monkeypatch.setitem(READERS, "long", replace(READERS["long"], version=99, read=lambda *_: iter(first)))
    put(warehouse, path, reader="long")
    assert held(warehouse) == [("a", "n1", "m", 1.0)]
    assert machines(warehouse) == [("log", "n1", "t")]
    assert ask(warehouse, "SELECT reader_version FROM ops.files") == [("99.1",)]


def test_an_id_that_stands_again_in_a_file_counts_once(warehouse, tmp_path, database):
    first, again = execution(), execution(node="n2")
    write_table(tmp_path / "a.parquet", pa.concat_tables([table_of([first]), table_of([again])]), {})
    put(warehouse, tmp_path / "a.parquet")
    assert {row[1] for row in held(warehouse)} == {"n2"}
    assert ask(warehouse, "SELECT reason FROM ops.quarantine") == [
        ("execution id e1 stands again in row 2, which counts",)
    ]
    assert ask(warehouse, "SELECT n_read, n_kept, n_quarantined FROM ops.files") == [(2, 1, 1)]


def test_a_folder_of_logs_is_one_batch_that_its_labels_belong_to(warehouse, tmp_path):
    (tmp_path / "logs").mkdir()
    log = "sysbench 1.0.20\nPrime numbers limit: 10000\nCPU speed:\n    events per second:   {}\n"
    for name in ("n1.log", "n2.log"):
        (tmp_path / "logs" / name).write_text(log.format("912.50"))
    labels = tmp_path / "labels.csv"
    labels.write_text("path,node,machine_type\nlogs/n1.log,n1,t\nlogs/n2.log,n2,t\n")
    batch = put(warehouse, tmp_path / "logs", manifest=str(labels))
    assert machines(warehouse) == [("log", "n1", "t"), ("log", "n2", "t")]
    labels.write_text("path,node,machine_type\nlogs/n1.log,n1,u\nlogs/n2.log,n2,t\n")
    other = put(warehouse, tmp_path / "logs", manifest=str(labels))
    assert other != batch
    assert machines(warehouse) == [("log", "n1", "u"), ("log", "n2", "t")]
    (tmp_path / "logs" / "n2.log").write_text(log.format("5.00"))
    changed = put(warehouse, tmp_path / "logs", manifest=str(labels))
    assert find_batch(warehouse.landing_folder, "nodes", changed).tables["executions"].n_rows == 2
    assert ask(warehouse, "SELECT count(*) FROM nodes.executions") == [(2,)]


def test_an_unknown_reader_and_an_odd_source_are_refused(warehouse, table):
    path = table("1.csv", "a,n1,t,x,2026-01-31,m,1")
    with pytest.raises(
        BadInput, match="no reader 'lang'; expected one of perona-sqlite, recorded, azure-vm-noise, long"
    ):
        put(warehouse, path, reader="lang")
    with pytest.raises(BadSetting, match="source ' x': not a name that everyone can type"):
        put(warehouse, path, source=" x")


def test_a_folder_is_read_without_the_parts_of_disturbed_executions(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    for name in ("one/executions-0001.parquet", "one/flagged-0001.parquet", "other/flagged-0001.parquet"):
        write_part(tmp_path / name, [execution()])
    named = str(tmp_path / "one" / "flagged-0001.parquet")
    found = [path.removeprefix(f"{tmp_path}/") for path in find_files([str(tmp_path)])]
    assert found == ["one/executions-0001.parquet", "other/flagged-0001.parquet"]  # the last stands alone
    assert find_files([named]) == [named]
    assert left_out_line([str(tmp_path), named, str(tmp_path / "nowhere")]) == (
        "left out 1 part of disturbed executions (flagged-…); name them to read them"
    )
    assert left_out_line([named]) == ""


@pytest.fixture
def databases(tmp_path, database):
    """A function that makes the databases gcp/benchmarks.db and aws/benchmarks.db, with these rows of benchmarks."""

    def make(*ids):
        paths = []
        for cloud, value in (("gcp", 1.0), ("aws", 2.0)):
            (tmp_path / cloud).mkdir(exist_ok=True)
            metrics = [(one, "m", "1", value, "s") for one in ids]
            made = database([{"id": one} for one in ids], metrics, [("worker-2", "cpu", 1655208000.0, value)])
            paths.append(made.rename(tmp_path / cloud / "benchmarks.db"))
        return paths

    return make


def test_nodes_and_ids_of_two_databases_in_a_source_stay_apart(warehouse, databases):
    for path in databases("1", "2"):
        put(warehouse, path)
    assert held(warehouse) == [
        ("aws/benchmarks/1", "aws/benchmarks/worker-2", "m", 2.0),
        ("aws/benchmarks/2", "aws/benchmarks/worker-2", "m", 2.0),
        ("benchmarks/1", "benchmarks/worker-2", "m", 1.0), ("benchmarks/2", "benchmarks/worker-2", "m", 1.0),
    ]  # fmt: skip
    names = ("aws/benchmarks/worker-2", "benchmarks/worker-2")
    assert machines(warehouse) == [("log", name, "unknown") for name in names]
    assert ask(warehouse, "SELECT count(*) FROM nodes.telemetry JOIN nodes.executions USING (execution_id)") == [(4,)]


def test_a_database_keeps_its_names_when_it_is_read_again_or_has_grown(warehouse, databases):
    paths = databases("1")
    for path in (*paths, *reversed(paths)):
        put(warehouse, path)
    before = held(warehouse)
    assert len(before) == 2
    paths = databases("1", "3")
    put(warehouse, paths[1])
    assert held(warehouse) == sorted([*before, ("aws/benchmarks/3", "aws/benchmarks/worker-2", "m", 2.0)])


def test_single_values_that_are_refused_are_no_rows_of_the_file(warehouse, tmp_path):
    broken = execution("e2")
    write_part(
        tmp_path / "a.parquet",
        [execution(), replace(broken, measured=(*broken.measured, MetricValue("x", np.inf, "")))],
    )
    put(warehouse, tmp_path / "a.parquet")
    assert ask(warehouse, "SELECT n_read, n_kept, n_quarantined FROM ops.files") == [(2, 2, 0)]
    assert ask(warehouse, "SELECT place, reason FROM ops.quarantine") == [
        (2, "a value that is no finite number; expected one, or the metric among missing_metrics")
    ]


def test_a_log_that_is_refused_counts_once_whatever_is_wrong_with_it(warehouse, tmp_path):
    (tmp_path / "logs").mkdir()
    log = "sysbench 1.0.20\nPrime numbers limit: 10000\nCPU speed:\n    events per second:   {}\n"
    for name, rate in (("n1.log", "912.50"), ("n2.log", "many")):
        (tmp_path / "logs" / name).write_text(log.format(rate))
    put(warehouse, tmp_path / "logs", label_from="stem")
    assert ask(warehouse, "SELECT n_read, n_kept, n_quarantined FROM ops.files") == [(2, 1, 1)]
    assert ask(warehouse, "SELECT count(*) > 2 FROM ops.quarantine") == [(True,)]


def test_a_database_and_a_table_beside_it_stay_apart(warehouse, table, databases):
    first, _ = databases("1")
    put(warehouse, first)
    put(warehouse, table("t.csv", "1,worker-2,t,x,2026-01-31,m,9"))
    assert [row[:2] for row in held(warehouse)] == [("1", "worker-2"), ("benchmarks/1", "benchmarks/worker-2")]


def test_a_rebuilt_warehouse_holds_the_same_rows(warehouse, table, tmp_path):
    put(warehouse, table("1.csv", "a,n1,t,x,2026-01-31,m,1", "a,n1,t,x,2026-01-31,k,inf"))
    write_part(tmp_path / "executions-0001.parquet", [execution()])
    put(warehouse, tmp_path / "executions-0001.parquet")
    before = {one.table: one.hash for one in hash_tables(warehouse) if one.table != "ops.migrations"}
    assert rebuild(warehouse)["nodes"] == 2
    assert {one.table: one.hash for one in hash_tables(warehouse) if one.table != "ops.migrations"} == before
