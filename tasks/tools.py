"""Programs that whorl runs if they are there, with the Debian packages that have them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """One program. programs: its names, the first one that is found counts."""

    programs: tuple[str, ...]
    package: str
    purpose: str


BENCHMARK, WORKLOAD = "nodes: benchmarks", "workloads: something to record"
TOOLS = (
    Tool(("stress-ng",), "stress-ng", "jobs record: background load; nodes: benchmarks"),
    Tool(("fio",), "fio", BENCHMARK),
    Tool(("sysbench",), "sysbench", BENCHMARK),
    Tool(("ioping",), "ioping", BENCHMARK),
    Tool(("qperf",), "qperf", BENCHMARK),
    Tool(("iperf3",), "iperf3", BENCHMARK),
    Tool(("perf",), "linux-perf", "workloads: counters and tracepoints"),
    Tool(("redis-server",), "redis-server", WORKLOAD),
    Tool(("mariadbd", "mysqld"), "mariadb-server", WORKLOAD),
    Tool(("postgres",), "postgresql", WORKLOAD),
    Tool(("nginx",), "nginx-light", WORKLOAD),
    Tool(("memcached",), "memcached", WORKLOAD),
    Tool(("chromium", "chromium-browser", "google-chrome"), "chromium", "tests that look at the report"),
)
