"""sysbench cpu: prime numbers, counted in events."""

import re

from tasks.nodes.measured import ParsedLog
from tasks.nodes.tools.facts import MetricFacts, Of
from tasks.nodes.tools.parser import Parser
from tasks.nodes.tools.sysbench import EPS, TOOL, Cell, parse_sysbench
from tasks.nodes.tools.sysbench_facts import shared_facts

CPU = Of("cpu")
RATE_STEP = 0.01
METRICS: dict[str, MetricFacts] = {
    "num_threads": CPU.neither("", "setting: threads"),
    "prime_numbers_limit": CPU.neither("", "setting: primes up to this number are looked for in each event"),
    "events_per_second": CPU.more(
        "1/s", "events of all threads a second; not printed before 1.0", is_headline=True, resolution=RATE_STEP
    ),
    **shared_facts("cpu", is_latency_headline=True),
}
ROWS = {
    "number of threads": (Cell("num_threads"),),
    "prime numbers limit": (Cell("prime_numbers_limit"),),
    "primer numbers limit": (Cell("prime_numbers_limit"),),  # 0.5, as it spells it
    "maximum prime number checked in cpu test": (Cell("prime_numbers_limit"),),  # 0.4
    "events per second": (Cell("events_per_second", "/sec"),),
    EPS: (Cell("events_per_second", "/sec"),),  # 1.1
}
SIGNS = re.compile(
    r"^(Primer? numbers limit:|CPU speed:|Doing CPU (performance|speed) (benchmark|test)|Maximum prime number checked)",
    re.MULTILINE,
)


def parse(text: str) -> ParsedLog:
    """The values of a log of sysbench cpu; see tasks.nodes.tools.sysbench."""
    return parse_sysbench(text, METRICS, ROWS, SIGNS, "sysbench cpu")


PARSER = Parser("cpu-sysbench", TOOL, "cpu", METRICS, parse, SIGNS)
