"""What holds for every log: told by its content, accounted for, safe to cut; the same work, the same settings."""

import copy
import json
import math
import random
import re
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from tasks.nodes.tools import PARSERS, detect, logs_in
from tasks.nodes.tools.parsing import SPELLED, in_base, plain, spelled, template_of
from tests.nodes.tools.conftest import benchmark_of

FOLDER = Path(__file__).parent / "logs"
LOGS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*"))
PERIODS = (
    "ioping/1.3-periods.txt",
    "fio/3.33-status.txt",
    "fio/3.33-status.json",
)  # what these tell first looks like a total
N_CUTS = 80
N_EDITS = 150
PIECES = (
    "nan", "-1", "inf", "1e9", ",", ".", "%", "{", "}", "[", "]", "\n", "\r", "\x00", "9" * 30, "9" * 5000, "²", "K",
    "sec", "null", "true", '"', "/", "(", ")", "=", ":", "-",
)  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_every_metric_is_measured_or_missing_and_has_a_unit_that_is_known(parse, name):
    log, metrics = parse(name), PARSERS[benchmark_of(name)].metrics
    of_protocol = [metric for metric in metrics if metric.startswith("udp_") == name.endswith("-udp.json")]
    assert sorted([one.metric for one in log.measured] + list(log.missing)) == sorted(of_protocol)
    assert [one for one in log.measured if one.unit not in SPELLED[metrics[one.metric].unit]] == []


@pytest.mark.parametrize("name", [name for name in LOGS if name not in PERIODS])
def test_a_log_that_is_cut_anywhere_has_no_value_that_the_whole_log_has_not(logs, parse, name):
    text, whole = (logs / name).read_text(), set(parse(name).measured)
    cuts = random.Random(6).sample(range(len(text)), min(N_CUTS, len(text)))
    found = {cut: set(PARSERS[benchmark_of(name)].parse(text[:cut]).measured) - whole for cut in cuts}
    assert {cut: made_up for cut, made_up in found.items() if made_up} == {}


@pytest.mark.parametrize(
    "text", ["", "\n", "hello\n", "{}", "[]", '{"jobs": 1}', "Threads started!\n", "1 2 3\n", "\x00" * 9, "0.5 ms\n"]
)
def test_what_no_tool_wrote_is_told_so_and_no_parser_minds(text):
    assert detect(text) in (None, "disk-fio")
    for parser in PARSERS.values():
        log = parser.parse(text)
        assert log.measured == ()
        assert len(log.faults) == 1


def test_of_logs_of_several_tools_the_first_is_told(logs):
    ioping, fio = (logs / "ioping/1.1.txt").read_text(), (logs / "fio/3.1-write.txt").read_text()
    assert detect(ioping + fio) == "disk-ioping"
    assert detect(fio + ioping) == "disk-fio"


def test_no_edit_makes_a_parser_fail_or_lose_count_of_its_metrics(logs):
    rng = random.Random(7)
    texts = [(logs / name).read_text() for name in LOGS]
    for _ in range(N_EDITS):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(PIECES) + text[at + rng.randint(0, 8) :]
        for parser in PARSERS.values():
            log = parser.parse(text)
            names = [one.metric for one in log.measured] + list(log.missing)
            assert len(set(names)) == len(names) and set(names) <= set(parser.metrics)
            assert all(math.isfinite(one.value) and one.value >= 0 for one in log.measured)
            assert log.measured or log.faults
            assert all(fault.place >= 1 and len(fault.raw) <= 500 for fault in log.faults)


STARTS = {
    "fio/2.2.10.json": None,  # before it wrote any time
    "fio/2.2.10.txt": datetime(2016, 3, 14, 16, 1, 40, 984_000),  # 16:02:11 less 30.016 s; whose zone is not told
    "fio/3.13-nsec.txt": datetime(2023, 7, 3, 22, 30, 31, 827_000),
    "fio/3.33.json": datetime(2026, 11, 21, 15, 45, 25, 508_000, UTC),
    "ioping/1.3.json": datetime(2026, 11, 21, 15, 46, 0, 568_147, UTC),
    "ioping/1.3.txt": None,
    "iperf3/3.1.json": datetime(2019, 5, 14, 9, 25, 10, tzinfo=UTC),
    "iperf3/3.1.txt": datetime(2019, 5, 14, 9, 21, 44, tzinfo=UTC),
    "iperf3/3.12.txt": None,  # without -V
    "qperf/0.4.11.txt": None,
    "sysbench/cpu-1.0.20.txt": None,
    "stress-ng/0.15.06.yaml": datetime(2026, 11, 27, 13, 55, 8, 991_273, UTC),  # 13:55:12 less 3.008727 s
    "UnixBench/5.1.3.txt": datetime(2025, 4, 11, 19, 8, 52),
}


