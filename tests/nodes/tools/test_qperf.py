"""qperf: units change with the size, and what is 0 is not printed."""


def test_bandwidth_latency_and_cost_keep_the_units_of_the_line(values):
    found = values("qperf/0.4.9.txt")
    assert found["tcp_bw_bandwidth"] == (117, "MB/sec")
    assert found["tcp_bw_send_cost"] == (512, "ms/GB")
    assert found["tcp_bw_recv_cost"] == (1.02, "sec/GB")
    assert found["tcp_lat_latency"] == (43.1, "us")
    assert found["tcp_bw_send_bytes"] == (3.52, "GB")
    assert found["tcp_lat_loc_send_bytes"] == (348, "KB")


def test_a_rate_with_a_prefix_is_multiplied_out_exactly(values):
    found = values("qperf/0.4.9.txt")
    assert found["tcp_bw_msg_rate"] == (1790, "/sec")
    assert found["tcp_lat_msg_rate"] == (23200, "/sec")


def test_thousands_have_commas_and_bytes_in_parentheses_are_passed_over(values):
    found = values("qperf/0.4.9.txt")
    assert found["tcp_bw_send_msgs"] == (53687, "")
    assert found["tcp_lat_rem_recv_msgs"] == (348040, "")
    assert found["tcp_bw_msg_size"] == (64, "KiB")
    assert found["tcp_lat_msg_size"] == (1, "bytes")


def test_shares_of_processors_are_percent(values):
    assert values("qperf/0.4.9.txt")["tcp_lat_rem_cpus_iowait"] == (0.07, "%")


def test_what_is_0_and_so_not_printed_is_missing(parse):
    missing = parse("qperf/0.4.9.txt").missing
    assert missing == (
        "tcp_bw_send_errors",
        "tcp_bw_recv_cpus_iowait",
        "tcp_bw_recv_errors",
        "tcp_lat_loc_cpus_iowait",
        "tcp_lat_loc_send_errors",
        "tcp_lat_loc_recv_errors",
        "tcp_lat_rem_send_errors",
        "tcp_lat_rem_recv_errors",
    )


def test_bits_are_told_from_bytes(values):
    assert values("qperf/0.4.11-bits.txt") == {
        "tcp_bw_bandwidth": (21.3, "Gbits/sec"),
        "tcp_lat_latency": (980, "ns"),
    }


def test_the_output_of_debian_12_is_read(values):
    found = values("qperf/0.4.11.txt")
    assert found["tcp_bw_bandwidth"] == (43.5, "MB/sec")
    assert found["tcp_bw_msg_rate"] == (656, "/sec")
    assert found["tcp_bw_send_cost"] == (44.6, "sec/GB")
    assert found["tcp_bw_send_cpus_intr"] == (0.5, "%")
    assert found["tcp_bw_send_msgs"] == (1389, "")
    assert found["tcp_lat_latency"] == (842, "us")
    assert found["tcp_lat_rem_recv_bytes"] == (1.19, "KB")
    assert len(found) == 47  # 53 but for six shares of processors that were 0


def test_a_faster_network_is_told_in_gb_and_us(values):
    found = values("qperf/0.4.11-fast.txt")
    assert found["tcp_bw_bandwidth"] == (1.51, "GB/sec")
    assert found["tcp_bw_msg_rate"] == (23000, "/sec")
    assert found["tcp_bw_recv_bytes"] == (3.02, "GB")
    assert found["tcp_lat_latency"] == (12.6, "us")
    assert found["tcp_lat_msg_rate"] == (79400, "/sec")
    assert found["tcp_lat_loc_cpus_intr"] == (31.5, "%")
