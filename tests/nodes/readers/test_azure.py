"""Tables of Azure's VM noise study: rows of one start together, names that last, repeated rows counted once."""

import os
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tasks.errors import BadInput
from tasks.nodes.params import ReadParams
from tasks.nodes.readers import azure, detect

NAMES = ("test_suite", "test_name", "lifespan", "region", "sku", "unit", "vm_id", "started_at", "runtime_s", "value")
FIO = ("fio", "Random Read 4KB", "long", "eastus", "Standard_D8s_v5", "MB/s", 7, datetime(2023, 5, 1, 12), 30.5, 812.0)
ID = "long-eastus-Standard_D8s_v5-7/fio-random-read-4kb/2023-05-01T12:00:00"


def table(*rows):
    columns = dict(zip(NAMES, (list(column) for column in zip(*rows, strict=True)), strict=True))
    texts = {name: pa.array(columns[name]).dictionary_encode() for name in ("test_suite", "test_name", "sku", "unit")}
    return pa.table({**columns, **texts})


def but(**changes):
    """The row FIO with other values."""
    return tuple(changes.get(name, value) for name, value in zip(NAMES, FIO, strict=True))


@pytest.fixture
def found(found_in):
    return lambda *rows, **params: found_in(table(*rows), "eastus.parquet", **params)


def test_a_row_of_its_own_is_an_execution_with_one_metric(found):
    (row,) = found(FIO).executions.to_dict("records")
    assert row["execution_id"] == ID
    assert (row["node"], row["machine_type"]) == ("long-eastus-Standard_D8s_v5-7", "Standard_D8s_v5")
    assert (row["benchmark"], row["aspect"], row["region"]) == ("fio-random-read-4kb", "disk", "eastus")
    assert row["template"] == "fio: Random Read 4KB"
    assert row["ended_at"] == datetime(2023, 5, 1, 12, 0, 30, 500_000)
    assert found(FIO).told(ID) == {"throughput": (812.0, "MB/s")}


def test_an_execution_has_the_same_name_in_every_export(found):
    later = but(started_at=datetime(2023, 5, 1, 12, 0, 0, 250_000))
    assert found(FIO).column("execution_id") == [ID]
    assert found(later, FIO).column("execution_id") == [ID, ID + ".250000"]


def test_of_rows_of_one_node_test_and_start_the_last_counts(found):
    told = found(but(value=1.0), but(vm_id=8), but(value=3.0))
    assert (told.told(ID), told.n_read) == ({"throughput": (3.0, "MB/s")}, 3)
    assert told.reasons == ["the metric stands again in a later row of this node, test and start, which counts"]
    assert told.refused["place"].to_list() == [1]


