"""fio: text of 2.x and 3.x and JSON name the same metrics; a broken log keeps what is whole, and the rest is said."""

from collections.abc import Callable

import pytest


def test_the_text_of_3_x_is_read(values):
    found = values("fio/3.1-write.txt")
    assert found["number_of_processes"] == (1, "")
    assert found["write_iops"] == (10100, "iops")  # printed as 10.1k
    assert found["write_bw"] == (39.5, "MiB/s")
    assert found["write_io_size"] == (4096, "MiB")
    assert found["write_runtime"] == (103704, "msec")
    assert found["write_total_ios"] == (1048576, "")
    assert (found["write_short_ios"], found["write_dropped_ios"]) == ((0, ""), (0, ""))
    assert found["write_slat_avg"] == (7.63, "usec")
    assert found["write_clat_min"] == (59, "usec")
    assert found["write_lat_max"] == (45453, "usec")
    assert found["write_clat_05p"] == (182, "usec")
    assert found["write_clat_99_5p"] == (9422, "usec")
    assert found["write_clat_99_99p"] == (28181, "usec")
    assert found["write_bw_avg"] == (40442.61, "KiB/s")
    assert found["write_bw_per"] == (99.99, "%")
    assert found["write_iops_stdev"] == (154.90, "iops")
    assert found["write_iops_samples"] == (207, "")
    assert (found["cpu_usr"], found["cpu_ctx"]) == ((2.99, "%"), (611253, ""))
    assert found["disk_util"] == (99.94, "%")


def test_a_direction_that_did_not_run_is_missing_in_text_and_in_json(parse):
    text, json = parse("fio/3.1-write.txt"), parse("fio/2.2.10.json")
    assert [one.metric for one in text.measured if one.metric.startswith("read_")] == []
    assert [one.metric for one in json.measured if one.metric.startswith("write_")] == []
    assert "write_clat_min" in json.missing


def test_each_time_of_2_x_has_the_unit_of_its_own_line(values):
    found = values("fio/2.2.10.txt")
    assert found["read_clat_95p"] == (92, "msec")
    assert found["write_clat_95p"] == (68096, "usec")
    assert found["write_lat_stdev"] == (17033.02, "usec")


def test_the_kb_of_2_x_is_a_kibibyte(values):
    found = values("fio/2.2.10.txt")
    assert found["read_bw"] == (49535, "KiB/s")
    assert found["read_io_size"] == (1452, "MiB")
    assert found["read_bw_max"] == (74461, "KiB/s")
    assert found["read_runtime"] == (30016, "msec")
    assert (found["read_total_ios"], found["write_total_ios"]) == ((363, ""), (381, ""))


def test_what_2_x_does_not_print_is_missing(parse):
    missing = set(parse("fio/2.2.10.txt").missing)
    assert {"read_iops_min", "read_iops_samples", "read_bw_samples", "read_slat_min"} <= missing
    assert "read_iops" not in missing


def test_percentiles_in_one_unwrapped_line_are_read_and_those_of_fsync_are_not(values):
    found = values("fio/3.13-nsec.txt")
    assert found["write_clat_01p"] == (11584, "nsec")
    assert found["write_clat_99_99p"] == (58112, "nsec")
    assert found["number_of_processes"] == (2, "")


def test_the_json_of_2_x_counts_in_kib_and_us(values):
    found = values("fio/2.2.10.json")
    assert found["read_io_size"] == (524288, "KiB")
    assert found["read_bw"] == (262013, "KiB/s")
    assert found["read_clat_max"] == (60211, "us")
    assert found["read_clat_99_95p"] == (60160, "us")
    assert found["read_lat_avg"] == (15561.03, "us")
    assert found["read_bw_per"] == (99.34, "%")
    assert found["disk_util"] == (94.71, "%")  # of the first disk


