"""sysbench memory: blocks written or read."""

import re

from tasks.nodes.measured import ParsedLog
from tasks.nodes.tools.facts import MetricFacts, Of
from tasks.nodes.tools.parser import Parser
from tasks.nodes.tools.sysbench import TOOL, Cell, parse_sysbench
from tasks.nodes.tools.sysbench_facts import shared_facts

MEMORY = Of("memory")
STEP, MIB = 0.01, 2**20
METRICS: dict[str, MetricFacts] = {
    "number_of_threads": MEMORY.neither("", "setting: threads"),
    "block_size": MEMORY.neither("B", "setting: size of a block"),
    "total_size": MEMORY.neither("B", "setting: most that is transferred"),
    "total_operations": MEMORY.more("", "blocks transferred", over="total_time"),
    "operations_per_second": MEMORY.more("1/s", "blocks transferred a second", is_headline=True, resolution=STEP),
    "transfer_size": MEMORY.more("B", "bytes transferred", over="total_time", resolution=STEP * MIB),
    "transfer_rate": MEMORY.more("B/s", "bytes transferred a second", is_headline=True, resolution=STEP * MIB),
    **shared_facts("memory", is_latency_headline=False),
}
OPERATIONS = (Cell("total_operations"), Cell("operations_per_second", "/sec"))
ROWS = {
    "number of threads": (Cell("number_of_threads"),),
    "block size": (Cell("block_size"),),
    "memory block size": (Cell("block_size"),),  # 0.4, 0.5
    "total size": (Cell("total_size"),),
    "memory transfer size": (Cell("total_size"),),  # 0.4, 0.5
    "total operations": OPERATIONS,
    "operations performed": OPERATIONS,  # 0.4, 0.5
}
WORDS = {
    "operation": "operation",
    "scope": "scope",
    "memory operations type": "operation",  # 0.4, 0.5
    "memory scope type": "scope",
}
SIGNS = re.compile(
    r"^(Running memory speed test|Doing memory operations speed test|Operations performed:|Total operations:)",
    re.MULTILINE,
)


def parse(text: str) -> ParsedLog:
    """The values of a log of sysbench memory; see tasks.nodes.tools.sysbench."""
    return parse_sysbench(text, METRICS, ROWS, SIGNS, "sysbench memory", words=WORDS)


PARSER = Parser("memory-sysbench", TOOL, "memory", METRICS, parse, SIGNS)
