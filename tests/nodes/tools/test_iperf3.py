"""iperf3: each direction and each end, in text and JSON, one way, back, both ways and with parallel streams."""


def test_both_directions_of_bidir_are_read(values):
    found = values("iperf3/3.7-bidir.txt")
    assert found["tx_c_transfer_size_sender"] == (3.51, "GiB")
    assert found["tx_c_transfer_size_receiver"] == (3.50, "GiB")
    assert found["rx_c_transfer_bitrate_receiver"] == (0.11, "GiB/s")
    assert (found["tx_c_transfer_retr_sender"], found["rx_c_transfer_retr_sender"]) == ((418, ""), (902, ""))
    assert found["tx_c_time_receiver"] == (30.04, "sec")
    assert len(found) == 26


def test_the_cpu_use_belongs_to_the_end_and_not_to_the_host(values):
    found = values("iperf3/3.7-bidir.txt")
    assert found["tx_c_cpu_util_sender"] == found["rx_c_cpu_util_receiver"] == (11.3, "%")
    assert found["tx_c_cpu_util_receiver"] == found["rx_c_cpu_util_sender"] == (9.8, "%")
    assert found["rx_c_cpu_util_sender_system"] == (8.9, "%")


def test_one_way_gives_one_direction_and_the_other_is_missing(parse, values):
    found = values("iperf3/3.1.txt")
    assert found["tx_c_transfer_bitrate_sender"] == (943, "Mbits/sec")
    assert found["tx_c_transfer_size_receiver"] == (1.09, "GiB")
    assert {name for name in found if name.startswith("rx_c")} == set()
    assert parse("iperf3/3.1.txt").version == "3.1.3"


def test_reverse_mode_is_the_way_back(values):
    found = values("iperf3/3.1-reverse.txt")
    assert found["rx_c_transfer_bitrate_receiver"] == (797, "Kbits/sec")
    assert found["rx_c_transfer_size_receiver"] == (973, "KiB")
    assert found["rx_c_transfer_retr_sender"] == (231, "")
    assert "tx_c_time_sender" not in found


def test_of_parallel_streams_the_sum_counts(values):
    found = values("iperf3/3.9-parallel.txt")
    assert found["tx_c_transfer_size_sender"] == (1.09, "GiB")
    assert found["tx_c_transfer_retr_sender"] == (7, "")
    assert found["tx_c_transfer_bitrate_receiver"] == (8.99, "Gbits/sec")


def test_the_json_of_one_way_has_round_trips_too(values):
    found = values("iperf3/3.1.json")
    assert found["tx_c_transfer_size_sender"] == (236187648, "B")
    assert found["tx_c_transfer_bitrate_receiver"] == (939415593.498951, "bits/sec")
    assert found["tx_c_rtt_mean"] == (4001, "us")
    assert found["tx_c_max_snd_cwnd"] == (525624, "B")
    assert found["tx_c_cpu_util_receiver_user"] == (1.284411, "%")
    assert len(found) == 17


def test_the_text_of_debian_12_is_read(values):
    found = values("iperf3/3.12-bidir.txt")
    assert found["tx_c_transfer_bitrate_receiver"] == (320, "Mbits/sec")
    assert found["rx_c_transfer_size_sender"] == (91.2, "MiB")
    assert (found["tx_c_transfer_retr_sender"], found["rx_c_transfer_retr_sender"]) == ((10, ""), (2, ""))
    assert found["rx_c_cpu_util_sender_user"] == (0.7, "%")
    assert len(found) == 26
    assert values("iperf3/3.12-reverse.txt")["rx_c_transfer_retr_sender"] == (4, "")
    assert values("iperf3/3.12.txt")["tx_c_transfer_size_sender"] == (125, "MiB")


def test_the_json_of_debian_12_is_read_both_ways(values):
    found = values("iperf3/3.12-bidir.json")
    assert found["tx_c_transfer_size_sender"] == (100794368, "B")
    assert found["rx_c_transfer_bitrate_receiver"] == (319300622.97617966, "bits/sec")
    assert (found["tx_c_transfer_retr_sender"], found["rx_c_transfer_retr_sender"]) == ((1, ""), (4, ""))
    assert (found["tx_c_rtt_min"], found["tx_c_rtt_max"]) == ((6283, "us"), (14085, "us"))
    assert found["rx_c_cpu_util_receiver"] == found["tx_c_cpu_util_sender"] == (2.7954281741352665, "%")
    assert found["rx_c_time_receiver"] == (2.170709, "s")
    assert len(found) == 30


def test_the_json_of_reverse_mode_has_the_way_back_only(values):
    found = values("iperf3/3.12-reverse.json")
    assert found["rx_c_transfer_size_sender"] == (129761280, "B")
    assert found["rx_c_transfer_retr_sender"] == (17, "")
    assert found["rx_c_cpu_util_sender_system"] == (1.9230537503596867, "%")
    assert {name for name in found if name.startswith("tx_c")} == set()


def test_round_trips_of_parallel_streams_are_joined(values):
    found = values("iperf3/3.12-parallel.json")
    assert found["tx_c_transfer_size_sender"] == (23330816, "B")
    assert (found["tx_c_rtt_min"], found["tx_c_rtt_max"]) == ((14167, "us"), (14570, "us"))
    assert found["tx_c_rtt_mean"] == (14368.5, "us")