def test_the_submission_times_of_a_synchronous_engine_are_missing(parse):
    assert "read_slat_min" in parse("fio/2.2.10.json").missing
    assert "write_slat_min" in parse("fio/3.13-nsec.txt").missing


def test_the_text_of_debian_12_is_read(values):
    found = values("fio/3.33.txt")
    assert found["read_bw"] == (11.5, "MiB/s")
    assert found["read_io_size"] == (24, "MiB")
    assert found["write_runtime"] == (2095, "msec")
    assert (found["read_clat_50p"], found["write_clat_50p"]) == ((125, "msec"), (143655, "usec"))
    assert (found["read_bw_stdev"], found["write_iops_stdev"]) == ((8258.02, "KiB/s"), (0, "iops"))
    assert (found["read_total_ios"], found["write_total_ios"]) == ((6, ""), (5, ""))
    assert found["disk_util"] == (1.13, "%")
    assert len(found) == 93  # all but the submission times, which a synchronous engine has not


def test_the_json_of_debian_12_is_read(values):
    found = values("fio/3.33.json")
    assert found["read_bw"] == (16939838, "B/s")
    assert found["read_io_size"] == (41943040, "B")
    assert found["read_runtime"] == (2476, "ms")
    assert found["read_clat_95p"] == (196083712, "ns")
    assert found["write_lat_stdev"] == (61186141.830434, "ns")
    assert (found["read_bw_avg"], found["write_iops_avg"]) == ((20018.25, "KiB/s"), (6, "iops"))
    assert (found["cpu_sys"], found["number_of_processes"]) == ((2.383838, "%"), (1, ""))
    assert len(found) == 93


def test_json_plus_gives_the_same_metrics_as_json(values):
    assert values("fio/3.33-plus.json").keys() == values("fio/3.33.json").keys()


def test_an_asynchronous_engine_has_submission_times(values):
    found = values("fio/3.33-aio.json")
    assert {f"read_slat_{moment}" for moment in ("min", "max", "avg", "stdev")} <= found.keys()
    assert found["number_of_processes"] == (2, "")


def test_of_two_jobs_the_first_is_read_and_the_second_is_a_fault(parse):
    log = parse("fio/3.33-two-jobs.txt")
    found = {one.metric: one.value for one in log.measured}
    assert (found["read_iops"], found["read_clat_50p"], found["cpu_ctx"]) == (630, 1057, 1254)
    assert [fault.reason for fault in log.faults] == ["job 2 (aio) is not read; run with --group_reporting"]


TEXT, JSON = "fio/3.1-write.txt", "fio/2.2.10.json"
CUT = "the log ends inside this line: it was cut off"
NO_END = "the log is cut off: no 'Run status group' at its end"
COMMA = "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
AFTER_LATENCIES = {
    *(f"write_{kind}_{moment}" for kind in ("bw", "iops") for moment in ("min", "max", "avg", "stdev", "samples")),
    "write_bw_per", "write_total_ios", "write_short_ios", "write_dropped_ios",
    "cpu_usr", "cpu_sys", "cpu_ctx", "cpu_majf", "cpu_minf", "disk_util",
}  # fmt: skip
BEFORE_LATENCIES = {"number_of_processes", "write_iops", "write_bw", "write_io_size", "write_runtime"}
Edit = Callable[[str], str] | tuple[str, str] | str


