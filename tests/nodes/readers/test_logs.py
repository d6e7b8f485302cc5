"""Raw logs: what they measured comes from them, on which node and when from outside; nothing of it is invented."""

import gzip
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput
from tasks.nodes.params import ReadParams
from tasks.nodes.readers.logs import read
from tasks.nodes.tools import PARSERS

SYSBENCH = """sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 16
Initializing random number generator from current time


Prime numbers limit: 10000

Initializing worker threads...

Threads started!

CPU speed:
    events per second:   912.50

General statistics:
    total time:                          2.0021s
    total number of events:              1827

Latency (ms):
         min:                                    1.05
         avg:                                   17.25
         max:                                   49.10
         95th percentile:                       30.26
         sum:                                31515.75

Threads fairness:
    events (avg/stddev):           114.1875/2.56
    execution time (avg/stddev):   1.9697/0.02
"""
RECORDED = Path(__file__).parents[3] / "data" / "recorded" / "nodes" / "executions-0001.parquet"
TOOLS = Path(__file__).parents[1] / "tools" / "logs"
HOW = "name it: --label-from stem|parent, or a manifest with the columns path and node"


def test_a_log_is_an_execution_named_by_its_folder_and_itself(found_in):
    found = found_in(SYSBENCH, "n7/cpu.log", label_from="parent")
    (row,) = found.executions.to_dict("records")
    assert (row["execution_id"], row["node"], row["benchmark"]) == ("n7/cpu.log", "n7", "cpu-sysbench")
    assert (row["aspect"], row["tool_version"], row["status"]) == ("cpu", "1.0.20", "completed")
    assert (found.column("started_at"), found.column("is_stressed")) == ([None], [None])
    assert found.told("n7/cpu.log")["events_per_second"][0] == 912.5
    assert (found.logs["log"].to_list(), found.n_read) == ([SYSBENCH], 1)


TOOK = {  # a log, and the longest time that it tells of its run
    "sysbench/cpu-1.0.20.txt": 2.0016, "fio/3.33.json": 2.476, "ioping/1.3.txt": 2.1, "stress-ng/0.15.06.txt": 3.01,
    "iperf3/3.12.json": 2.0, "qperf/0.4.11.txt": 2.0, "UnixBench/5.1.3.txt": None,
}  # fmt: skip


@pytest.mark.parametrize(("log", "took_s"), TOOK.items(), ids=TOOK)
def test_an_execution_took_as_long_as_its_tool_says(found_in, log, took_s):
    found = found_in((TOOLS / log).read_text(), "n1/a.txt", label_from="parent")
    assert found.column("duration_s")[0] == (took_s and pytest.approx(took_s, rel=0.1))


def test_the_manifest_says_node_start_and_label(found_in, tmp_path):
    (tmp_path / "labels.csv").write_text(
        "path,node,machine_type,started_at,is_stressed,dose,dose_level,duration_s\n"
        "logs/cpu.log,n1,m5.large,2026-01-31T13:00:00+01:00,yes,cpu-16,3,2.5\n"
    )
    found = found_in(SYSBENCH, "logs/cpu.log", manifest=str(tmp_path / "labels.csv"))
    (row,) = found.executions.to_dict("records")
    assert row["execution_id"] == "n1/cpu-sysbench/2026-01-31T12:00:00"
    assert (row["machine_type"], row["is_stressed"], row["dose"], row["dose_level"]) == ("m5.large", True, "cpu-16", 3)
    assert row["ended_at"] == datetime(2026, 1, 31, 12, 0, 2, 500_000)


def test_a_manifest_with_doses_says_which_logs_had_none(found_in, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "labels.csv").write_text("path,node,dose\nset/a.log,n1,cpu-16\nset/b.log,n1,\n")
    for name in ("a.log", "b.log"):
        (tmp_path / "set" / name).write_text(SYSBENCH)
    assert found_in(tmp_path / "set", manifest=str(tmp_path / "labels.csv")).column("is_stressed") == [True, False]


