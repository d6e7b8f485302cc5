"""The metrics of all tools: Perona's are among them, and what is said of each holds together."""

import pytest

from tasks.nodes.preprocess.unification import conversion_of
from tasks.nodes.tools import PARSERS, headlines, resolution
from tasks.nodes.tools.parsing import DURATION, SPELLED

CLAT = ("min", "max", "avg", "stdev", "05p", "50p", "95p")
MOMENTS = ("min", "max", "avg", "stdev")
CPUS = ("used", "user", "intr", "kernel", "iowait")
LATENCIES = tuple(f"latency_{what}" for what in ("min", "avg", "max", "95p", "sum"))
FAIRNESS = tuple(f"fairness_{what}_{kind}" for what in ("events", "exctime") for kind in ("avg", "stddev"))
PERONA = {  # Perona's published parser, by benchmark
    "cpu-sysbench": [
        "version", "num_threads", "prime_numbers_limit", "events_per_second", "total_time", "total_number_of_events",
        *LATENCIES, *FAIRNESS,
    ],
    "memory-sysbench": [
        "version", "number_of_threads", "block_size", "total_size", "operation", "scope", "transfer_size",
        "transfer_rate", "total_time", "total_number_of_events", *LATENCIES, *FAIRNESS,
    ],
    "disk-fio": [
        "version", "number_of_processes", "cpu_usr", "cpu_sys", "disk_util",
        *(f"{way}_clat_{what}" for way in ("read", "write") for what in CLAT),
        *(f"{way}_{kind}_{what}" for way in ("read", "write") for kind in ("lat", "bw", "iops") for what in MOMENTS),
    ],
    "disk-ioping": [
        "number_of_requests", "total_duration", "transfer_size", "iops", "transfer_bitrate",
        *(f"latency_{what}" for what in ("min", "avg", "max", "mdev")),
    ],
    "network-iperf3": [
        *(f"{way}_{what}_{end}" for way in ("tx_c", "rx_c") for end in ("sender", "receiver")
          for what in ("transfer_size", "transfer_bitrate", "cpu_util")),
        "tx_c_transfer_retr_sender", "rx_c_transfer_retr_sender",
    ],
    "network-qperf": [
        *(f"tcp_bw_{what}" for what in (
            "bandwidth", "msg_rate", "access_recv", "msg_size", "time", "timeout", "send_cost", "recv_cost")),
        *(f"tcp_bw_{end}_{what}" for end in ("send", "recv")
          for what in (*(f"cpus_{use}" for use in CPUS), "real_time", "cpu_time", "bytes", "msgs")),
        *(f"tcp_lat_{what}" for what in ("latency", "msg_rate", "msg_size", "time", "timeout")),
        *(f"tcp_lat_{end}_{what}" for end in ("loc", "rem")
          for what in (*(f"cpus_{use}" for use in CPUS), "real_time", "cpu_time", "send_bytes", "recv_bytes",
                       "send_msgs", "recv_msgs")),
    ],
}  # fmt: skip
WORDS = {"version", "operation", "scope"}  # no numbers: the version stands in ParsedLog, the others in the template
ALL = [(benchmark, metric) for benchmark, parser in PARSERS.items() for metric in parser.metrics]


@pytest.mark.parametrize("benchmark", PERONA)
def test_peronas_metrics_are_among_ours_but_for_the_five_that_are_words(benchmark):
    assert set(PERONA[benchmark]) - WORDS <= set(PARSERS[benchmark].metrics)


@pytest.mark.parametrize("benchmark", PARSERS)
def test_what_is_said_of_a_metric_holds_together(benchmark):
    parser = PARSERS[benchmark]
    for metric, facts in parser.metrics.items():
        assert facts.aspect == parser.aspect, metric
        assert parser.aspect in (benchmark.split("-")[0], "unknown"), metric
        assert facts.unit in SPELLED and facts.what, metric
        over = facts.is_cumulative_over
        if over is not None and over != DURATION:
            assert (parser.metrics[over].unit, parser.metrics[over].is_cumulative_over) == ("s", None), metric
        if facts.what.startswith("setting"):
            assert (facts.higher_is_better, over) == (None, None), metric


HEADLINES = {
    "cpu-sysbench": {"events_per_second": True, "latency_avg": False, "latency_95p": False},
    "memory-sysbench": {"operations_per_second": True, "transfer_rate": True},
    "disk-fio": {
        f"{way}_{what}": what in ("bw", "iops")
        for way in ("read", "write")
        for what in ("bw", "iops", "clat_avg", "lat_avg")
    },
    "disk-ioping": {"iops": True, "transfer_bitrate": True, "latency_avg": False},
    "network-qperf": {"tcp_bw_bandwidth": True, "tcp_lat_latency": False},
    "network-iperf3": {
        f"{way}_transfer_bitrate_{end}": True for way in ("tx_c", "rx_c") for end in ("sender", "receiver")
    },
}

HEADLINES["network-iperf3"] |= {"udp_transfer_bitrate": True, "udp_jitter": False, "udp_lost_share": False}
HEADLINES |= {
    "disk-sysbench": {
        **dict.fromkeys(("read_iops", "write_iops", "read_bw", "write_bw"), True), "latency_avg": False,
        "latency_95p": False,
    },
    "stress-ng": {"bogo_ops_rate": True},
    "cpu-openssl": {f"bytes_{size}": True for size in (16, 64, 256, 1024, 8192, 16384)},
    "cpu-opensslkeys": {f"{what}_rate": True for what in ("sign", "verify", "exchange")},
    "memory-stream": {f"{kernel}_rate": True for kernel in ("copy", "scale", "add", "triad")},
    "cpu-coremark": {"iterations_rate": True},
    "system-unixbench": {name: True for name in PARSERS["system-unixbench"].metrics if name != "index"},
}  # fmt: skip


@pytest.mark.parametrize("benchmark", PARSERS)
def test_the_headlines_of_a_tool_are_its_rates_and_latencies_and_say_which_way_is_better(benchmark):
    assert headlines(benchmark) == HEADLINES[benchmark]


def test_a_benchmark_that_nobody_declared_has_no_headlines_and_no_resolution():
    assert headlines("foreign") == {}
    assert resolution("foreign", "latency_avg") == resolution("disk-fio", "foreign") == 0.0


def test_the_resolution_of_what_sysbench_prints_is_in_the_canonical_unit():
    assert resolution("memory-sysbench", "latency_avg") == pytest.approx(0.01 * conversion_of("ms").factor)
    assert resolution("memory-sysbench", "transfer_rate") == pytest.approx(0.01 * conversion_of("MiB/sec").factor)
    assert resolution("network-qperf", "tcp_lat_latency") == 0.0  # three digits, whatever the size
