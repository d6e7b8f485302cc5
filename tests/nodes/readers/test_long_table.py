"""Long tables: rows of one execution together, values as they stand, what is missing never zero."""

import gzip
import json
from datetime import datetime

import pyarrow as pa
import pytest

from tasks.errors import BadInput
from tasks.nodes.intake import Intake, begin_executions
from tasks.nodes.params import ReadParams
from tasks.nodes.type_tables import type_names

HEADER = "node,machine_type,benchmark,started_at,metric,value,unit\n"
ROW = "n1,m5.large,cpu-sysbench,2026-01-31T12:00:00,{},{},{}\n"
ID = "n1/cpu-sysbench/2026-01-31T12:00:00"


def rows(*told, header=HEADER):
    return header + "".join(ROW.format(*one) for one in told)


def test_rows_of_one_node_benchmark_and_start_are_one_execution(found_in):
    text = (
        rows(("rate", 5, "/sec"), ("latency_avg", 2.5, "ms")) + "n2,m5.large,disk-fio,2026-01-31T12:00:00,bw,7,KiB/s\n"
    )
    found = found_in(text)
    assert found.column("execution_id") == [ID, "n2/disk-fio/2026-01-31T12:00:00"]
    assert found.told(ID) == {"rate": (5.0, "/sec"), "latency_avg": (2.5, "ms")}
    assert (found.column("aspect"), found.column("machine_type")) == (["cpu", "disk"], ["m5.large"] * 2)
    assert (found.column("n_metrics"), found.column("n_rows"), found.column("place")) == ([2, 1], [2, 1], [2, 4])
    assert (found.column("status"), found.column("is_stressed")) == (["completed"] * 2, [None, None])
    assert found.n_read == 3


def test_rows_of_one_id_are_one_execution_wherever_they_stand(found_in):
    header = "execution_id,node,benchmark,metric,value\n"
    found = found_in(header + "a,n1,x-cpu,m,1\nb,n2,x-cpu,m,2\na,n1,x-cpu,k,3\n")
    assert (found.column("execution_id"), found.column("started_at")) == (["a", "b"], [None, None])
    assert found.told("a") == {"m": (1.0, ""), "k": (3.0, "")}


def test_an_empty_value_is_a_missing_metric_and_never_zero(found_in):
    found = found_in(rows(("rate", "", "/sec"), ("latency_avg", "NA", "ms"), ("total", 0, "")))
    assert found.told(ID) == {"total": (0.0, "")}
    assert [list(one) for one in found.executions["missing_metrics"]] == [["rate", "latency_avg"]]
    assert (found.column("n_metrics"), found.n_read) == ([1], 3)


def test_a_table_without_a_header_is_told_as_that(found_in):
    with pytest.raises(BadInput, match="the first line seems to be a row: add a line with the names of the columns"):
        found_in(ROW.format("rate", 5, "/sec") * 2)


UNIX = [str(1_769_860_800 * unit) for unit in (1, 1000, 1_000_000, 1_000_000_000)]


@pytest.mark.parametrize("time", ["2026-01-31T13:00:00+01:00", "2026-01-31 12:00:00 UTC", *UNIX])
def test_times_with_a_zone_and_unix_times_in_any_unit_are_brought_to_utc(found_in, time):
    assert found_in(HEADER + f"n1,,x,{time},m,1,\n").column("started_at") == [datetime(2026, 1, 31, 12)]


def test_columns_are_renamed_and_others_left_out(found_in):
    text = "host,what,when,name,result,colour\nn1,x-cpu,2026-01-31,m,4,red\n"
    columns = {"node": "host", "benchmark": "what", "started_at": "when", "metric": "name", "value": "result"}
    found = found_in(text, columns=columns)  # which is also what finds the reader
    assert (found.column("node"), found.told("n1/x-cpu/2026-01-31T00:00:00")) == (["n1"], {"m": (4.0, "")})


