"""fio: text of 2.x and 3.x and JSON name the same metrics; a direction that did not run is missing."""


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