VALUES: list[tuple[str, str, Edit, str, int, str]] = [
    ("comma", TEXT, ("avg=386.05", "avg=386,05"), "write_clat_avg", 9, f"write_clat_avg (386,05) {COMMA}"),
    ("nan", TEXT, ("avg=393.68", "avg=-nan"), "write_lat_avg", 10, "write_lat_avg (-nan) is no finite number"),
    ("negative", TEXT, ("usr=2.99%", "usr=-2.99%"), "cpu_usr", 21, "cpu_usr (-2.99) is negative"),
    (
        "unset minimum",
        TEXT,
        ("min=30184", "min=18446744073709551615"),
        "write_bw_min",
        17,
        "write_bw_min (18446744073709551615) is more than any counter holds",
    ),
    ("a word", TEXT, ("IOPS=10.1k", "IOPS=lots"), "write_iops", 7, "write_iops (lots) is no number"),
    ("left out", TEXT, (" stdev=619.59,", ""), "write_bw_stdev", 17, "write_bw_stdev is not in its line"),
    (
        "a percentile",
        TEXT,
        ("[28181]", "[2818x]"),
        "write_clat_99_99p",
        16,
        "write_clat_99_99p (2818x) is no number",
    ),
    ("JSON NaN", JSON, ("15560.21", "NaN"), "read_clat_avg", 1, "read_clat_avg (nan) is no finite number"),
    ("JSON infinite", JSON, ("99.34", "Infinity"), "read_bw_per", 1, "read_bw_per (inf) is no finite number"),
    ("JSON negative", JSON, (": 2001,", ": -2001,"), "read_runtime", 1, "read_runtime (-2001) is negative"),
    ("JSON text", JSON, ("63.97", '"63.97"'), "read_iops", 1, "read_iops (63.97) is no number"),
    ("JSON null", JSON, ("63.97", "null"), "read_iops", 1, "read_iops (None) is no number"),
    ("JSON true", JSON, ("63.97", "true"), "read_iops", 1, "read_iops (True) is no number"),
    (
        "JSON unset minimum",
        JSON,
        ("2872,", "18446744073709551615,"),
        "read_lat_min",
        1,
        "read_lat_min (18446744073709551615) is more than any counter holds",
    ),
    (
        "JSON longer than life",
        JSON,
        ("60213,", "9000000000000000000,"),
        "read_lat_max",
        1,
        "read_lat_max (9000000000000000000) is longer than a machine lives",
    ),
    (
        "JSON percentile",
        JSON,
        ('"95.000000"', '"97.000000"'),
        "read_clat_95p",
        1,
        "percentile 97.000000 is not kept",
    ),
]


@pytest.mark.parametrize(
    ("log", "edit", "lost", "place", "reason"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES]
)
def test_a_value_that_is_none_is_a_fault_and_the_rest_survives(broken, log, edit, lost, place, reason):
    found = broken("disk-fio", log, edit)
    assert (found.lost, found.faults) == ({lost}, [(place, reason)])


def test_an_unknown_unit_costs_the_values_of_its_line(broken):
    found = broken("disk-fio", TEXT, ("    clat (usec): min", "    clat (jiffies): min"))
    assert found.lost == {f"write_clat_{moment}" for moment in ("min", "max", "avg", "stdev")}
    assert {reason.split("; ")[0] for _, reason in found.faults} == {
        f"write_clat_{moment} ({value}) has the unknown unit 'jiffies'"
        for moment, value in (("min", "59"), ("max", "45445"), ("avg", "386.05"), ("stdev", "1983.67"))
    }


def test_a_log_that_was_cut_between_lines_keeps_what_came_before(broken):
    found = broken("disk-fio", TEXT, ("99.99th=[28181]\n"))
    assert (found.lost, found.faults) == (AFTER_LATENCIES, [(16, NO_END)])


def test_a_line_that_was_cut_is_not_believed(broken):
    found = broken("disk-fio", TEXT, ("clat (usec): min=59, max=454"))
    kept = {one.metric for one in found.log.measured}
    assert kept == BEFORE_LATENCIES | {f"write_slat_{moment}" for moment in ("min", "max", "avg", "stdev")}
    assert found.faults == [(9, CUT), (9, NO_END)]


def test_a_run_that_was_killed_has_no_results(broken):
    found = broken("disk-fio", TEXT, ("(1 file / 4096MiB)\n"))
    assert {one.metric for one in found.log.measured} == {"number_of_processes"}
    assert found.faults == [(4, "the log is cut off: no job in it")]