@pytest.mark.parametrize(
    ("name", "started"),
    [
        ("cpu-20260131T120000Z.log", datetime(2026, 1, 31, 12)),
        ("2026-01-31_12-00-05-cpu.txt", datetime(2026, 1, 31, 12, 0, 5)),
        ("cpu-20261331T120000.log", None),
        ("cpu-1234.log", None),
    ],
)
def test_a_start_may_stand_in_the_name_of_the_file(found_in, name, started):
    assert found_in(SYSBENCH, f"n1/{name}", label_from="parent").column("started_at") == [started]


STARTS = {  # a log of a tool, the zone that is given, and its start in UTC
    "since 1970": ("fio/3.33.json", "Asia/Tokyo", datetime(2026, 11, 21, 15, 45, 25, 508_000)),
    "by a clock": ("fio/3.33.txt", "Asia/Tokyo", datetime(2026, 11, 21, 6, 45, 15, 905_000)),
    "by a clock of nobody's zone": ("fio/3.33.txt", "UTC", datetime(2026, 11, 21, 15, 45, 15, 905_000)),
    "not told": ("ioping/1.3.txt", "UTC", None),
}


@pytest.mark.parametrize(("log", "zone", "started"), STARTS.values(), ids=STARTS)
def test_a_start_that_the_tool_wrote_is_read_and_the_time_of_the_file_is_not(found_in, log, zone, started):
    found = found_in((TOOLS / log).read_text(), "n1/a.txt", label_from="parent", time_zone=zone)
    assert found.column("started_at") == [started]


def test_the_start_that_a_tool_wrote_is_within_a_second_of_the_recorders():
    """Of real logs of which a recorder knows when they began; iperf3 tells whole seconds."""
    recorded = pq.read_table(RECORDED, columns=["benchmark", "started_at", "log"]).to_pylist()
    late_s = {}
    for row in recorded:
        told = PARSERS[row["benchmark"]].parse(row["log"]).started_at
        if told:
            late_s.setdefault(row["benchmark"], []).append(
                (told.replace(tzinfo=None) - row["started_at"]).total_seconds()
            )
    assert sorted(late_s) == ["disk-fio", "disk-ioping", "network-iperf3"]
    assert all(len(late) > 20 and min(late) > -1 and max(late) < 1 for late in late_s.values())


def test_a_name_and_a_manifest_say_the_start_before_the_tool_does(found_in, tmp_path):
    (tmp_path / "labels.csv").write_text("path,started_at\nn1/20260131T120000.json,2026-01-30T12:00\n")
    text, name = (TOOLS / "fio/3.33.json").read_text(), "n1/20260131T120000.json"
    assert found_in(text, name, label_from="parent").column("started_at") == [datetime(2026, 1, 31, 12)]
    labelled = found_in(text, name, label_from="parent", manifest=str(tmp_path / "labels.csv"))
    assert labelled.column("started_at") == [datetime(2026, 1, 30, 12)]


def test_a_start_by_a_clock_that_is_ahead_is_none_and_the_log_is_kept(found_in):
    text = (TOOLS / "iperf3/3.12.json").read_text().replace("1795275989", "3900000000")
    found = found_in(text, "n1/a.json", label_from="parent")
    assert (found.column("started_at"), found.reasons) == ([None], [])