@pytest.mark.parametrize(("name", "started"), STARTS.items(), ids=STARTS)
def test_a_log_began_when_the_tool_says(parse, name, started):
    assert parse(name).started_at == started


FIO_TIMES = [  # what stands there in the JSON, what for it, and when the job began, which ran 2.476 s
    (r'"error" : 0,', '"job_start" : 1795275900250, "error" : 0,', datetime(2026, 11, 21, 15, 45, 0, 250_000, UTC)),
    (r'"error" : 0,', '"job_start" : 81234567, "error" : 0,', STARTS["fio/3.33.json"]),  # a clock since boot
    ("Sat Nov 21 15:45:27", "Sat Nov 21 19:45:27", STARTS["fio/3.33.json"]),
    ('"timestamp_ms"', '"then"', datetime(2026, 11, 21, 15, 45, 24, 524_000, UTC)),
    ('"timestamp(_ms)?"', '"then"', datetime(2026, 11, 21, 15, 45, 24, 524_000)),
    ('"(timestamp(_ms)?|time)"', '"then"', None),
    (r'"timestamp(_ms)?" : 1795|Sat Nov 21', "-1", None),
]


@pytest.mark.parametrize(("old", "new", "started"), FIO_TIMES)
def test_of_the_times_in_fios_json_the_surest_counts(read, logs, old, new, started):
    text = re.sub(old, new, (logs / "fio/3.33.json").read_text())
    assert read("disk-fio", text).started_at == started


FIO = {"rw": "randrw", "bs": "4194304", "ioengine": "psync", "iodepth": "1", "number_of_processes": "1"}
AIO = {"rw": "randread", "bs": "4096", "ioengine": "libaio", "iodepth": "4", "number_of_processes": "2"}
MEMORY = {"operation": "write", "scope": "global", "block_size": "1024"}
QPERF = {
    "tcp_bw_access_recv": "1", "tcp_bw_msg_size": "65536", "tcp_bw_time": "2", "tcp_lat_msg_size": "1",
    "tcp_lat_time": "2",
}  # fmt: skip
SETTINGS = {
    "sysbench/cpu-1.0.20.txt": {"num_threads": "4", "prime_numbers_limit": "10000"},
    "sysbench/cpu-0.4.12.txt": {"num_threads": "4", "prime_numbers_limit": "20000"},
    "sysbench/memory-1.0.20.txt": {**MEMORY, "number_of_threads": "4", "total_size": str(1_024_000 * 2**20)},
    "sysbench/memory-0.4.12.txt": {**MEMORY, "number_of_threads": "1", "total_size": str(2**30)},
    "fio/3.33.txt": FIO,
    "fio/3.33.json": {**FIO, "size": str(64 * 2**20), "runtime": "2"},
    "fio/2.2.10.txt": {**FIO, "ioengine": "sync"},
    "fio/2.2.10.json": {"number_of_processes": "1"},  # lists no options
    "fio/3.33-aio.json": {**AIO, "size": str(64 * 2**20), "runtime": "2"},
    "ioping/1.3.txt": {"request_size": "262144", "operation": "read+write"},
    "ioping/1.3.json": {"request_size": "262144", "operation": "read+write"},
    "ioping/1.3-raw.txt": {"request_size": "262144"},
    "ioping/1.3-fast.txt": {"request_size": "4096", "operation": "read"},
    "ioping/0.6.txt": {"request_size": "4096", "operation": "read"},
    "qperf/0.4.11.txt": QPERF,
    "qperf/0.4.11-bits.txt": {},
    "iperf3/3.12.txt": {"direction": "tx", "streams": "1"},
    "iperf3/3.12.json": {"direction": "tx", "streams": "1", "duration": "2"},
    "iperf3/3.7-bidir.txt": {"direction": "both", "streams": "1", "duration": "30"},
    "iperf3/3.12-udp.json": {
        "direction": "tx", "streams": "1", "duration": "1", "block_size": "32768", "bitrate": "200000000",
        "protocol": "UDP",
    },
    "iperf3/3.12-parallel.json": {"direction": "both", "streams": "2", "duration": "1"},
    "iperf3/3.9-parallel.txt": {"direction": "tx", "streams": "2"},
    "iperf3/3.1-reverse.txt": {"direction": "rx", "streams": "1"},
    "sysbench/disk-1.0.20.txt": {
        "number_of_threads": "1", "mode": "random_r/w", "size": "64MiB", "block_size": "16KiB",
    },
    "stress-ng/0.15.06.txt": {"stressor": "cpu", "beside": "2_cpu,_1_vm,_1_pipe"},
    "STREAM/5.10.txt": {"array_size": "20000000", "threads": "4"},
    "CoreMark/1.0.txt": {
        "size": "666", "threads": "4", "compiler": "GCC12.2.0", "flags": "-O2_-DMULTITHREAD_4_-DUSE_PTHREAD__-lrt",
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), SETTINGS.items())
def test_a_log_tells_how_its_tool_was_called(parse, name, expected):
    assert dict(parse(name).settings) == expected


