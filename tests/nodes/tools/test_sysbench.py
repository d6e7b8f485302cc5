"""sysbench cpu and memory: every version's text says the same things in other words."""

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
