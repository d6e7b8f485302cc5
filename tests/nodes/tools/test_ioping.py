"""ioping: statistics of all versions, its raw line, its JSON; prefixes of counts belong to the value."""


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