CHANGES = {
    "block size in text": ("disk-fio", "fio/3.33.txt", "4096KiB-4096KiB", "4096B-4096B", {"bs": "4096"}),
    "block size in JSON": ("disk-fio", "fio/3.33.json", '"bs" : "4m"', '"bs" : "4k"', {"bs": "4096"}),
    "two block sizes": ("disk-fio", "fio/3.33.json", '"bs" : "4m"', '"bs" : "4k,1m"', {"bs": "4096,1048576"}),
    "a range": ("disk-fio", "fio/3.33.json", '"bs" : "4m"', '"bsrange" : "4k-8k"', {"bs": "4096-8192"}),
    "a default": ("disk-fio", "fio/3.33.json", '"bs" : "4m",', "", {"bs": "4096"}),
    "direct": ("disk-fio", "fio/3.33.json", '"bs" : "4m"', '"bs" : "4m", "direct" : "1"', {"direct": "1"}),
    "a place": ("disk-fio", "fio/3.33.json", '"directory" : "/tmp/bench"', '"directory" : "/mnt"', {}),
    "threads": ("cpu-sysbench", "sysbench/cpu-1.0.20.txt", "threads: 4", "threads: 16", {"num_threads": "16"}),
    "operation": ("memory-sysbench", "sysbench/memory-1.0.20.txt", ": write", ": read", {"operation": "read"}),
    "message": ("network-qperf", "qperf/0.4.11.txt", "64 KiB (65,536)", "1 KiB (1,024)", {"tcp_bw_msg_size": "1024"}),
    "block": ("network-iperf3", "iperf3/3.12.json", '"blksize":\t131072', '"blksize":\t8192', {"block_size": "8192"}),
}


@pytest.mark.parametrize(("benchmark", "name", "old", "new", "other"), CHANGES.values(), ids=CHANGES)
def test_another_setting_is_told(logs, read, parse, benchmark, name, old, new, other):
    text = (logs / name).read_text()
    assert old in text
    assert dict(read(benchmark, text.replace(old, new)).settings) == dict(parse(name).settings) | other


def test_json_that_lists_no_more_than_text_tells_is_the_same_template(logs, read, parse):
    document = json.loads((logs / "fio/3.33.json").read_text())
    for further in ("size", "runtime"):
        del document["jobs"][0]["job options"][further]
    settings = read("disk-fio", json.dumps(document)).settings
    assert template_of(settings) == template_of(parse("fio/3.33.txt").settings)


def test_jobs_that_differ_are_told_together_in_json_as_in_text(logs, read, parse):
    document = json.loads((logs / "fio/3.33.json").read_text())
    other = copy.deepcopy(document["jobs"][0])
    other["job options"] |= {"rw": "read", "direct": "1"}
    document["jobs"].insert(0, other)
    expected = dict(parse("fio/3.33.json").settings) | {
        "rw": "read+randrw", "direct": "1+0", "number_of_processes": "2",
    }  # fmt: skip
    assert dict(read("disk-fio", json.dumps(document)).settings) == expected


def test_settings_are_spelled_in_base_units_and_as_one_word():
    assert [spelled(1, "KiB"), spelled(0.5, "ms"), spelled(2, "min"), spelled(7)] == ["1024", "0.0005", "120", "7"]
    assert plain(" 4 k\tblocks; or so ") == "4_k_blocks__or_so"
    assert template_of([("b", "2"), ("a", "1")]) == "a=1 b=2"


