"""ioping: statistics of all versions, its raw line, its JSON; a broken log keeps what is whole, the rest is said."""

from collections.abc import Callable

import pytest


def test_the_text_of_1_1_is_read_whole(values):
    assert values("ioping/1.1.txt") == {
        "number_of_requests": (29, ""),
        "total_duration": (29.4, "ms"),
        "transfer_size": (7.25, "MiB"),
        "iops": (987, "iops"),
        "transfer_bitrate": (246.8, "MiB/s"),
        "generated_requests": (30, ""),
        "generated_duration": (29.1, "s"),
        "generated_size": (7.5, "MiB"),
        "generated_iops": (1, "iops"),
        "generated_bitrate": (264.1, "KiB/s"),
        "latency_min": (98.7, "us"),
        "latency_avg": (1.01, "ms"),
        "latency_max": (5.02, "ms"),
        "latency_mdev": (820.4, "us"),
    }


def test_k_and_m_before_a_count_are_multiplied_in(values):
    found = values("ioping/1.1-fast.txt")
    assert found["iops"] == (447900, "iops")
    assert found["number_of_requests"] == (1270000, "")
    assert found["transfer_bitrate"] == (1.71, "GiB/s")
    assert found["latency_min"] == (843, "ns")
    assert found["latency_max"] == (1.01, "s")


def test_before_0_8_one_unit_stands_behind_all_latencies(values):
    found = values("ioping/0.6.txt")
    assert found["latency_min"] == (0.2, "ms")
    assert found["latency_max"] == (12.7, "ms")
    assert found["iops"] == (364, "iops")


def test_mb_in_lower_case_is_a_mebibyte(values):
    assert values("ioping/0.6.txt")["transfer_bitrate"] == (1.4, "MiB/s")
    assert values("ioping/0.8.txt")["transfer_bitrate"] == (20.9, "MiB/s")


def test_completed_in_was_the_time_with_pauses_before_1_0(values):
    old, new = values("ioping/0.9.txt"), values("ioping/1.1.txt")
    assert old["generated_duration"] == (2, "s")
    assert "total_duration" not in old
    assert new["total_duration"] == (29.4, "ms")


def test_raw_statistics_are_in_us_or_ns_as_their_own_rate_says(values):
    old, new = values("ioping/0.8-raw.txt"), values("ioping/1.0-raw.txt")
    assert (old["total_duration"], old["latency_avg"]) == ((26694, "us"), (267, "us"))
    assert (new["total_duration"], new["latency_avg"]) == ((4302017, "ns"), (478002, "ns"))
    assert new["generated_duration"] == (9004411837, "ns")
    assert "generated_requests" not in old


def test_raw_statistics_of_slow_requests_are_in_ns_although_about_one_a_second(read_ioping):
    assert read_ioping("10 9000000000 1 4551 880000000 900000000 920000000 9000000 10 9000010000\n")["latency_avg"] == (
        900000000,
        "ns",
    )


def test_the_total_behind_periods_counts(read_ioping):
    found = read_ioping("10 1000000 10000 1 90000 100000 110000 9\n10 1000000 10000 1 80000 100000 120000 9\n"
                        "20 2000000 10000 1 80000 100000 120000 9\n")  # fmt: skip
    assert found["number_of_requests"] == (20, "")


def test_the_text_of_debian_12_is_read(values):
    found = values("ioping/1.3.txt")
    assert found["transfer_size"] == (4.75, "MiB")
    assert found["transfer_bitrate"] == (24.6, "MiB/s")
    assert found["generated_size"] == (5, "MiB")
    assert (found["latency_min"], found["latency_mdev"]) == ((698.6, "us"), (6.35, "ms"))
    assert len(found) == 14


def test_the_json_of_debian_12_is_read(values):
    found = values("ioping/1.3.json")
    assert found["number_of_requests"] == (19, "")
    assert found["iops"] == (106.336401, "iops")
    assert found["transfer_bitrate"] == (27875450, "B/s")
    assert found["latency_mdev"] == (7683172, "ns")
    assert found["generated_duration"] == (1903771714, "ns")
    assert len(found) == 14


def test_raw_fast_and_periodic_output_of_debian_12_is_read(values):
    raw, fast = values("ioping/1.3-raw.txt"), values("ioping/1.3-fast.txt")
    assert (raw["iops"], raw["latency_avg"]) == ((144, "iops"), (6938516, "ns"))
    assert (fast["number_of_requests"], fast["iops"]) == ((36000, ""), (32800, "iops"))
    assert fast["latency_min"] == (561, "ns")
    assert values("ioping/1.3-periods.txt")["number_of_requests"] == (19, "")
    assert values("ioping/1.3-periods.json")["generated_requests"][0] >= 9


LOG = "ioping/1.1.txt"
LATENCIES = {f"latency_{kind}" for kind in ("min", "avg", "max", "mdev")}
GENERATED = {f"generated_{kind}" for kind in ("requests", "duration", "size", "iops", "bitrate")}
COUNTED = {"total_duration", "transfer_size", "iops", "transfer_bitrate"}
CUT = "the log ends inside this line: it was cut off"
NO_END = "the log is cut off: no min/avg/max/mdev"
COMMA = "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
TIMES = "day, hour, min, ms, msec, ns, nsec, s, sec, us, usec"
STAT = '"stat": {"count": 9, "size": 36864, "time": 4302017, "iops": 2092.0, "bps": 8569004, "min": 318311'
Edit = Callable[[str], str] | tuple[str, str] | str


VALUES: list[tuple[str, Edit, str, int, str]] = [
    ("comma", ("1.01 ms", "1,01 ms"), "latency_avg", 9, f"latency_avg (1,01) {COMMA}"),
    ("nan", ("987 iops", "-nan iops"), "iops", 7, "iops (-nan) is no finite number"),
    ("negative", ("98.7 us /", "-98.7 us /"), "latency_min", 9, "latency_min (-98.7) is negative"),
    (
        "unknown unit of time",
        ("29.4 ms", "29.4 eons"),
        "total_duration",
        7,
        f"total_duration (29.4) has the unknown unit 'eons'; expected one of {TIMES}",
    ),
    ("no number", ("820.4 us", "fast"), "latency_mdev", 9, "latency_mdev is no number with a unit"),
    (
        "longer than life",
        ("5.02 ms / 820.4", "99999999 day / 820.4"),
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
    found = broken("disk-ioping", LOG, (marker))
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
    found = broken("disk-ioping", "ioping/1.0-raw.txt", ("90044"))
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