def test_who_told_the_starts_of_a_folder_is_understood(tmp_path):
    for name in ("fio/3.33.json", "fio/3.33.txt", "iperf3/3.12.json", "iperf3/3.1.json", "ioping/1.3.txt"):
        path = tmp_path / "set" / "n1" / name.replace("/", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((TOOLS / name).read_text())
    (tmp_path / "set" / "n1" / "20260131T120000.txt").write_text(SYSBENCH)
    (chunk,) = read(str(tmp_path / "set"), ReadParams(label_from="parent", time_zone="Europe/Berlin"))
    assert chunk.understood == (
        "start as the tool wrote it: 3 logs of fio, iperf3",
        "start as the tool wrote it, by the clock of its machine, read as Europe/Berlin (--time-zone): 1 log of fio",
        "start not told: 1 log of ioping",
    )


def test_a_folder_holds_many_logs_each_once(found_in, tmp_path):
    for name in ("n1/cpu.log", "n1/again.log.gz", "n2/day/cpu.log", "n2/note.md"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(SYSBENCH.encode()) if name.endswith(".gz") else SYSBENCH.encode())
    found = found_in(tmp_path / "logs", label_from="parent")
    assert found.column("execution_id") == ["logs/n1/again.log.gz", "logs/n1/cpu.log", "logs/n2/day/cpu.log"]
    assert (found.column("node"), found.n_read) == (["n1", "n1", "day"], 3)


def test_a_log_of_nobody_knows_which_node_is_refused_with_the_way_to_name_it(found_in):
    expected = f"nobody says on which node it ran; expected the name of a node for each log; {HOW}"
    with pytest.raises(BadInput) as refused:
        found_in(SYSBENCH, "n1/cpu.log")
    assert str(refused.value).endswith(expected)


BROKEN = {
    "another text": (b"Dear all,\n", "b.log: no known tool wrote it (it begins with 'Dear all,\\n')"),
    "empty": (b"", "b.log: the file is empty; expected at least one row"),
    "packed": (b"BZh91AY", "b.log: packed with bzip2; expected plain text or gzip"),
    "half a gzip": (gzip.compress(SYSBENCH.encode())[:100], "b.log: the gzip stream is damaged or cut off"),
    "no results": (
        SYSBENCH.split("CPU speed")[0].encode(),
        "b.log: no result in it, at most settings; expected the results",
    ),
}


@pytest.mark.parametrize(("content", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_no_log_is_refused_among_the_others(found_in, tmp_path, content, reason):
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "a.log").write_text(SYSBENCH)
    (tmp_path / "n1" / "b.log").write_bytes(content)
    found = found_in(tmp_path / "n1", label_from="stem")
    assert found.column("node") == ["a"]
    assert any(told.startswith(reason) for told in found.reasons)
    assert set(found.refused["place"]) == {2}


def test_a_value_that_cannot_be_used_is_refused_alone_with_its_line(found_in):
    found = found_in(SYSBENCH.replace("17.25", "inf"), "n1/cpu.log", label_from="parent")
    (reason,) = found.reasons
    assert reason.startswith("cpu.log, line 23: latency_avg")
    assert "latency_avg" not in found.told("n1/cpu.log")
    assert "latency_avg" in found.executions["missing_metrics"].iloc[0]
    assert found.n_read == 1


LABELS = {
    "a time": (
        "started_at",
        "noon",
        "started_at 'noon' of .* cannot be read; expected a time in ISO 8601; mend the line",
    ),
    "a flag": (
        "is_stressed",
        "maybe",
        "is_stressed 'maybe' of .* cannot be read; expected true or false; mend the line",
    ),
    "a number": ("duration_s", "long", "duration_s 'long' of .* cannot be read; expected a number; mend the line"),
}


@pytest.mark.parametrize(("column", "value", "problem"), LABELS.values(), ids=LABELS)
def test_a_label_that_cannot_be_read_is_refused(found_in, tmp_path, column, value, problem):
    (tmp_path / "labels.csv").write_text(f"path,node,{column}\nlogs/cpu.log,n1,{value}\n")
    with pytest.raises(BadInput, match=problem):
        found_in(SYSBENCH, "logs/cpu.log", manifest=str(tmp_path / "labels.csv"))


def test_the_settings_of_a_log_are_its_template_unless_one_is_told(found_in, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("path,node,template,template_hash\na.log,n1,,\nb.log,n1,--threads=16,\nc.log,n1,,v2\n")
    params = {"manifest": str(labels)}
    (a,), (b,), (c,) = (found_in(SYSBENCH, name, **params).column("template") for name in ("a.log", "b.log", "c.log"))
    assert (a, b, c) == ("num_threads=16 prime_numbers_limit=10000", "--threads=16", None)
    hashes = [found_in(SYSBENCH, name, **params).column("template_hash")[0] for name in ("a.log", "b.log", "c.log")]
    assert [len(one) for one in hashes] == [64] * 3
    assert len(set(hashes)) == 3


def test_logs_that_share_a_start_are_called_after_their_files_too(found_in, tmp_path):
    (tmp_path / "set").mkdir()
    rows = []
    for at in range(3):
        (tmp_path / f"set/{at}.log").write_text(SYSBENCH)
        rows.append(f"set/{at}.log,n1,2026-01-{31 - (at == 2)}\n")
    labels = tmp_path / "labels.csv"
    labels.write_text("path,node,started_at\n" + "".join(rows))
    day, expected = "n1/cpu-sysbench/2026-01-31T00:00:00", "n1/cpu-sysbench/2026-01-30T00:00:00"
    found = found_in(tmp_path / "set", manifest=str(labels)).column("execution_id")
    assert found == [f"{day}/set/0.log", f"{day}/set/1.log", expected]
    alone = [found_in(tmp_path / f"set/{at}.log", manifest=str(labels)).column("execution_id")[0] for at in range(3)]
    assert alone == found


def test_logs_of_one_second_in_a_folder_are_told_apart_and_names_that_are_given_stay(found_in, tmp_path):
    for name in ("n1/20260131T120000.log", "n1/more/20260131T120000.log", "n1/c.log", "n1/d.log"):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_text(SYSBENCH)
    rows = [f"set/n1/{name}.log,n1,{given}\n" for name, given in (("c", "e"), ("d", "e"), ("more/20260131T120000", ""))]
    (tmp_path / "labels.csv").write_text("path,node,execution_id\n" + "".join(rows))
    found = found_in(tmp_path / "set", label_from="parent", manifest=str(tmp_path / "labels.csv"))
    start = "n1/cpu-sysbench/2026-01-31T12:00:00/set/n1"
    expected = [f"{start}/20260131T120000.log", f"{start}/more/20260131T120000.log", "e", "e"]
    assert sorted(found.column("execution_id")) == sorted(expected)


def test_an_entry_of_a_folder_is_of_all_its_logs(found_in, tmp_path):
    (tmp_path / "set").mkdir()
    for name in ("a.log", "b.log"):
        (tmp_path / "set" / name).write_text(SYSBENCH)
    (tmp_path / "labels.csv").write_text("path,node,region\nset,n1,eu\nset/b.log,n2,\n")
    found = found_in(tmp_path / "set", manifest=str(tmp_path / "labels.csv"))
    assert (found.column("node"), found.column("region")) == (["n1", "n2"], ["eu", "eu"])


@pytest.mark.parametrize("dose", ["none", "-", "0", "0.0", "No", "false", "NA"])
def test_a_dose_that_says_none_is_no_stress(found_in, tmp_path, dose):
    (tmp_path / "labels.csv").write_text(f"path,node,dose\nlogs/cpu.log,n1,{dose}\nlogs/b.log,n1,cpu-16\n")
    params = {"manifest": str(tmp_path / "labels.csv")}
    assert found_in(SYSBENCH, "logs/cpu.log", **params).column("is_stressed") == [False]
    assert found_in(SYSBENCH, "logs/b.log", **params).column("is_stressed") == [True]


def test_a_log_in_which_the_tool_reports_an_error_is_kept_as_failed(found_in):
    text = SYSBENCH + "FATAL: worker thread 3 died\n"
    found = found_in(text, "n1/cpu.log", label_from="parent")
    assert (found.column("status"), found.n_read) == (["failed"], 1)
    assert found.reasons[0].startswith("cpu.log, line 31: sysbench reported an error: FATAL")
    assert found_in(SYSBENCH, "n1/cpu.log", label_from="parent").column("status") == ["completed"]


@pytest.mark.parametrize("hurt", [b"\x00", b"\xff"])
@pytest.mark.parametrize(
    ("log", "label", "metric"),
    [
        ("sysbench/memory-1.0.20.txt", b"Total operations", "total_operations"),
        ("sysbench/cpu-1.0.20.txt", b"total number of events", "total_number_of_events"),
        ("fio/3.33.txt", b"read: IOPS", "read_iops"),
        ("ioping/1.3.txt", b"requests completed in", "requests"),
    ],
)
def test_a_line_with_bytes_that_are_no_text_stands_in_the_quarantine(found_in, log, label, metric, hurt):
    good = (Path(__file__).parents[1] / "tools" / "logs" / log).read_bytes()
    assert good.count(label) == 1
    at = good.index(label)
    place = good[:at].count(b"\n") + 1
    found = found_in(good[: at + 2] + hurt + good[at + 3 :], "node1/log.txt", label_from="parent")
    assert any(f"log.txt, line {place}: " in reason for reason in found.reasons), found.reasons


TIMES = {
    "future": ("started_at", "2999-01-01", "started_at lies in the future; expected a time that has passed, in UTC"),
    "negative": ("duration_s", "-2", "duration_s is negative; expected seconds from start to end"),
}


@pytest.mark.parametrize(("column", "value", "reason"), TIMES.values(), ids=TIMES)
def test_a_label_that_cannot_be_true_is_refused(found_in, tmp_path, column, value, reason):
    (tmp_path / "labels.csv").write_text(f"path,node,{column}\nlogs/cpu.log,n1,{value}\n")
    assert found_in(SYSBENCH, "logs/cpu.log", manifest=str(tmp_path / "labels.csv")).reasons == [f"cpu.log: {reason}"]


def test_a_manifest_without_paths_is_refused(found_in, tmp_path):
    (tmp_path / "labels.csv").write_text("node\nn1\n")
    with pytest.raises(BadInput, match="no column path among 'node'; expected the column path and some of"):
        found_in(SYSBENCH, "logs/cpu.log", manifest=str(tmp_path / "labels.csv"))


def test_each_log_of_a_file_is_an_execution_of_its_own(found_in, tmp_path):
    jobs, other = (TOOLS / "fio/3.33-jobs.json").read_text(), "sysbench 1.0.20\n\nreads/s: 118.10\n"
    found = found_in(f"{SYSBENCH}{other}{SYSBENCH}{jobs}", "n7/all.log", label_from="parent")
    names = ["1", "2", "seqread", "randwrite", "reader", "writer"]
    begun = [None, None, *(f"2026-11-27T08:21:{at}" for at in ("38.750", "39.774", "40.777", "40.777"))]
    assert found.column("node") == ["n7"] * 6
    assert found.column("benchmark") == ["cpu-sysbench"] * 2 + ["disk-fio"] * 4
    assert found.column("started_at") == [at and datetime.fromisoformat(at) for at in begun]
    assert [name.rpartition("/")[2] for name in found.column("execution_id")[:2]] == names[:2]
    assert len(set(found.column("template_hash"))) == 5
    assert found.executions["place"].to_list() == [1, 2, 3, 4, 5, 6]
    assert [reason.split(";")[0] for reason in found.reasons] == [
        "all.log, line 31: no known tool wrote it (it begins with 'sysbench 1.0.20\\n\\nreads/s: 118.10\\n')",
        "all.log, line 64: 2 copies of job randwrite are read as one",
    ]


def test_a_benchmark_that_a_manifest_names_is_the_one_that_is_read(found_in, tmp_path):
    (tmp_path / "labels.csv").write_text("path,node,benchmark,execution_id\na.log,n1,memory-sysbench,m\n")
    text = SYSBENCH + (TOOLS / "sysbench/memory-1.0.20.txt").read_text()
    found = found_in(text, "a.log", manifest=str(tmp_path / "labels.csv"))
    assert (found.column("benchmark"), found.column("execution_id")) == (["memory-sysbench"], ["m"])
    assert found.reasons == ["a.log, line 1: a log of cpu-sysbench; the manifest says memory-sysbench"]
