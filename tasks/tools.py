"""Programs that whorl runs if they are there, with the Debian packages that have them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """One program. programs: its names, the first one that is found counts."""

    programs: tuple[str, ...]
    package: str
    purpose: str


BENCHMARK, WORKLOAD = "nodes: benchmarks", "workloads: something to record"
PHP_FPM = ("php-fpm", *(f"php-fpm8.{minor}" for minor in range(9, -1, -1)))  # Debian's has its version in its name
TOOLS = (
    Tool(("stress-ng",), "stress-ng", "jobs record: background load; nodes: benchmarks"),
    Tool(("fio",), "fio", BENCHMARK),
    Tool(("sysbench",), "sysbench", BENCHMARK),
    Tool(("ioping",), "ioping", BENCHMARK),
    Tool(("qperf",), "qperf", BENCHMARK),
    Tool(("iperf3",), "iperf3", BENCHMARK),
    Tool(("perf",), "linux-perf", "workloads: counters and tracepoints"),
    Tool(("setpriv",), "util-linux", "record: processes that are unprivileged and end with the recorder"),
    Tool(("redis-server",), "redis-server", WORKLOAD),
    Tool(("redis-benchmark",), "redis-tools", WORKLOAD),
    Tool(("mariadbd", "mysqld"), "mariadb-server", WORKLOAD),
    Tool(("mariadb", "mysql"), "mariadb-client", WORKLOAD),
    Tool(("postgres",), "postgresql", WORKLOAD),
    Tool(("pgbench",), "postgresql", WORKLOAD),
    Tool(("nginx",), "nginx-light", WORKLOAD),
    Tool(("wrk",), "wrk", WORKLOAD),
    Tool(PHP_FPM, "php-fpm", WORKLOAD),
    Tool(("memcached",), "memcached", WORKLOAD),
    Tool(("gcc",), "gcc", WORKLOAD),
    Tool(("zstd",), "zstd", WORKLOAD),
    Tool(("xz",), "xz-utils", WORKLOAD),
    Tool(("chromium", "chromium-browser", "google-chrome"), "chromium", "tests that look at the report"),
)