@pytest.mark.parametrize(
    "edit",
    [
        str.rstrip,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("     | 30.00th", "[ 12.5] audit: backlog limit exceeded\n     | 30.00th"),
        lambda text: text.replace("\nmyjob: (groupid", "\rJobs: 1 (f=1): [W(1)][9.1%][eta 00m:01s]\r\nmyjob: (groupid"),
        lambda text: text.replace("sec):\n     |", "sec): |").replace(",\n     |", ", |"),
    ],
    ids=["no last line break", "Windows", "a foreign line", "progress", "unwrapped"],
)
def test_what_does_not_touch_a_value_costs_none(broken, edit):
    found = broken("disk-fio", TEXT, edit)
    assert (found.lost, found.faults) == (set(), [])


def test_a_job_that_ended_with_an_error_says_so_beside_its_values(broken):
    found = broken("disk-fio", TEXT, ("err= 0", "err=28"))
    assert (found.lost, found.faults) == (set(), [(6, "the job ended with error 28")])
    assert found.log.has_failed
    found = broken("disk-fio", JSON, ('"error" : 0', '"error" : 28'))
    assert (found.lost, found.faults) == (set(), [(1, "the job ended with error 28")])


def test_of_several_jobs_or_logs_the_first_is_read(broken):
    second = "other: (groupid=0, jobs=1): err= 0: pid=9: Fri Oct  6 05:21:27 2017\n  write: IOPS=1, BW=4KiB/s (4kB/s)"
    found = broken("disk-fio", TEXT, ("\nRun status", f"{second}(8KiB/2msec)\n\nRun status"))
    assert (found.lost, found.faults) == (set(), [(27, "job 2 (other) is not read; run with --group_reporting")])
    found = broken("disk-fio", TEXT, lambda text: text + text)
    assert (found.lost, found.faults) == (set(), [(34, "another log begins here; only the first of fio is read")])
    found = broken("disk-fio", JSON, lambda text: text + text)
    assert (found.lost, found.faults) == (set(), [(107, "another log begins here; only the first of fio is read")])


def test_json_that_was_cut_gives_nothing(broken):
    found = broken("disk-fio", JSON, ('"usr_cpu" : 0.15'))
    assert found.log.measured == ()
    assert found.faults == [(1, "malformed JSON: Expecting ',' delimiter in line 81")]


def test_lines_before_and_behind_the_json_cost_nothing(broken):
    note = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1\n"
    found = broken("disk-fio", JSON, lambda text: f"{note}{text}\nDONE\n")
    assert (found.lost, found.faults) == (set(), [])


def test_json_without_any_io_has_no_values_but_those_of_the_job(broken):
    def idle(text: str) -> str:
        return text.replace('"io_bytes" : 524288', '"io_bytes" : 0').replace('"total_ios" : 128', '"total_ios" : 0')

    found = broken("disk-fio", JSON, idle)
    assert {one.metric for one in found.log.measured} == {
        "number_of_processes", "cpu_usr", "cpu_sys", "cpu_ctx", "cpu_majf", "cpu_minf", "disk_util",
    }  # fmt: skip
    assert found.faults == [(1, "neither read nor written")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the log is empty"),
        ("fio: unable to open 'a.fio' job file\n", "fio reported an error: fio: unable to open 'a.fio' job file"),
        ('{"fio version": "fio-3.33", "jobs": []}', "no jobs in it; expected the output of a run"),
        ('{"fio version": "fio-3.33", "jobs": {"read": 1}}', "no jobs in it; expected the output of a run"),
        ('{"fio version": "fio-3.33", "jobs": [7]}', "neither read nor written"),
        ("<html>504 Gateway Time-out</html>\n", "no result of fio in it"),
    ],
)
def test_a_log_without_results_says_why(broken, text, reason):
    found = broken("disk-fio", TEXT, lambda _: text)
    assert [one.metric for one in found.log.measured if one.metric != "number_of_processes"] == []
    assert found.faults == [(1, reason)]