@pytest.mark.parametrize("name", LOGS)
def test_a_parser_takes_nothing_from_another_tools_log(logs, name):
    text, own = (logs / name).read_text(), benchmark_of(name)
    assert detect(text) == own
    assert [one for one, parser in PARSERS.items() if not one.startswith(own) and parser.parse(text).measured] == []


ANOTHER = "another log begins here; only the first is read"
EXPECTED = Path(__file__).with_name("expected.txt").read_text().partition("\n\n")[2].replace("\n   ", "")
ROWS = [line.partition(":") for line in EXPECTED.splitlines()]
FAULTY = {  # logs of which only the first is read here, or which were refused
    "fio/3.33-jobs.json": [ANOTHER] * 3,
    "fio/3.33-jobs.txt": [ANOTHER] * 3,
    "stress-ng/0.15.06.txt": [ANOTHER] * 2,
    "stress-ng/0.15.06.yaml": [ANOTHER] * 2,
    "openssl/3.0.19.txt": [ANOTHER] * 2,
    "UnixBench/5.1.3.txt": [ANOTHER],
    "fio/3.33-two-jobs.txt": [
        "2 copies of job aio are read as one; for percentiles and deviations of all run with --group_reporting"
    ],
    "iperf3/3.12-refused.json": ["iperf3 reported an error: unable to connect to server: Connection refused"],
}


@pytest.mark.parametrize(("head", "told"), [(head, told) for head, _, told in ROWS], ids=[row[0] for row in ROWS])
def test_a_log_says_what_stands_in_it(parse, head, told):
    name, version, n_values = head.split()
    log = parse(name)
    assert (log.tool, log.version or "-", len(log.measured)) == (name.split("/")[0], version, int(n_values))
    assert [fault.reason for fault in log.faults] == FAULTY.get(name, [])
    values = {one.metric: (one.value, one.unit) for one in log.measured}
    for metric, value, *unit in (entry.split() for entry in told.split(";") if entry.strip()):
        if value == "-":
            assert metric in log.missing
        else:
            assert values[metric] == (pytest.approx(float(value), rel=1e-12), "".join(unit))


def test_every_log_stands_in_the_table(logs):
    names = {path.relative_to(logs).as_posix() for path in logs.glob("*/*") if path.suffix != ".md"}
    assert {head.split()[0] for head, _, _ in ROWS} == names


def test_raw_statistics_of_slow_requests_are_in_ns_although_about_one_a_second(read):
    log = read("disk-ioping", "10 9000000000 1 4551 880000000 900000000 920000000 9000000 10 9000010000\n")
    assert {one.metric: (one.value, one.unit) for one in log.measured}["latency_avg"] == (900000000, "ns")


def test_the_total_behind_periods_counts(read):
    log = read("disk-ioping", "10 1000000 10000 1 90000 100000 110000 9\n10 1000000 10000 1 80000 100000 120000 9\n"
                              "20 2000000 10000 1 80000 100000 120000 9\n")  # fmt: skip
    assert (log.measured[0].metric, log.measured[0].value, log.faults) == ("number_of_requests", 20, ())


JOBS = {  # of the files: as fio's own lines of groups say, of randwrite bytes or requests of both copies
    "fio/3.33-jobs.json": {"seqread": 720.703125, "reader": 4342.657343, "writer": 3020.979021},
    "fio/3.33-jobs.txt": {"seqread": 720, "reader": 3574, "writer": 1496},
}


@pytest.mark.parametrize("name", JOBS)
def test_each_job_of_fio_is_a_log_that_knows_which_ran_beside_it_and_when_it_began(logs, name):
    jobs = {log.name: log for _, log in logs_in((logs / name).read_text())}
    assert list(jobs) == ["seqread", "randwrite", "reader", "writer"]
    rates = {job: {one.metric: one.value for one in log.measured} for job, log in jobs.items()}
    for job, rate in JOBS[name].items():
        assert rates[job]["write_iops" if job == "writer" else "read_iops"] == rate
    settings = {job: dict(log.settings) for job, log in jobs.items()}
    assert [settings[job]["job"] for job in jobs] == list(jobs)
    assert [settings[job].get("beside") for job in jobs] == [None, None, "writer", "reader"]
    assert [settings[job]["bs"] for job in jobs] == ["1048576", "4096", "4096", "65536"]
    assert [settings[job]["number_of_processes"] for job in jobs] == ["1", "2", "1", "1"]
    begun = [jobs[job].started_at for job in ("seqread", "randwrite", "reader")]
    assert [1 <= (later - before).total_seconds() < 1.1 for before, later in pairwise(begun)] == [True, True]


