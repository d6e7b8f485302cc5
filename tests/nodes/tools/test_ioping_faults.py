"""Broken logs of ioping: what survives, and what is said of the rest."""

from collections.abc import Callable

import pytest

LOG = "ioping/1.1.txt"
LATENCIES = {f"latency_{kind}" for kind in ("min", "avg", "max", "mdev")}
GENERATED = {f"generated_{kind}" for kind in ("requests", "duration", "size", "iops", "bitrate")}
COUNTED = {"total_duration", "transfer_size", "iops", "transfer_bitrate"}
CUT = "the log ends inside this line: it was cut off"
NO_END = "the log is cut off: no min/avg/max/mdev"
COMMA = "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
TIMES = "day, hour, min, ms, msec, ns, nsec, s, sec, us, usec"
STAT = '"stat": {"count": 9, "size": 36864, "time": 4302017, "iops": 2092.0, "bps": 8569004, "min": 318311'
Edit = Callable[[str], str]


def swap(old: str, new: str) -> Edit:
    def edit(text: str) -> str:
        assert text.count(old) == 1
        return text.replace(old, new)

    return edit


def until(marker: str) -> Edit:
    """Ends the log behind the marker."""
    return lambda text: text[: text.index(marker) + len(marker)]


VALUES: list[tuple[str, Edit, str, int, str]] = [
    ("comma", swap("1.01 ms", "1,01 ms"), "latency_avg", 9, f"latency_avg (1,01) {COMMA}"),
    ("nan", swap("987 iops", "-nan iops"), "iops", 7, "iops (-nan) is no finite number"),
    ("negative", swap("98.7 us /", "-98.7 us /"), "latency_min", 9, "latency_min (-98.7) is negative"),
    (
        "unknown unit of time",
        swap("29.4 ms", "29.4 eons"),
        "total_duration",
        7,
        f"total_duration (29.4) has the unknown unit 'eons'; expected one of {TIMES}",
    ),
    ("no number", swap("820.4 us", "fast"), "latency_mdev", 9, "latency_mdev is no number with a unit"),
    (
        "longer than life",
        swap("5.02 ms / 820.4", "99999999 day / 820.4"),
        "latency_max",
        9,
        "latency_max (99999999) is longer than a machine lives",
    ),
]


@pytest.mark.parametrize(
    ("edit", "lost", "place", "reason"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES]
)
def test_a_value_that_is_none_is_a_fault_and_the_rest_survives(broken, edit, lost, place, reason):
    found = broken("disk-ioping", LOG, edit)
    assert (found.lost, found.faults) == ({lost}, [(place, reason)])


@pytest.mark.parametrize(
    ("marker", "lost", "faults"),
    [
        ("5.02 ms / 820.4 u", LATENCIES, [(9, CUT)]),
        ("/ 5.02 ms / 82", LATENCIES, [(9, CUT)]),
        ("246.8 MiB/s\n", GENERATED | LATENCIES, [(7, NO_END)]),
        (
            "246.8 MiB",
            GENERATED | LATENCIES | COUNTED | {"number_of_requests"},
            [(7, "no number of requests, time, iops and speed here"), (7, NO_END)],
        ),
        (
            "time=5.02 ms (slow)\n",
            GENERATED | LATENCIES | COUNTED | {"number_of_requests"},
            [(4, "the log is cut off: requests without statistics at the end")],
        ),
    ],
)
def test_a_log_that_was_cut_off_says_where(broken, marker, lost, faults):
    found = broken("disk-ioping", LOG, until(marker))
    assert (found.lost, found.faults) == (lost, faults)


