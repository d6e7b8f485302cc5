"""A manifest says of any file what the file does not say itself; what it says of nothing is told."""

import logging
from datetime import datetime

import pyarrow as pa
import pytest

from tasks.errors import BadInput
from tasks.nodes.execution import Execution, MetricValue, table_of

LONG = "node,benchmark,started_at,metric,value\n"
ROWS = "a,x,2026-01-31T12:00:00,m,1\na,x,2026-01-31T13:00:00,m,2\nb,x,2026-01-31T12:00:00,m,3\n"
NAMES = ("test_suite", "test_name", "lifespan", "region", "sku", "unit", "vm_id", "started_at", "runtime_s", "value")
FIO = ("fio", "Random Read", "long", "eastus", "D8s_v5", "MB/s", 7, datetime(2023, 5, 1, 12), 30.5, 812.0)


@pytest.fixture
def labelled(found_in, tmp_path):
    """A function that reads set/run.csv, or a table in its place, with a manifest of these lines."""

    def read(manifest, content=LONG + ROWS, name="set/run.csv"):
        (tmp_path / "labels.csv").write_text(manifest)
        return found_in(content, name, manifest=str(tmp_path / "labels.csv"))

    return read


def test_labels_of_a_whole_table(labelled):
    found = labelled("path,machine_type,is_stressed,dose,region\nset/run.csv,m5.large,yes,cpu-16,eu\n")
    assert found.column("machine_type") == ["m5.large"] * 3
    assert (found.column("is_stressed"), found.column("dose")) == ([True] * 3, ["cpu-16"] * 3)
    assert (found.column("region"), found.n_read) == (["eu"] * 3, 3)


def test_labels_of_single_nodes_and_starts(labelled):
    found = labelled(
        "path,node,started_at,machine_type,dose\n"
        "set/run.csv,a,,t1,\nset/run.csv,b,,t2,\nset/run.csv,a,2026-01-31T13:00:00,,cpu-16\n"
    )
    assert found.column("machine_type") == ["t1", "t1", "t2"]
    assert (found.column("dose"), found.column("is_stressed")) == ([None, "cpu-16", None], [False, True, False])


def test_what_the_file_says_counts(labelled):
    header = "node,benchmark,started_at,metric,value,dose,machine_type\n"
    content = header + "a,x,2026-01-31,m,1,cpu-2,t1\nb,x,2026-01-31,m,1,,\n"
    found = labelled("path,dose,machine_type\nset/run.csv,cpu-16,t9\n", content)
    assert (found.column("dose"), found.column("machine_type")) == (["cpu-2", "cpu-16"], ["t1", "t9"])
    assert found.column("is_stressed") == [True, True]


def test_columns_that_a_table_lacks_may_stand_in_the_manifest(labelled):
    content = "metric,value\nm,1\nk,2\n"
    found = labelled("path,node,benchmark,started_at\nset/run.csv,a,cpu-x,2026-01-31T12:00:00Z\n", content)
    assert found.column("execution_id") == ["a/cpu-x/2026-01-31T12:00:00"]
    assert (found.column("aspect"), found.column("n_metrics")) == (["cpu"], [2])


def test_a_template_of_the_manifest_makes_the_type(labelled):
    found = labelled("path,template\nset/run.csv,--threads=16\n")
    assert found.column("template") == ["--threads=16"] * 3
    assert {len(one) for one in found.column("template_hash")} == {64}


def test_recorded_and_azure_tables_are_labelled_too(labelled):
    manifest = "path,is_stressed,campaign,is_simulated\nset/run.parquet,yes,c1,true\n"
    facts = {"execution_id": "e", "node": "n", "benchmark": "x", "aspect": "cpu", "status": "completed"}
    found = labelled(manifest, table_of([Execution(facts, (MetricValue("m", 1.0, ""),))]), "set/run.parquet")
    told = [found.column(name) for name in ("is_stressed", "campaign", "is_simulated")]
    assert told == [[True], ["c1"], [True]]
    azure = pa.table({name: [value] for name, value in zip(NAMES, FIO, strict=True)})
    found = labelled(manifest, azure, "set/run.parquet")
    assert (found.column("is_stressed"), found.column("campaign")) == ([True], ["c1"])


def test_a_manifest_that_fits_nothing_of_its_file_is_an_error(labelled):
    problem = "what it says of .*run.csv fits none of its 3 executions .'node c'.; expected node, benchmark and start"
    with pytest.raises(BadInput, match=problem):
        labelled("path,node,is_stressed\nset/run.csv,c,yes\n")


def test_an_entry_that_fits_nothing_beside_others_is_told(labelled, caplog):
    with caplog.at_level(logging.WARNING):
        found = labelled("path,node,is_stressed\nset/run.csv,a,yes\nset/run.csv,c,yes\n")
    assert found.column("is_stressed") == [True, True, None]
    assert "1 entries fit no execution" in caplog.text and "node c" in caplog.text