def test_copies_of_a_job_are_one_as_fio_reports_a_group(logs):
    (log,) = [log for _, log in logs_in((logs / "fio/3.33-jobs.txt").read_text()) if log.name == "randwrite"]
    values = {one.metric: in_base(one.value, one.unit) for one in log.measured}
    assert values["write_bw"] == pytest.approx(62.3 * 2**20, rel=0.002)  # its WRITE: bw=62.3MiB/s
    assert values["write_io_size"] == pytest.approx(62.4 * 2**20)
    assert not {"write_clat_99p", "write_lat_stdev"} & set(values)


def test_of_results_that_are_told_again_and_again_the_last_count(logs):
    for name in ("fio/3.33-status.json", "fio/3.33-status.txt"):
        ((_, log),) = logs_in((logs / name).read_text())
        (time,) = [in_base(one.value, one.unit) for one in log.measured if one.metric == "read_runtime"]
        assert time == pytest.approx(3.0, abs=0.01)


WARM_UP, RUN = (10.0, 60_000, 10.0), (71.2, 400_000, 60.0)  # when it was written, requests and time of its reads


def repeated(text: str, told: tuple[float, int, float], **changed: object) -> str:
    """What fio's JSON says after a run, with this told of the reads of its job, and other facts of the job changed."""
    document, (at_s, n, runtime_s) = json.loads(text), told
    document |= {"timestamp": 1_795_767_700 + int(at_s), "timestamp_ms": 1_795_767_700_000 + int(at_s * 1000)}
    document["jobs"][0] |= changed
    document["jobs"][0]["read"] |= {"total_ios": n, "io_bytes": 4096 * n, "runtime": int(runtime_s * 1000)}
    return json.dumps(document) + "\n"


@pytest.mark.parametrize(
    ("told", "changed", "n_runs"),
    [
        ((WARM_UP, RUN), ({}, {}), 2),  # options that stand elsewhere: the time tells
        (((60.0, 400_000, 60.0), (121.2, 300_000, 60.0)), ({}, {}), 2),
        (((10.0, 9, 10.0), (72.0, 8, 70.5)), ({}, {}), 2),  # the same time between, but less was done
        (((10.0, 8, 10.0), (72.0, 9, 70.5)), ({}, {}), 1),
        (((10.0, 8, 10.0), (72.0, 9, 70.5)), ({}, {"job options": {"rw": "read"}}), 2),
        (((10.0, 8, 10.0), (72.0, 9, 70.5)), ({"job_start": 1_795_767_690_000}, {"job_start": 1_795_767_700_500}), 2),
        (((10.0, 8, 10.0), (72.0, 9, 70.5)), ({"job_start": 0}, {"job_start": 1_795_767_690_000}), 1),
    ],
)
def test_json_of_a_further_run_of_a_job_is_no_later_word_of_the_first(logs, told, changed, n_runs):
    text = (logs / "fio/3.33.json").read_text()
    found = list(logs_in("".join(repeated(text, one, **facts) for one, facts in zip(told, changed, strict=True))))
    assert [next(one.value for one in log.measured if one.metric == "read_total_ios") for _, log in found] == [
        n for _, n, _ in told[-n_runs:]
    ]


def test_text_of_a_further_run_without_a_heading_is_no_copy_of_its_job(logs):
    text = (logs / "fio/3.33.txt").read_text()
    headless = text[text.index("\n", text.index("Starting")) + 1 :]
    further = re.sub(r" pid=(\d+)", r" pid=1\1", headless)
    assert [log.measured for _, log in logs_in(text + further)] == [log.measured for _, log in logs_in(text + text)]
    waiting = re.sub(r" pid=\d+", " pid=0", headless)  # told before the job has begun
    assert len(list(logs_in(waiting + headless))) == 1


def test_each_log_of_a_text_is_read_whatever_tool_wrote_it(logs):
    names = (
        "sysbench/cpu-1.0.20.txt", "sysbench/memory-1.0.20.txt", "fio/3.33.txt", "ioping/1.3.txt", "fio/3.33.json",
        "iperf3/3.12-bidir.json", "sysbench/cpu-1.0.17.txt", "qperf/0.4.11.txt", "iperf3/3.12.txt", "fio/3.33.json",
        "fio/3.33-status.json", "qperf/0.4.11.txt", "qperf/0.4.11.txt", "fio/3.33-jobs.txt", "ioping/1.3.json",
    )  # fmt: skip
    texts = [(logs / name).read_text().rstrip("\n") + "\n" for name in names]
    alone = [entry for text in texts for entry in logs_in(text)]
    together = list(logs_in("".join(texts)))
    assert [(b, log.name, log.measured, log.settings) for b, log in together] == [
        (b, log.name, log.measured, log.settings) for b, log in alone
    ]
    edges = list(accumulate((text.count("\n") for text in texts), initial=1))
    assert {log.place for _, log in together} >= set(edges[:-1])


