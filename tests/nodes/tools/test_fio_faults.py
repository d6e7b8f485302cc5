"""Broken logs of fio, text and JSON: what survives, and what is said of the rest."""

from collections.abc import Callable

import pytest

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
Edit = Callable[[str], str]


def swap(old: str, new: str) -> Edit:
    def edit(text: str) -> str:
        assert text.count(old) == 1
        return text.replace(old, new)

    return edit


def until(marker: str) -> Edit:
    """Ends the log behind the marker."""
    return lambda text: text[: text.index(marker) + len(marker)]


VALUES: list[tuple[str, str, Edit, str, int, str]] = [
    ("comma", TEXT, swap("avg=386.05", "avg=386,05"), "write_clat_avg", 9, f"write_clat_avg (386,05) {COMMA}"),
    ("nan", TEXT, swap("avg=393.68", "avg=-nan"), "write_lat_avg", 10, "write_lat_avg (-nan) is no finite number"),
    ("negative", TEXT, swap("usr=2.99%", "usr=-2.99%"), "cpu_usr", 21, "cpu_usr (-2.99) is negative"),
    (
        "unset minimum",
        TEXT,
        swap("min=30184", "min=18446744073709551615"),
        "write_bw_min",
        17,
        "write_bw_min (18446744073709551615) is more than any counter holds",
    ),
    ("a word", TEXT, swap("IOPS=10.1k", "IOPS=lots"), "write_iops", 7, "write_iops (lots) is no number"),
    ("left out", TEXT, swap(" stdev=619.59,", ""), "write_bw_stdev", 17, "write_bw_stdev is not in its line"),
    (
        "a percentile",
        TEXT,
        swap("[28181]", "[2818x]"),
        "write_clat_99_99p",
        16,
        "write_clat_99_99p (2818x) is no number",
    ),
    ("JSON NaN", JSON, swap("15560.21", "NaN"), "read_clat_avg", 1, "read_clat_avg (nan) is no finite number"),
    ("JSON infinite", JSON, swap("99.34", "Infinity"), "read_bw_per", 1, "read_bw_per (inf) is no finite number"),
    ("JSON negative", JSON, swap(": 2001,", ": -2001,"), "read_runtime", 1, "read_runtime (-2001) is negative"),
    ("JSON text", JSON, swap("63.97", '"63.97"'), "read_iops", 1, "read_iops (63.97) is no number"),
    ("JSON null", JSON, swap("63.97", "null"), "read_iops", 1, "read_iops (None) is no number"),
    ("JSON true", JSON, swap("63.97", "true"), "read_iops", 1, "read_iops (True) is no number"),
    (
        "JSON unset minimum",
        JSON,
        swap("2872,", "18446744073709551615,"),
        "read_lat_min",
        1,
        "read_lat_min (18446744073709551615) is more than any counter holds",
    ),
    (
        "JSON longer than life",
        JSON,
        swap("60213,", "9000000000000000000,"),
        "read_lat_max",
        1,
        "read_lat_max (9000000000000000000) is longer than a machine lives",
    ),
    (
        "JSON percentile",
        JSON,
        swap('"95.000000"', '"97.000000"'),
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
    found = broken("disk-fio", TEXT, swap("    clat (usec): min", "    clat (jiffies): min"))
    assert found.lost == {f"write_clat_{moment}" for moment in ("min", "max", "avg", "stdev")}
    assert {reason.split("; ")[0] for _, reason in found.faults} == {
        f"write_clat_{moment} ({value}) has the unknown unit 'jiffies'"
        for moment, value in (("min", "59"), ("max", "45445"), ("avg", "386.05"), ("stdev", "1983.67"))
    }


def test_a_log_that_was_cut_between_lines_keeps_what_came_before(broken):
    found = broken("disk-fio", TEXT, until("99.99th=[28181]\n"))
    assert (found.lost, found.faults) == (AFTER_LATENCIES, [(16, NO_END)])


def test_a_line_that_was_cut_is_not_believed(broken):
    found = broken("disk-fio", TEXT, until("clat (usec): min=59, max=454"))
    kept = {one.metric for one in found.log.measured}
    assert kept == BEFORE_LATENCIES | {f"write_slat_{moment}" for moment in ("min", "max", "avg", "stdev")}
    assert found.faults == [(9, CUT), (9, NO_END)]


def test_a_run_that_was_killed_has_no_results(broken):
    found = broken("disk-fio", TEXT, until("(1 file / 4096MiB)\n"))
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
    found = broken("disk-fio", TEXT, swap("err= 0", "err=28"))
    assert (found.lost, found.faults) == (set(), [(6, "the job ended with error 28")])
    assert found.log.has_failed
    found = broken("disk-fio", JSON, swap('"error" : 0', '"error" : 28'))
    assert (found.lost, found.faults) == (set(), [(1, "the job ended with error 28")])


def test_of_several_jobs_or_logs_the_first_is_read(broken):
    second = "other: (groupid=0, jobs=1): err= 0: pid=9: Fri Oct  6 05:21:27 2017\n  write: IOPS=1, BW=4KiB/s (4kB/s)"
    found = broken("disk-fio", TEXT, swap("\nRun status", f"{second}(8KiB/2msec)\n\nRun status"))
    assert (found.lost, found.faults) == (set(), [(27, "job 2 (other) is not read; run with --group_reporting")])
    found = broken("disk-fio", TEXT, lambda text: text + text)
    assert (found.lost, found.faults) == (set(), [(34, "another log begins here; only the first of fio is read")])
    found = broken("disk-fio", JSON, lambda text: text + text)
    assert (found.lost, found.faults) == (set(), [(107, "another log begins here; only the first of fio is read")])


def test_json_that_was_cut_gives_nothing(broken):
    found = broken("disk-fio", JSON, until('"usr_cpu" : 0.15'))
    assert found.log.measured == ()
    assert found.faults == [(1, "malformed JSON: Expecting ',' delimiter in line 81")]


def test_lines_before_and_behind_the_json_cost_nothing(broken):
    note = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1\n"
    found = broken("disk-fio", JSON, lambda text: f"{note}{text}\nDONE\n")
    assert (found.lost, found.faults) == (set(), [])


def test_json_without_any_io_has_no_values_but_those_of_the_job(broken):
    def idle(text: str) -> str:
        return swap('"total_ios" : 128', '"total_ios" : 0')(swap('"io_bytes" : 524288', '"io_bytes" : 0')(text))

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
