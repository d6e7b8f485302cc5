"""Words in the names of metrics that tell what they are, for metrics of which no tool declares anything."""

TROUBLE = frozenset({
    "error", "errors", "failed", "failures", "retr", "retrans", "retransmits", "retries", "lost", "drop", "drops",
    "dropped", "overhead", "std", "stdev", "stddev", "mdev", "jitter", "variance", "deviation",
})  # less is better, whatever the unit  # fmt: skip
WORSE = frozenset({
    "latency", "lat", "clat", "slat", "rtt", "time", "delay", "cost", "wait", "miss", "misses", "fault", "faults",
})  # less is better, where the unit says nothing  # fmt: skip
BETTER = frozenset({
    "iops", "throughput", "bandwidth", "bw", "bitrate", "rate", "tps", "qps", "ops", "events", "score", "speed",
    "mips", "flops",
})  # fmt: skip
SETTINGS = frozenset({
    "version", "num_threads", "number_of_threads", "threads", "prime_numbers_limit", "block_size", "total_size",
    "operation", "scope", "number_of_processes", "msg_size", "timeout", "access_recv", "iodepth", "port", "seed",
})  # whole names  # fmt: skip