def test_parts_of_the_table_are_joined_without_loss(found, monkeypatch):
    rows = [but(vm_id=at // 2, started_at=datetime(2023, 5, 1, at)) for at in range(9)]
    whole = found(*rows)
    monkeypatch.setattr(azure, "CHUNK_EXECUTIONS", 2)
    parted = found(*rows)
    assert parted.executions.equals(whole.executions)
    assert parted.metrics.equals(whole.metrics)


def test_long_and_like_names_stay_apart_and_short(found):
    tests = ["a" * 100, "a" * 99 + "b", "Copy+", "Copy-", "Read", "Type: Read - Direct: No", "Type: Read"]
    names = found(*(but(test_name=name) for name in tests)).column("benchmark")
    assert len(set(names)) == 7
    assert max(map(len, names)) <= 80
    assert names[4:] == ["fio-read", "fio-type-read-direct-no", "fio-type-read"]
    assert names == list(reversed(found(*(but(test_name=name) for name in reversed(tests))).column("benchmark")))


@pytest.mark.parametrize(
    ("suite", "test", "aspect"),
    [
        ("Intel_Memory_Latency_Checker", "Idle Latency", "memory"), ("OSBench", "Create Files", "system"),
        ("perf-bench", "Memcpy 1MB", "system"),
        ("stress-ng", "CPU Stress", "cpu"), ("stress-ng", "Memory Copying", "memory"),
        ("stress-ng", "Context Switching", "system"),
        ("Sysbench", "RAM / Memory", "memory"), ("Sysbench", "CPU", "cpu"),
        ("PostgreSQL", "Read Only", "application"), ("Redis", "SET", "application"), ("Nobody", "Knows", "unknown"),
    ],
)  # fmt: skip
def test_the_words_of_suite_and_test_say_what_is_measured(found, suite, test, aspect):
    assert found(but(test_suite=suite, test_name=test)).column("aspect") == [aspect]


REFUSED = {
    "infinite": ({"value": float("inf")}, "value is no finite number; expected one"),
    "no value": ({"value": None}, "value is no finite number; expected one"),
    "negative": ({"runtime_s": -1.0}, "runtime_s is negative; expected seconds from start to end"),
    "infinite runtime": ({"runtime_s": float("inf")}, "runtime_s is no finite number; expected seconds"),
    "future": (
        {"started_at": datetime(2999, 1, 1)},
        "started_at lies in the future; expected a time that has passed, in UTC",
    ),
    "no start": ({"started_at": None}, "started_at is no time; expected ISO 8601 or Unix time, in UTC"),
    "no machine": ({"vm_id": None}, "no node; expected lifespan, region, sku and vm_id"),
    "no test": ({"test_name": None}, "no benchmark; expected test_suite and test_name"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_broken_row_is_refused_alone(found, changes, reason):
    told = found(but(vm_id=8), but(**changes))
    assert (told.reasons, told.refused["place"].to_list(), told.n_read) == ([reason], [2], 2)


def test_a_table_without_its_values_is_refused(found_in):
    with pytest.raises(BadInput, match="no column sku and no value among 'test_suite'"):
        found_in(table(FIO).drop_columns(["sku", "value"]), "a.parquet", reader="azure-vm-noise")


@pytest.mark.slow
def test_the_whole_region_is_read(tmp_path):
    path = Path(os.environ.get("WHORL_DATASETS", "-")) / "azure-vm-noise" / "eastus.parquet"
    if not path.is_file():
        pytest.skip("needs azure-vm-noise/eastus.parquet in the folder WHORL_DATASETS")
    params = ReadParams()
    chunks = list(detect(str(path), params.limits).read(str(path), params))
    n_kept = sum(int(one.rows["n_rows"].sum()) for one in chunks)
    n_refused = sum(len(one.refused) for one in chunks)
    assert n_kept + n_refused == 1_720_049
    benchmarks = {name for one in chunks for name in one.rows["benchmark"].unique()}
    assert len(benchmarks) >= 40
    aspects = {name for one in chunks for name in one.rows["aspect"].unique()}
    assert "unknown" not in aspects


def test_rows_that_differ_in_their_unit_are_metrics_of_one_execution(found):
    rows = [but(unit="IOPS", value=3113.0), but(vm_id=8), but(unit="MiB_s", value=195.0), but(unit="msec", value=20.5)]
    told = found(*rows)
    assert told.told(ID) == {"iops": (3113.0, "IOPS"), "throughput": (195.0, "MiB_s"), "latency": (20.5, "msec")}
    assert sorted(zip(told.column("place"), told.column("n_rows"), told.column("n_metrics"), strict=True)) == [
        (1, 3, 3), (2, 1, 1),
    ]  # fmt: skip
    assert told.n_read == 4


def test_names_of_tests_lose_what_says_nothing(found):
    name = "Type:_Random_Read_-_IO_Engine:_Linux_AIO_-_Buffered:_No_-_Direct:_Yes_-_Block_Size:_64KB_-_Remote_Disk"
    other = "Scaling_Factor:_25_-_Clients:_1_-_Mode:_Read_Write_(TPC-B_Like)_-_Average_Latency"
    rows = but(test_suite="Flexible_IO_Tester", test_name=name), but(test_suite="PostgreSQL", test_name=other)
    assert found(*rows).column("benchmark") == [
        "fio-random-read-linux-aio-direct-64kb-remote-disk",
        "postgresql-scaling-factor-25-clients-1-read-write-tpc-b-like-average-latency",
    ]
