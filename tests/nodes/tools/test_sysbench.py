"""sysbench cpu and memory: every version's text says the same things; of a broken log what is whole survives."""

from collections.abc import Callable

import pytest


def test_the_text_of_1_0_is_read_whole(values):
    assert values("sysbench/cpu-1.0.17.txt") == {
        "num_threads": (16, ""),
        "prime_numbers_limit": (10000, ""),
        "events_per_second": (1816.43, "/sec"),
        "total_time": (30.0089, "s"),
        "total_number_of_events": (54512, ""),
        "latency_min": (1.04, "ms"),
        "latency_avg": (8.80, "ms"),
        "latency_max": (92.31, "ms"),
        "latency_95p": (27.66, "ms"),
        "latency_sum": (479841.27, "ms"),
        "fairness_events_avg": (3407, ""),
        "fairness_events_stddev": (19.31, ""),
        "fairness_exctime_avg": (29.9901, "s"),
        "fairness_exctime_stddev": (0.01, "s"),
    }


@pytest.mark.parametrize(
    ("name", "version", "n_values"),
    [
        ("cpu-0.4.12", "0.4.12", 13),
        ("cpu-0.5", "0.5", 13),
        ("cpu-1.0.17", "1.0.17", 14),
        ("cpu-1.1.0", "1.1.0-df89d34", 14),
        ("memory-0.4.12", "0.4.12", 18),
        ("memory-1.0.17", "1.0.17", 18),
    ],
)
def test_each_version_gives_all_it_prints(parse, name, version, n_values):
    log = parse(f"sysbench/{name}.txt")
    assert (log.tool, log.version, len(log.measured), log.faults) == ("sysbench", version, n_values, ())


def test_events_a_second_are_missing_before_1_0_and_not_made_up(parse):
    assert parse("sysbench/cpu-0.4.12.txt").missing == ("events_per_second",)
    assert parse("sysbench/cpu-0.5.txt").missing == ("events_per_second",)


def test_the_sum_of_latencies_is_in_seconds_before_1_0_and_in_ms_since(values):
    assert values("sysbench/cpu-0.4.12.txt")["latency_sum"] == (30.5569, "s")
    assert values("sysbench/cpu-0.5.txt")["latency_sum"] == (10.6581, "s")
    assert values("sysbench/cpu-1.1.0.txt")["latency_sum"] == (9995.92, "ms")


def test_the_limit_of_primes_is_found_under_each_of_its_names(values):
    assert values("sysbench/cpu-0.4.12.txt")["prime_numbers_limit"] == (20000, "")
    assert values("sysbench/cpu-0.5.txt")["prime_numbers_limit"] == (10000, "")


def test_the_throughput_of_1_1_is_the_rate_and_the_time(values):
    found = values("sysbench/cpu-1.1.0.txt")
    assert found["events_per_second"] == (967.13, "/sec")
    assert found["total_time"] == (10.0008, "s")
    assert found["total_number_of_events"] == (9672, "")


def test_memory_keeps_latencies_of_0_00_since_they_are_printed(values):
    found = values("sysbench/memory-1.0.17.txt")
    assert found["latency_min"] == found["latency_avg"] == found["latency_95p"] == (0, "ms")
    assert found["latency_max"] == (36.04, "ms")


def test_memory_says_what_it_moved(values):
    found = values("sysbench/memory-1.0.17.txt")
    assert found["transfer_size"] == (150705.07, "MiB")
    assert found["transfer_rate"] == (5023.16, "MiB/sec")
    assert found["total_operations"] == (154321987, "")
    assert found["operations_per_second"] == (5143712.45, "/sec")
    assert (found["block_size"], found["total_size"]) == ((1, "KiB"), (1024000, "MiB"))


def test_the_mb_of_0_4_is_a_mebibyte(values):
    found = values("sysbench/memory-0.4.12.txt")
    assert found["transfer_size"] == (1024, "MiB")
    assert found["transfer_rate"] == (1601.39, "MiB/sec")
    assert (found["block_size"], found["total_size"]) == ((1, "KiB"), (1024, "MiB"))