def test_what_no_known_benchmark_wrote_among_logs_is_told_with_its_line(logs):
    cpu = (logs / "sysbench/cpu-1.0.20.txt").read_text()
    threads = cpu.split("Prime")[0] + "General statistics:\n    total time:  2.0005s\n"
    places = [(benchmark, log.place, bool(log.measured)) for benchmark, log in logs_in(cpu + threads + cpu)]
    n, m = cpu.count("\n"), threads.count("\n")
    assert places == [("cpu-sysbench", 1, True), ("", n + 1, False), ("cpu-sysbench", n + m + 1, True)]


def test_text_of_fio_beside_json_is_another_run_unless_it_tells_of_the_same(logs):
    in_json, in_text = ((logs / "fio" / f"3.33.{ending}").read_text() for ending in ("json", "txt"))
    for parts in ((in_json, in_text), (in_text, in_json), (in_json, in_text, in_json)):
        alone = [log.measured for part in parts for _, log in logs_in(part)]
        assert [log.measured for _, log in logs_in("".join(parts))] == alone
    described, _, results = in_text.partition("\nrandwrite: (groupid")
    both = f"{described}\n{in_json}\nrandwrite: (groupid{results}"  # --output-format=normal,json
    assert [log.measured for _, log in logs_in(both)] == [log.measured for _, log in logs_in(in_json)]


RUNS = {  # log: benchmark, what was run, metric and value, as they stand in its rows
    "stress-ng/0.15.06.txt": [
        ("stress-ng", "cpu", "bogo_ops_rate", 661.74), ("stress-ng", "vm", "bogo_ops_cpu_rate", 68365.39),
        ("stress-ng", "pipe", "run_time", 3.0),
    ],
    "stress-ng/0.15.06.yaml": [
        ("stress-ng", "cpu", "bogo_ops_rate", 661.741723), ("stress-ng", "vm", "bogo_ops_cpu_rate", 68365.392935),
        ("stress-ng", "pipe", "run_time", 3.001736),
    ],
    "openssl/3.0.19.txt": [
        ("cpu-openssl", "sha256", "bytes_8192", 2029861.75), ("cpu-opensslkeys", "rsa 2048 bits", "sign_rate", 4763.0),
        ("cpu-opensslkeys", "256 bits ecdsa (nistp256)", "verify_rate", 24566.0),
    ],
    "UnixBench/5.1.3.txt": [
        ("system-unixbench", "1", "shell_8", 290.6), ("system-unixbench", "4", "dhrystone", 17375717.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_each_that_a_tool_ran_is_a_log_with_its_name_among_its_settings(logs, name):
    found = list(logs_in((logs / name).read_text()))
    assert [(benchmark, log.name, log.faults) for benchmark, log in found] == [(*row[:2], ()) for row in RUNS[name]]
    for (_, log), (_, run, metric, value) in zip(found, RUNS[name], strict=True):
        assert {one.metric: one.value for one in log.measured}[metric] == value
        assert plain(run) in dict(log.settings).values()


NEWER_KEYS = """                   sign    verify    encrypt   decrypt   sign/s verify/s  encr./s  decr./s
rsa  2048 bits 0.000556s 0.000016s 0.000018s 0.000580s   1797.5  61064.2  56334.7   1723.3
                              op      op/s
 253 bits ecdh (X25519)   0.0000s  28801.5
"""


def test_keys_of_newer_openssl_and_what_failed_are_read(read):
    found = {log.name: {one.metric: one.value for one in log.measured} for _, log in logs_in(NEWER_KEYS)}
    assert found == {
        "rsa 2048 bits": {"sign_rate": 1797.5, "verify_rate": 61064.2},
        "253 bits ecdh (X25519)": {"exchange_rate": 28801.5},
    }
    log = read("cpu-coremark", "CoreMark Size    : 666\nERROR! Must execute for at least 10 secs for a valid result!\n")
    assert log.has_failed