def test_where_no_request_was_counted_nothing_is_known_of_latencies(read_faults):
    text = (
        "--- /data (ext4 /dev/sda1) ioping statistics ---\n"
        "0 requests completed in 0 ns, 0 B read, 0 iops, 0 B/s\n"
        "generated 30 requests in 29.1 s, 7.50 MiB, 1 iops, 264.1 KiB/s\n"
        "min/avg/max/mdev = 0 ns / 0 ns / 0 ns / 0 ns\n"
    )
    log = read_faults("disk-ioping", text)
    assert {one.metric for one in log.measured} == {"number_of_requests"} | GENERATED
    assert [fault.reason for fault in log.faults] == ["no request was counted: nothing is known of their time"]


def test_statistics_that_stand_there_twice_count_once(broken):
    found = broken("disk-ioping", LOG, lambda text: text + text)
    assert (found.lost, found.faults) == (set(), [(15, "another log begins here; only the first of ioping is read")])


@pytest.mark.parametrize(
    "edit",
    [
        str.rstrip,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("min/avg", "Nov 21 kernel: sd 0:0:0:0: [sda] tag#3\nmin/avg"),
        lambda text: text.replace("^", "").replace("\n---", "^C\n---"),
    ],
    ids=["no last line break", "Windows", "a foreign line", "interrupted"],
)
def test_what_does_not_touch_a_value_costs_none(broken, edit):
    found = broken("disk-ioping", LOG, edit)
    assert (found.lost, found.faults) == (set(), [])


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", [(1, "the log is empty")]),
        (
            'ioping: failed to create temporary file at "/x": Permission denied\n',
            [(1, 'ioping reported an error: ioping: failed to create temporary file at "/x": Permission denied')],
        ),
        (
            "9 4302017 50 8569004 318311 478002 709284 117606 10 9004411837\n",
            [(1, "requests, time and requests per second do not fit: neither ns nor us")],
        ),
        (
            "9 4302017 2092 8569004 318311 478002 709284 117606\n7 4302017 1627 8569004 418311 478002 709284 117606\n",
            [(2, "several lines of raw statistics, and the last is not their total")],
        ),
        ("9 4302017 2092 8569004 318311 478002 709284\n", [(1, "no result of ioping in it")]),
        (f"[{{\n{STAT}", [(1, "malformed JSON: Expecting ',' delimiter in line 2")]),
        ('[{"io": {"request": 1}}]', [(1, "the log has requests, but no statistics")]),
        ("total 8\ndrwxr-xr-x 2 root root 4096\n", [(1, "no result of ioping in it")]),
    ],
    ids=[
        "empty",
        "an error",
        "raw misfit",
        "raw without total",
        "raw of seven",
        "cut JSON",
        "no statistics",
        "foreign",
    ],
)
def test_a_log_without_results_gives_nothing_and_says_why(broken, text, faults):
    found = broken("disk-ioping", LOG, lambda _: text)
    assert (found.log.measured, found.faults) == ((), faults)


def test_of_a_raw_line_without_a_line_break_the_last_number_is_not_believed(broken):
    found = broken("disk-ioping", "ioping/1.0-raw.txt", until("90044"))
    assert (found.lost, found.faults) == ({"generated_duration"}, [(1, CUT)])
    found = broken("disk-ioping", "ioping/0.8-raw.txt", str.rstrip)
    assert (found.lost, found.faults) == ({"latency_mdev"}, [(1, CUT)])


def test_json_values_that_are_none_are_faults(read_faults):
    tail = '}, "load": {"count": 10, "time": 9004411837, "iops": NaN, "bps": -1}}]'
    log = read_faults("disk-ioping", f'[{{{STAT}, "avg": null, "max": "1"{tail}')
    assert {one.metric for one in log.measured} == {
        "number_of_requests", "total_duration", "transfer_size", "iops", "transfer_bitrate", "latency_min",
        "generated_requests", "generated_duration",
    }  # fmt: skip
    assert [fault.reason for fault in log.faults] == [
        "latency_avg (None) is no number",
        "latency_max (1) is no number",
        "generated_iops (nan) is no finite number",
        "generated_bitrate (-1) is negative",
    ]
