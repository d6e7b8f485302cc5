"""What ioping measures. Nine of the metrics are Perona's; the others describe the load that was asked for."""

from tasks.nodes.tools.facts import MetricFacts, Of

DISK = Of("disk")
METRICS: dict[str, MetricFacts] = {
    "number_of_requests": DISK.more("", "requests that count (the first is a warm-up)", over="total_duration"),
    "total_duration": DISK.neither("s", "time of these requests, added up"),
    "transfer_size": DISK.more("B", "bytes of these requests", over="total_duration"),
    "iops": DISK.more("1/s", "requests a second of their own time", is_headline=True),
    "transfer_bitrate": DISK.more("B/s", "bytes a second of the requests' own time", is_headline=True),
    "latency_min": DISK.less("s", "shortest request"),
    "latency_avg": DISK.less("s", "mean request", is_headline=True),
    "latency_max": DISK.less("s", "longest request"),
    "latency_mdev": DISK.less("s", "standard deviation of the requests"),
    "generated_requests": DISK.neither("", "requests made, warm-up included", over="generated_duration"),
    "generated_duration": DISK.neither("s", "time from the first to the last request, with the intervals between"),
    "generated_size": DISK.neither("B", "bytes of the requests made", over="generated_duration"),
    "generated_iops": DISK.neither("1/s", "requests made a second: set by the interval, unless the disk is slower"),
    "generated_bitrate": DISK.neither("B/s", "bytes a second of the requests made: set by the interval too"),
}
MEASURED = tuple(name for name in METRICS if not name.startswith("generated") and name != "number_of_requests")