@pytest.mark.parametrize(("label", "node"), [("stem", "results"), ("parent", "set"), ("column:vm", "v7")])
def test_the_node_may_come_from_the_name_the_folder_or_another_column(found_in, label, node):
    found = found_in("vm,benchmark,started_at,metric,value\nv7,x,2026-01-31,m,4\n", label_from=label)
    assert found.column("node") == [node]


def test_labels_and_doses_are_taken_over(found_in):
    header = "node,benchmark,started_at,metric,value,is_stressed,dose,dose_level,duration_s,template,campaign\n"
    found = found_in(header + "n1,x,2026-01-31,m,4,true,cpu-16,3,2.5,--threads=16,c1\n")
    assert (found.column("is_stressed"), found.column("dose"), found.column("dose_level")) == ([True], ["cpu-16"], [3])
    assert found.column("ended_at") == [datetime(2026, 1, 31, 0, 0, 2, 500_000)]
    assert (found.column("template"), found.column("campaign")) == (["--threads=16"], ["c1"])
    assert len(found.column("template_hash")[0]) == 64


def test_packed_tables_and_parquet_give_the_same(found_in):
    text = rows(("rate", 5, "/sec"), ("latency_avg", 2.5, "ms"))
    table = pa.table(
        {
            "node": pa.array(["n1", "n1"]).dictionary_encode(),
            "machine_type": ["m5.large"] * 2,
            "benchmark": ["cpu-sysbench"] * 2,
            "started_at": pa.array([datetime(2026, 1, 31, 12)] * 2, pa.timestamp("ns", "UTC")),
            "metric": ["rate", "latency_avg"],
            "value": pa.array([5, 2.5], pa.float32()),
            "unit": ["/sec", "ms"],
        }
    )
    from_text, packed = found_in(text), found_in(gzip.compress(text.encode()), "results.csv.gz")
    parquet = found_in(table, "results.parquet")
    assert from_text.told(ID) == packed.told(ID) == parquet.told(ID)
    assert from_text.column("started_at") == parquet.column("started_at")
    assert parquet.column("place") == [1]