def test_the_output_of_debian_12_is_read(values):
    cpu, memory = values("sysbench/cpu-1.0.20.txt"), values("sysbench/memory-1.0.20.txt")
    assert (len(cpu), len(memory)) == (14, 18)
    assert cpu["events_per_second"] == (299.58, "/sec")
    assert (cpu["latency_95p"], cpu["fairness_exctime_stddev"]) == ((147.61, "ms"), (0.03, "s"))
    assert memory["transfer_rate"] == (387.66, "MiB/sec")
    assert memory["operations_per_second"] == (396967.84, "/sec")
    assert memory["fairness_events_stddev"] == (6231.98, "")


LOG = "sysbench/cpu-1.0.17.txt"
FAIRNESS = {f"fairness_{what}_{kind}" for what in ("events", "exctime") for kind in ("avg", "stddev")}
CUT = "the log ends inside this line: it was cut off"
NO_END = "the log is cut off: no 'execution time (avg/stddev)' at its end"
COMMA = "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
TIMES = "day, hour, min, ms, msec, ns, nsec, s, sec, us, usec"
Edit = Callable[[str], str] | tuple[str, str] | str


VALUES: list[tuple[str, Edit, str, int, str]] = [
    ("nan", ("8.80", "-nan"), "latency_avg", 23, "latency_avg (-nan) is no finite number"),
    ("infinite", ("1816.43", "inf"), "events_per_second", 15, "events_per_second (inf) is no finite number"),
    ("negative", ("  1.04", " -1.04"), "latency_min", 22, "latency_min (-1.04) is negative"),
    ("comma", ("1816.43", "1816,43"), "events_per_second", 15, f"events_per_second (1816,43) {COMMA}"),
    ("grouped", ("54512", "54,512"), "total_number_of_events", 19, f"total_number_of_events (54,512) {COMMA}"),
    (
        "unset minimum",
        ("  1.04", " 18446744073709.55"),
        "latency_min",
        22,
        "latency_min (18446744073709.55) is longer than a machine lives",
    ),
    ("a word", ("54512", "many"), "total_number_of_events", 19, "total_number_of_events (many) is no number"),
    ("nothing", ("54512", ""), "total_number_of_events", 19, "total_number_of_events () is no number"),
    (
        "unknown unit",
        ("30.0089s", "30.0089fortnights"),
        "total_time",
        18,
        f"total_time (30.0089) has the unknown unit 'fortnights'; expected one of {TIMES}",
    ),
    (
        "more than a counter holds",
        ("54512", "99999999999999999999"),
        "total_number_of_events",
        19,
        "total_number_of_events (99999999999999999999) is more than any counter holds",
    ),
    ("a null byte inside", ("8.80", "8.\x0080"), "latency_avg", 23, "latency_avg (8.\x0080) is no number"),
    (
        "another percentile",
        ("95th percentile", "99th percentile"),
        "latency_95p",
        25,
        "percentile 99 is not kept; run with --percentile=95",
    ),
]


@pytest.mark.parametrize(
    ("edit", "lost", "place", "reason"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES]
)
def test_a_value_that_is_none_is_a_fault_with_its_line_and_the_rest_survives(broken, edit, lost, place, reason):
    found = broken("cpu-sysbench", LOG, edit)
    assert (found.lost, found.faults) == ({lost}, [(place, reason)])


def test_a_pair_with_one_number_loses_both(broken):
    found = broken("cpu-sysbench", LOG, ("3407.0000/19.31", "3407.0000"))
    assert found.lost == {"fairness_events_avg", "fairness_events_stddev"}
    assert found.faults == [(29, "fairness_events_avg and fairness_events_stddev (3407.0000) is no number")]


@pytest.mark.parametrize(
    ("marker", "lost", "faults"),
    [
        ("sum:                               4798", {"latency_sum"} | FAIRNESS, [(26, CUT)]),
        ("8.80\n", {"latency_max", "latency_95p", "latency_sum"} | FAIRNESS, [(23, NO_END)]),
        ("3407.0000/19.31\n", {"fairness_exctime_avg", "fairness_exctime_stddev"}, [(29, NO_END)]),
        ("29.9901/0.0", {"fairness_exctime_avg", "fairness_exctime_stddev"}, [(30, CUT)]),
    ],
)
def test_a_log_that_was_cut_off_says_where_and_a_cut_number_is_not_believed(broken, marker, lost, faults):
    found = broken("cpu-sysbench", LOG, (marker))
    assert (found.lost, found.faults) == (lost, faults)