REFUSED = {
    "infinite": ("n1,t,x,2026-01-31,m,inf,ms", "value is not a finite number; expected one, or nothing"),
    "a word": ("n1,t,x,2026-01-31,m,fast,ms", "value is not a finite number; expected one, or nothing"),
    "a comma": ("n1,t,x,2026-01-31,m,1,5,ms", "8 fields; the header has 7"),
    "no node": (",t,x,2026-01-31,m,1,ms", "no node; expected the name of the machine"),
    "no benchmark": ("n1,t,,2026-01-31,m,1,ms", "no benchmark; expected its name"),
    "no metric": ("n1,t,x,2026-01-31,,1,ms", "no metric; expected its name"),
    "no start": ("n1,t,x,,m,1,ms", "no started_at; expected the time at which the execution began"),
    "no time": ("n1,t,x,yesterday,m,1,ms", "started_at is not a time; expected ISO 8601 or Unix time"),
    "no such day": ("n1,t,x,2026-02-30,m,1,ms", "started_at is not a time; expected ISO 8601 or Unix time"),
    "the future": (
        "n1,t,x,2999-01-31,m,1,ms", "started_at lies in the future; expected a time that has passed, in UTC",
    ),
    "long ago": ("n1,t,x,1899-01-31,m,1,ms", "started_at is before 1970; expected a time, in UTC"),
    "not UTF-8": ("n1,t,x,2026-01-31,m\udcff,1,ms", "the line is not UTF-8; convert the file"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_broken_row_is_refused_alone_with_its_line(found_in, line, reason):
    text = HEADER + "n1,t,x,2026-01-31,k,1,\n" + line + "\n\nn1,t,x,2026-01-31,z,3,\n"
    found = found_in(text.encode("utf-8", "surrogateescape"))
    assert found.reasons == [reason]
    assert found.refused["place"].to_list() == [3]
    assert (found.n_read, found.column("n_metrics")) == (3, [2])


def test_a_metric_that_stands_twice_counts_once(found_in):
    found = found_in(rows(("m", 1, ""), ("m", 2, "")))
    assert (found.told(ID), found.n_read) == ({"m": (1.0, "")}, 2)
    assert found.reasons == [f"metric m stands twice in execution {ID}; the first counts"]


def test_rows_that_contradict_their_execution_are_refused(found_in):
    header = "execution_id,node,benchmark,metric,value\n"
    found = found_in(header + "a,n1,x,m,1\na,n2,x,k,2\na,n1,y,l,3\n")
    assert found.reasons == [
        "node n2 in an execution of n1; expected one an execution",
        "benchmark y in an execution of x; expected one an execution",
    ]
    assert (found.told("a"), found.n_read) == ({"m": (1.0, "")}, 3)


FILES = {
    "no value": (
        "node,benchmark,started_at,metric\nn,x,2026-01-31,m\n",
        r"no column value among 'node', 'benchmark', 'started_at', 'metric'; expected the columns node, benchmark, "
        r"metric, value, started_at or execution_id; name yours, as in --map value=THEIRS",
    ),
    "no node": (
        "benchmark,started_at,metric,value\nx,2026-01-31,m,1\n",
        r"name yours, as in --map node=THEIRS, or --label-from stem\|parent",
    ),
    "no start and no id": ("node,benchmark,metric,value\nn,x,m,1\n", "started_at or execution_id among 'node'"),
    "twice": (
        "node,benchmark,started_at,metric,value,value\nn,x,2026-01-31,m,1,1\n", "the column 'value' stands there twice",
    ),
    "no row": ("node,benchmark,started_at,metric,value\n", "no row in it"),
    "names not UTF-8": (
        b"node,gr\x81\xdfe\nn,1\n", "line 1: the line is not UTF-8; convert the file",
    ),
    "empty": ("", "the file is empty"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "problem"), FILES.values(), ids=FILES)
def test_a_file_that_is_wrong_as_a_whole_is_refused_with_one_line(found_in, content, problem):
    with pytest.raises(BadInput, match=problem):
        found_in(content, reader="long")


def test_a_file_that_unpacks_to_more_than_it_may_is_refused(found_in):
    with pytest.raises(BadInput, match="more than 2,048 bytes unpacked; expected a smaller file"):
        found_in(rows(*((f"m{at}", at, "") for at in range(200))), limits={"max_bytes": 2048})


DOSED = "node,benchmark,started_at,metric,value,dose\n"


def test_doses_that_are_numbers_and_levels_say_whether_stress_was_applied(found_in):
    rows_of = "n1,x,2026-01-31,m,4,{}\nn2,x,2026-01-31,m,4,{}\nn3,x,2026-01-31,m,4,{}\n"
    assert found_in(DOSED + rows_of.format("cpu-16", "", "cpu-4")).column("is_stressed") == [True, False, True]
    assert found_in(DOSED + rows_of.format(0, 1, 3)).column("is_stressed") == [False, True, True]
    levels = DOSED.replace("dose", "dose_level") + rows_of.format(0, 2, "")
    assert found_in(levels).column("is_stressed") == [False, True, None]


def test_templates_with_like_hashes_are_types_of_their_own(found_in):
    header = "node,benchmark,started_at,metric,value,template_hash\n"
    hashes = ("sysbench-v1", "sysbench-v2", "2024010101", "2024010102", "ab" * 32, "AB" * 32, "deadbeef")
    text = "".join(f"n{at},x,2026-01-31,m,4,{one}\n" for at, one in enumerate(hashes))
    found = found_in(header + text)
    types = type_names(found.executions).tolist()
    assert len(set(types)) == 6 and types[4] == types[5] == "x@abababab"
    assert types[6] == "x@deadbeef" and found.column("template_hash")[4] == "ab" * 32


def test_times_without_a_zone_are_of_the_one_that_is_given(found_in):
    found = found_in(rows(("m", 1, "")), time_zone="Europe/Berlin")
    assert found.column("started_at") == [datetime(2026, 1, 31, 11)]


MORE = {
    "negative": ("duration_s", "-3", "duration_s is negative; expected seconds from start to end"),
    "too long": ("duration_s", "1e11", "duration_s is more than 100 years; expected seconds"),
    "ended early": ("ended_at", "2026-01-30", "ended_at is before started_at; expected start, then end"),
    "a flag": ("is_stressed", "maybe", "is_stressed is not true or false"),
    "an aspect": ("aspect", "gpu", "aspect is not one of cpu, memory, disk, network, system, application, unknown"),
    "a status": ("status", "done", "status is not one of completed, failed, timeout"),
}


@pytest.mark.parametrize(("column", "value", "reason"), MORE.values(), ids=MORE)
def test_labels_that_cannot_be_true_are_refused(found_in, column, value, reason):
    found = found_in(f"node,benchmark,started_at,metric,value,{column}\nn1,x,2026-01-31,m,1,{value}\n")
    assert (found.reasons, found.n_read, len(found.executions)) == ([reason], 1, 0)


def test_a_column_renamed_from_nowhere_is_refused(found_in):
    with pytest.raises(BadInput, match="no column 'v' to read 'value' from; expected one of 'node'"):
        found_in(rows(("m", 1, "")), columns={"value": "v"})
    with pytest.raises(BadInput, match="cannot map 'unit' to 'units'; expected one of execution_id"):
        found_in(rows(("m", 1, "")), columns={"units": "unit"})


WIDE = "Host;Datum;Test;throughput (MB);latency_ms\nvm1;31.01.2026 12:00;fio;1,5;2\nvm2;31.01.2026 12:00;fio;2,5;\n"
WIDE = WIDE.replace("Datum", "Date")
SHOUTED = "VM,Test,Metric,Result,Unit,Timestamp\nvm1,fio,IOPS,9000,,2026-01-31T12:00:00Z\n"
BENCHMARKS = "server,instance_type,timestamp,sysbench_cpu,fio_read\nvm1,m5.large,2026-01-31T12:00:00Z,900,250.5\n"


def test_a_column_a_metric_gives_an_execution_a_row(found_in):
    found = found_in(WIDE, name="results.csv")
    assert found.n_read == 2 and found.reasons == []
    assert found.told("vm1/fio/2026-01-31T12:00:00") == {"throughput_mb": (1.5, "MB"), "latency_ms": (2.0, "ms")}
    assert found.told("vm2/fio/2026-01-31T12:00:00") == {"throughput_mb": (2.5, "MB")}


@pytest.mark.parametrize(
    ("bandwidth", "latency", "expected"),
    [
        ("1.5 MiB/s", "250 us", {"bandwidth": (1.5 * 2**20, "B/s"), "latency": (2.5e-4, "s")}),
        ("9.4 Gbit/s", "2400 1/s", {"bandwidth": (9.4, "Gbit/s"), "latency": (2400.0, "1/s")}),
        ("1,5 MB/s", "52,1 kIOPS", {"bandwidth": (1.5, "MB/s"), "latency": (52.1, "kIOPS")}),
    ],
    ids=["as screens export them", "any known unit", "with decimal commas"],
)
def test_cells_of_a_wide_table_may_carry_their_unit(found_in, bandwidth, latency, expected):
    text = f"Host;test;date;bandwidth;latency\nvm1;fio;2026-01-31 12:00;{bandwidth};{latency}\n"
    assert found_in(text, name="results.csv").told("vm1/fio/2026-01-31T12:00:00") == expected


@pytest.mark.parametrize(
    "units",
    [
        {"events_per_s": "events_per_s", "triad_MBps": "MBps", "bitrate_gbps": "gbps", "bw MB/s": "MB/s"},
        {"widgets per second": "1/second", "cpu_pct": "pct", "input_gb": "GB", "size_m": "", "iops_min": ""},
        {"tokens/s": "1/s", "Throughput (images / sec)": "1/sec", "requestsPerSecond": "1/Second", "MFLOP/s": ""},
        {
            "runs_per_hour": "1/hour",
            "builds/min": "1/min",
            "images/ms": "1/ms",
            "usd per GB": "",
            "stall ms/s": "",
            "ops_per_min": "ops_per_min",
        },
        {"time per image (ms)": "ms", "ns/op": "ns/op", "hyper_s": "s", "cpu MFLOP/s": "Mflops"},
        {"seconds": "seconds", "ms": "ms", "s": "s", "min": "", "hour": "", "MB": ""},
        {
            "rx mb/s": "MB/s",
            "tx_kb_s": "kB_s",
            "kib/s": "KiB/s",
            "net_mb": "MB",
            "up Mb/s": "Mb/s",
            "tx mbit/s": "Mbit/s",
        },
    ],
    ids=[
        "as tools write them",
        "or in words, and no minutes: they are the least",
        "whatever is counted a second is a rate",
        "and so is what is counted in another time",
        "a time of each is a time",
        "a name may be a time and nothing else",
        "a small b after a small prefix is bytes, after a capital bits",
    ],
)
def test_the_name_of_a_column_may_end_in_its_unit(found_in, units):
    found = found_in(f"host,test,date,{','.join(units)}\nvm1,fio,2026-01-31 12:00{',5' * len(units)}\n")
    assert [unit for _, unit in found.told("vm1/fio/2026-01-31T12:00:00").values()] == list(units.values())


@pytest.mark.parametrize(
    ("result", "expected"),
    [({"copy": 12.5}, {"copy": (12.5, "")}), ({"copy": {"value": 12.5, "unit": "1/s"}}, {"copy": (12.5, "1/s")})],
    ids=["numbers", "values with a unit beside them"],
)
def test_results_may_be_objects_of_json(found_in, result, expected):
    results = [{"host": "vm1", "benchmark": "stream", "time": "2026-01-31T12:00:00Z", **result}]
    for text in (json.dumps(results), json.dumps({"results": results})):
        assert found_in(text, name="results.json").told("vm1/stream/2026-01-31T12:00:00") == expected


def test_rows_of_a_wide_table_without_a_time_or_an_id_are_executions_called_by_their_line(found_in):
    found = found_in("node,benchmark,run,iops,lat (us)\nn1,fio,1,61.5,812\nn2,fio,1,60.8,830\nn1,fio,2,61.1,815\n")
    assert found.column("execution_id") == ["set/results.csv/2", "set/results.csv/3", "set/results.csv/4"]
    assert (found.column("node"), found.column("started_at")) == (["n1", "n2", "n1"], [None] * 3)
    found = found_in("node,iops,Run\nn1,61.5,1\nn2,60.8,2\n", "set/other.csv")
    assert (found.column("execution_id"), found.column("benchmark")) == (
        ["set/other.csv/2/iops", "set/other.csv/3/iops"], ["iops"] * 2,
    )  # fmt: skip


def test_columns_are_known_in_capitals(found_in):
    assert found_in(SHOUTED, name="results.csv").told("vm1/fio/2026-01-31T12:00:00") == {"IOPS": (9000.0, "")}


def test_without_a_benchmark_each_column_is_one(found_in):
    found = found_in(BENCHMARKS, name="results.csv")
    for benchmark, value in (("sysbench_cpu", 900.0), ("fio_read", 250.5)):
        assert found.told(f"vm1/{benchmark}/2026-01-31T12:00:00") == {"result": (value, "")}
    assert set(found.executions["machine_type"]) == {"m5.large"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (WIDE, "read `Host` as node"),
        (BENCHMARKS, "read `sysbench_cpu`, `fio_read` as benchmarks"),
        (
            WIDE.replace(";1,5;", ";1,5 zorks;"),
            "not read: 'throughput (MB)' (neither numbers nor numbers with a known unit)",
        ),
    ],
)
def test_what_was_understood_is_said(tmp_path, text, line):
    (tmp_path / "results.csv").write_text(text)
    assert line in begin_executions(str(tmp_path / "results.csv"), Intake("s", "", ReadParams()))


def test_a_long_table_without_metrics_has_one_a_benchmark_and_units_stand_in_values_or_names(found_in):
    header, at = "NODE,Instance Type,Timestamp,Test,Result\n", "2026-09-03T08:00:00Z"
    rows = [
        ("CPU (events/sec)", "1184.2"),
        ("Disk Read", "520.1 MiB/s"),
        ("Disk Latency p99", "1.93 ms"),
        ("Score", "7"),
    ]
    text = header + "".join(f"n1,m5.large,{at},{test},{result}\n" for test, result in rows)
    found = found_in(text, "nodes.csv")
    assert found.column("benchmark") == [test for test, _ in rows]
    told = {test: found.told(f"n1/{test}/2026-09-03T08:00:00") for test, _ in rows}
    assert told == {
        "CPU (events/sec)": {"result": (1184.2, "events/sec")},
        "Disk Read": {"result": (520.1, "MiB/s")},
        "Disk Latency p99": {"result": (1.93, "ms")},
        "Score": {"result": (7.0, "")},
    }
    assert found.reasons == []


def test_a_long_table_without_metrics_may_have_a_column_of_units(found_in):
    rows = (
        ("Disk Read", "520.1", "MiB/s"),
        ("Latency (ms)", "1.9", ""),
        ("CPU", "7 events/s", ""),
        ("Net", "3 MB", "MB"),
    )
    lines = "".join(f"n1,2026-09-03,{test},{result},{unit}\n" for test, result, unit in rows)
    for header, columns in (
        ("Test,Result,Units", {}),
        ("what,got,in", {"benchmark": "what", "value": "got", "unit": "in"}),
    ):
        found = found_in(f"node,started_at,{header}\n{lines}", "nodes.csv", columns=columns)
        told = {test: found.told(f"n1/{test}/2026-09-03T00:00:00") for test in found.column("benchmark")}
        assert told == {
            "Disk Read": {"result": (520.1, "MiB/s")},
            "Latency (ms)": {"result": (1.9, "ms")},
            "CPU": {"result": (7.0, "events/s")},
        }
        assert found.refused["place"].to_list() == [5]


def test_values_of_a_long_table_may_carry_their_units(found_in):
    rows = (("bw", "9.4 Gbit/s"), ("lat", "12us"), ("n", "3"), ("odd", "5 parrots/s"), ("no", "failed"), ("two", "1 2"),
            ("hex", "0x1F"), ("what", "5 foo"), ("of", "5/6"))  # fmt: skip
    lines = "".join(f"n,d,{metric},{value},2026-01-01\n" for metric, value in rows)
    found = found_in(f"node,benchmark,metric,value,started_at\n{lines}", "nodes.csv")
    (name,) = found.column("execution_id")
    expected = {"bw": (9.4, "Gbit/s"), "lat": (12.0, "us"), "n": (3.0, ""), "odd": (5.0, "parrots/s")}
    assert found.told(name) == expected
    assert found.refused["place"].to_list() == [6, 7, 8, 9, 10]


def test_a_date_and_a_clock_in_two_columns_are_one_time(found_in):
    found = found_in(
        "Server,Test,Date,Time,Metrik,Wert\ns1,cpu,2026-03-17,06:00:00,rate,1\ns1,cpu,2026-03-17,18:00:00,rate,2\n"
    )
    assert found.executions["started_at"].astype("str").to_list() == ["2026-03-17 06:00:00", "2026-03-17 18:00:00"]
    assert found.metrics["metric"].to_list() == ["rate", "rate"]