@pytest.mark.parametrize(
    "edit",
    [
        str.rstrip,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("Latency (ms):", "[ 431.52] EXT4-fs (sda1): mounted\nLatency (ms):"),
        lambda text: text.replace("Latency (ms):", "\x7fELF\x02\x00\ufffd\ufffd\nLatency (ms):"),
        lambda text: text.replace("Threads started!", "\x1b[1mThreads started!\x1b[0m"),
    ],
    ids=["no last line break", "Windows", "byte order mark", "a foreign line", "binary bytes", "colours"],
)
def test_what_does_not_touch_a_value_costs_none(broken, edit):
    found = broken("cpu-sysbench", LOG, edit)
    assert (found.lost, found.faults) == (set(), [])


def test_a_line_that_stands_there_twice_counts_once(broken):
    found = broken("cpu-sysbench", LOG, ("         avg:", "         min:      9.99\n         avg:"))
    assert (found.lost, found.faults) == (set(), [(23, "latency_min (9.99) stands there twice; the first counts")])


def test_of_two_logs_the_first_of_the_benchmark_is_read(broken, logs):
    again = "another log begins here; only the first of sysbench cpu is read"
    assert broken("cpu-sysbench", LOG, lambda text: text + text).faults == [(32, again)]
    memory = (logs / "sysbench/memory-1.0.17.txt").read_text()
    found = broken("cpu-sysbench", LOG, lambda text: memory + text)
    assert (found.lost, found.faults) == (set(), [(1, again)])


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", [(1, "the log is empty")]),
        (" \n\t\n", [(1, "the log is empty")]),
        (
            "sysbench 1.0.17 (using bundled LuaJIT 2.1.0-beta2)\n\nFATAL: unable to create thread: error 11\n",
            [(3, "sysbench reported an error: FATAL: unable to create thread: error 11")],
        ),
        ("PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.\n", [(1, "no result of sysbench in it")]),
        ("\x00\x01\x02\ufffd" * 300, [(1, "no result of sysbench in it")]),
    ],
    ids=["empty", "blank", "an error", "of another tool", "binary"],
)
def test_a_log_without_results_gives_nothing_and_says_why(broken, text, faults):
    found = broken("cpu-sysbench", LOG, lambda _: text)
    assert (found.log.measured, found.faults) == ((), faults)


def test_memory_without_an_operation_moves_nothing_and_that_is_missing(broken):
    without = ("150705.07 MiB transferred (5023.16 MiB/sec)\n", "")
    found = broken("memory-sysbench", "sysbench/memory-1.0.17.txt", without)
    assert (found.lost, found.faults) == ({"transfer_size", "transfer_rate"}, [])


def test_one_of_two_values_in_a_line_can_be_wrong(broken):
    found = broken("memory-sysbench", "sysbench/memory-1.0.17.txt", ("(5023.16 MiB/sec)", "(-5023.16 MiB/sec)"))
    assert (found.lost, found.faults) == ({"transfer_rate"}, [(20, "transfer_rate (-5023.16) is negative")])


def test_without_an_event_times_and_rates_are_missing_and_not_zero(logs, read_faults):
    zeros = {"1816.43": "0.00", "54512": "0", "  1.04": "0.00", "8.80": "0.00", "92.31": "0.00", "27.66": "0.00"}
    text = (logs / LOG).read_text()
    for old, new in zeros.items():
        text = text.replace(old, new)
    log = read_faults("cpu-sysbench", text)
    assert {one.metric: one.value for one in log.measured} == {
        "num_threads": 16, "prime_numbers_limit": 10000, "total_time": 30.0089, "total_number_of_events": 0,
    }  # fmt: skip
    reasons = [fault.reason for fault in log.faults]
    assert (reasons, log.has_failed) == (["no event was counted: nothing is known of rates and times"], True)


def test_latencies_of_less_than_the_tool_prints_stay(parse):
    log = parse("sysbench/memory-1.0.20.txt")
    assert {one.metric: one.value for one in log.measured}["latency_min"] == 0
    assert not log.has_failed
